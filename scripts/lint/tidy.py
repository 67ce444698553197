#!/usr/bin/python3
"""clang-tidy with the list in .clang-tidy, every finding an error.

Sources that have not changed, nor anything they include, nor the way they are compiled, are not analysed again; the marks
are in build/lint. The others are analysed several at a time, as a unity build compiles them: what takes the time is the headers
they share. Takes the compile commands of preset "commands", whose build makes the generated headers they need.
The tests are not analysed: they double the time, and what they get wrong shows when they run. Neither are the sources that
include CAF (the actors' shells and the command line): its headers cost clang-tidy most of a minute each. The cores, where the
decisions are, are.
--file PATH (may be repeated) looks at these sources only, tests or not.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from lint_common import cpp_files, finding, finish, in_parallel, include_graph, is_tidied, parser, passed_cache, read, tool_version

COMPLAINT = re.compile(r"^(?P<path>/[^:\n]+):(?P<line>\d+):\d+: (?:error|warning): (?P<message>[^\n]+)$", re.MULTILINE)
ERROR = re.compile(r"error: [^\n]*")
NOT_COMPILED = "[clang-diagnostic-error"
BATCH_MAX = 8
# What only g++ understands, and precompiled headers, which clang cannot read.
DROPPED = re.compile(r"^(--param=.*|-Winvalid-pch|-fpch-preprocess|-fno-fast-math)$")


def compile_commands(root, build_dir):
    """source path -> arguments for clang, from the compilation database of the build."""
    commands = {}
    for entry in json.loads((build_dir / "compile_commands.json").read_text()):
        try:
            source = str((build_dir / entry["file"]).resolve().relative_to(root))
        except ValueError:
            continue
        words = shlex.split(entry["command"])
        begin = next(index for index, word in enumerate(words) if word.endswith(("c++", "g++", "clang++")))
        arguments, skip = [], False
        for word, following in zip(words[begin + 1:], words[begin + 2:] + [""]):
            if skip:
                skip = False
            elif word in ("-o", "-c", "-MF", "-MT") or (word == "-include" and "cmake_pch" in following):
                skip = True
            elif not DROPPED.match(word):
                arguments.append(word)
        commands[source] = arguments
    return commands


def run_clang_tidy(root, folders, file, arguments):
    """Findings in `file` and in what of this tree (in `folders`) it includes, and whether it compiles at all."""
    command = ["clang-tidy", "--quiet", f"--header-filter=^{root}/({'|'.join(folders)})/", file, "--", *arguments, "-Wno-unknown-pragmas"]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True)
    found = {(match.group("path").removeprefix(f"{root}/"), int(match.group("line")), match.group("message"))
             for match in COMPLAINT.finditer(result.stdout)}
    if result.returncode != 0 and not found:
        name = file.relative_to(root).as_posix()
        found = {(name, 0, "clang-tidy failed: " + (ERROR.search(result.stdout + result.stderr) or [result.stderr.strip()])[0])}
    return found, not any(NOT_COMPILED in message for _, _, message in found)


def analyse(root, folders, batch, arguments):
    """Findings of the sources of a batch, which are compiled alike. Those that do not go together are looked at alone."""
    if len(batch) > 1:
        with tempfile.NamedTemporaryFile("w", suffix=".cpp", dir=root / "build/lint") as unity:
            unity.write("".join(f'#include "{root / source}"\n' for source in batch))
            unity.flush()
            found, compiles = run_clang_tidy(root, folders, pathlib.Path(unity.name), arguments)
        if compiles:
            return found
    return set().union(*(run_clang_tidy(root, folders, root / source, arguments)[0] for source in batch))


def batches_of(sources, commands):
    """Sources that are compiled alike, in order, at most BATCH_MAX together, and about as many batches as keep all cores busy."""
    alike = {}
    for source in sources:
        words = [word for word in commands[source] if word != source and not word.endswith("/" + source)]
        alike.setdefault(tuple(words), []).append(source)
    size = max(1, min(BATCH_MAX, len(sources) // (2 * (os.cpu_count() or 1))))
    return [(group[begin:begin + size], list(words)) for words, group in alike.items() for begin in range(0, len(group), size)]


def main():
    arguments_parser = parser(__doc__)
    arguments_parser.add_argument("--build-dir", default="build/commands", metavar="DIR",
                                  help="a configured build, relative to the root (default: build/commands)")
    arguments_parser.add_argument("--file", action="append", metavar="PATH", help="look at this source only")
    arguments = arguments_parser.parse_args()
    root = arguments.root.resolve()
    build_dir = root / arguments.build_dir
    if not shutil.which("clang-tidy") or not (build_dir / "compile_commands.json").exists():
        return finish("tidy", "0 sources", [finding(arguments.build_dir, 0, "needs clang-tidy (scripts/install_dependencies --with-check) and "
                                                    "a configured build (cmake --preset commands && cmake --build --preset commands)")])
    commands = compile_commands(root, build_dir)
    graph, cache = include_graph(root), passed_cache(root / "build/lint/tidy")
    settings = (read(root, ".clang-tidy"), tool_version("clang-tidy", "--version"))
    protos = [path.relative_to(root).as_posix() for path in sorted((root / "proto").glob("*.proto"))]
    sources = [path for path in cpp_files(root, (".cpp",)) if path in commands
               and (path in arguments.file if arguments.file else is_tidied(root, graph, path))]

    folders = sorted({path.split("/")[0] for path in cpp_files(root)})

    def key_of(source):
        return cache.key(root, graph.closure(source) + protos, commands[source], *settings)

    def look_at(batch):
        found = analyse(root, folders, *batch)
        if not found:
            for source in batch[0]:
                cache.add(key_of(source))
        return found

    changed = [source for source in sources if not cache.has(key_of(source))]
    findings = sorted(set().union(*in_parallel(look_at, batches_of(changed, commands))))
    cache.forget_old()
    return finish("tidy", f"{len(sources)} sources", [finding(*one) for one in findings])


if __name__ == "__main__":
    sys.exit(main())
