#!/usr/bin/python3
"""Self-contained headers: every header compiles on its own and begins its code with #pragma once.

Compiles a file that includes nothing but the header. Not compiled: headers that have not changed, nor anything they
include (the marks are in build/lint). Headers that include CAF find all that the tree uses of it precompiled, since it takes
seconds to read and brings most of the standard library in any case. Needs what preset "commands" generates.
"""

import json
import pathlib
import posixpath
import re
import shlex
import shutil
import subprocess
import sys

from lint_common import cpp_files, finding, finish, in_parallel, include_graph, parser, passed_cache, read, tool_version, without_comments

COMPILER = "g++"
FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
CAF_INCLUDE = re.compile(r"^#include <(caf/[^>]+)>", re.MULTILINE)
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


def precompile(root, headers, folder):
    """Writes `headers`, as they stand in #include <...>, to a precompiled header. @returns the options to use it."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "caf.hpp"
    source.write_text("".join(f"#include <{header}>\n" for header in sorted(headers)))
    subprocess.run([COMPILER, *FLAGS, "-x", "c++-header", source, "-o", f"{source}.gch"], cwd=root, check=True)
    return ["-include", source]


def caf_headers(root, graph, header):
    """What of CAF a header includes, itself or through others."""
    return {name for path in graph.closure(header) for name in CAF_INCLUDE.findall(read(root, path))}


def compile_alone(root, build_dir, header, options):
    """The first complaint of the compiler, or None."""
    folders = [f"-I{root}", f"-I{root / 'include'}", f"-I{build_dir}"]
    name = header.removeprefix("include/")
    result = subprocess.run([COMPILER, *FLAGS, "-fsyntax-only", *options, *folders, "-x", "c++", "-"], input=f'#include "{name}"\n', cwd=root, capture_output=True, text=True)
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
    of_caf = {header: caf_headers(root, graph, header) for header in changed}
    used = set().union(*of_caf.values())
    with_caf = precompile(root, used, root / "build/lint/precompiled") if used else []

    def look_at(header):
        options = [*own_definitions(header), *(with_caf if of_caf[header] else [])]
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
