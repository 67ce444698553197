#!/usr/bin/python3
"""Self-contained headers: every header compiles on its own and begins its code with #pragma once.

Compiles a file that includes nothing but the header. Not compiled: headers that have not changed, nor anything they
include (the marks are in build/lint). What takes a compiler long to read it finds precompiled: libraries that the header
includes in any case, itself or through others of the tree, as far as several headers share them. That hides nothing: a header of
the tree that uses such a library and does not include it is looked at alone as well. Of CAF it is all that the tree uses, since
CAF brings most of the standard library.
Needs what preset "commands" generates.
"""

import collections
import json
import pathlib
import posixpath
import re
import shlex
import shutil
import subprocess
import sys

from lint_common import cpp_files, finding, finish, in_parallel, include_graph, parser, passed_cache, read, tool_version, without_comments

COMPILER = "clang++"
FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
CAF_INCLUDE = re.compile(r"^#include <(caf/[^>]+)>", re.MULTILINE)
LIBRARY_INCLUDE = re.compile(r'^#include (<(?:fmt|tl|spdlog|nlohmann|gtest|gmock|CLI|rocksdb)/[^>]+>|"proto/\w+\.pb\.h")', re.MULTILINE)
STANDARD_INCLUDE = re.compile(r"^#include (<(?:filesystem|functional|string|vector|memory)>)", re.MULTILINE)
SHARERS_MIN = 5  # headers that make a precompiled one worth its time
FIRST_ERROR = re.compile(r"^[^\n]*?:(\d+):(?:\d+:)? (?:fatal )?error: (.*)$", re.MULTILINE)


def commands_of(root, build_dir):
    """(source relative to the root, compile command) of each source of the tree that the build compiles."""
    database = build_dir / "compile_commands.json"
    for entry in json.loads(database.read_text()) if database.exists() else []:
        source = pathlib.Path(entry["file"])
        if source.is_relative_to(root) and source.exists():
            yield source.relative_to(root).as_posix(), entry["command"]


def definitions_by_folder(commands):
    """folder -> the -D options with which its sources are compiled, together."""
    definitions = {}
    for source, command in commands:
        found = [word for word in shlex.split(command) if word.startswith("-D")]
        definitions.setdefault(posixpath.dirname(source), set()).update(found)
    return {folder: sorted(words) for folder, words in definitions.items()}


def precompile(root, build_dir, includes, folder):
    """Writes `includes`, as they stand behind #include, to a precompiled header. @returns the options to use it."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "all.hpp"
    source.write_text("".join(f"#include {include}\n" for include in sorted(includes)))
    subprocess.run([COMPILER, *FLAGS, *include_folders(root, build_dir), "-Xclang", "-fpch-instantiate-templates", "-x", "c++-header", source, "-o", f"{source}.gch"], cwd=root, check=True)
    return ["-include", source]


def include_folders(root, build_dir):
    return [f"-I{root}", f"-I{root / 'include'}", f"-I{build_dir}"]


def slow_includes(root, graph, headers):
    """header -> what is to be precompiled for it: of what it includes, itself or through others, that which takes long to read."""
    text = {header: "".join(read(root, path) for path in graph.closure(header)) for header in headers}
    caf = {f"<{name}>" for one in text.values() for name in CAF_INCLUDE.findall(one)}

    def of(one):
        libraries = {*LIBRARY_INCLUDE.findall(one), *(caf if CAF_INCLUDE.search(one) else ())}
        return frozenset(libraries or STANDARD_INCLUDE.findall(one))

    return {header: of(one) for header, one in text.items()}


def compile_alone(root, build_dir, header, options):
    """The first complaint of the compiler, or None."""
    name = header.removeprefix("include/")
    result = subprocess.run([COMPILER, *FLAGS, "-fsyntax-only", *options, *include_folders(root, build_dir), "-x", "c++", "-"], input=f'#include "{name}"\n', cwd=root, capture_output=True, text=True)
    if result.returncode == 0:
        return None
    match = FIRST_ERROR.search(result.stderr)
    return match.group(2) if match else result.stderr.strip()


def main():
    arguments_parser = parser(__doc__)
    arguments_parser.add_argument("--build-dir", default="build/commands", metavar="DIR",
                                  help="where generated headers are, relative to the root (default: build/commands)")
    arguments = arguments_parser.parse_args()
    root = arguments.root.resolve()
    if not shutil.which(COMPILER):
        return finish("self_contained_headers", "0 headers", [finding(COMPILER, 0, "not found; scripts/install_dependencies installs it")])
    graph, cache = include_graph(root), passed_cache(root / "build/lint/headers")
    protos = [path.relative_to(root).as_posix() for path in sorted((root / "proto").glob("*.proto"))]
    definitions = definitions_by_folder(commands_of(root, root / arguments.build_dir))
    settings = (FLAGS, tool_version(COMPILER, "--version"))

    def own_definitions(header):
        return definitions.get(posixpath.dirname(header), [])

    def key_of(header):
        return cache.key(root, graph.closure(header) + protos, own_definitions(header), *settings)

    headers = cpp_files(root, (".hpp",))
    findings = [finding(header, 1, "code does not begin with #pragma once") for header in headers
                if not re.match(r"\s*#pragma once\b", without_comments(read(root, header)))]
    changed = [header for header in headers if not cache.has(key_of(header))]
    slow = slow_includes(root, graph, changed)
    sharers = collections.Counter(slow.values())
    shared = [includes for includes, count in sharers.items() if includes and count >= SHARERS_MIN]
    folders = [root / f"build/lint/precompiled/{number}" for number in range(len(shared))]
    precompiled = dict(zip(shared, in_parallel(lambda one: precompile(root, root / arguments.build_dir, *one), list(zip(shared, folders)))))

    def look_at(header):
        largest = max((one for one in shared if one <= slow[header]), key=len, default=None)
        options = [*own_definitions(header), *precompiled.get(largest, [])]
        complaint = compile_alone(root, root / arguments.build_dir, header, options)
        if complaint is None:
            cache.add(key_of(header))
            return []
        return [finding(header, 0, f"does not compile alone: {complaint}")]

    findings += [one for found in in_parallel(look_at, changed) for one in found]
    cache.forget_old()
    return finish("self_contained_headers", f"{len(headers)} headers", findings)


if __name__ == "__main__":
    sys.exit(main())
