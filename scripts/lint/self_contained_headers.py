#!/usr/bin/python3
"""Self-contained headers: every header compiles on its own and begins its code with #pragma once.

Compiles a file that includes nothing but the header. Not compiled: headers that have not changed, nor anything they
include (the marks are in build/lint), and headers that tidy.py proves, because their own source, which it looks at alone,
includes them first. Needs what preset "commands" generates.
"""

import json
import pathlib
import posixpath
import re
import shlex
import shutil
import subprocess
import sys

from lint_common import (cpp_files, finding, finish, in_parallel, include_graph, includes, is_tidied, parser, passed_cache, read,
                         resolve_include, tool_version, without_comments)

COMPILER = "g++"
FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-x", "c++"]
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


def compile_alone(root, build_dir, header, definitions):
    """The first complaint of the compiler, or None."""
    folders = [f"-I{root}", f"-I{root / 'include'}", f"-I{build_dir}"]
    name = header.removeprefix("include/")
    result = subprocess.run([COMPILER, *FLAGS, *definitions, *folders, "-"], input=f'#include "{name}"\n', cwd=root, capture_output=True, text=True)
    if result.returncode == 0:
        return None
    match = FIRST_ERROR.search(result.stderr)
    return match.group(2) if match else result.stderr.strip()


def proved_by_tidy(root, graph, commands):
    """Headers that are the first include of the source of the same name, if clang-tidy looks at that."""
    proved = set()
    for source, _ in commands:
        first = next(iter(includes(read(root, source))), None)
        target = resolve_include(root, first[2]) if first else None
        if target and target.removesuffix(".hpp") == source.removesuffix(".cpp") and is_tidied(root, graph, source):
            proved.add(target)
    return proved


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
    commands = list(commands_of(root, root / arguments.build_dir))
    proved, definitions = proved_by_tidy(root, graph, commands), definitions_by_folder(commands)
    settings = (FLAGS, tool_version(COMPILER, "--version"))

    def look_at(header):
        if not re.match(r"\s*#pragma once\b", without_comments(read(root, header))):
            return finding(header, 1, "code does not begin with #pragma once")
        if header in proved:
            return None
        own_definitions = definitions.get(posixpath.dirname(header), [])
        key = cache.key(root, graph.closure(header) + protos, own_definitions, *settings)
        if cache.has(key):
            return None
        complaint = compile_alone(root, root / arguments.build_dir, header, own_definitions)
        if complaint is None:
            cache.add(key)
            return None
        return finding(header, 0, f"does not compile alone: {complaint}")

    headers = cpp_files(root, (".hpp",))
    findings = [one for one in in_parallel(look_at, headers) if one]
    cache.forget_old()
    return finish("self_contained_headers", f"{len(headers)} headers", findings)


if __name__ == "__main__":
    sys.exit(main())
