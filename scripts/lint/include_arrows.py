#!/usr/bin/python3
"""Include arrows: who may know whom.

cli > runtime > observability > actors/<role> > inference > actors/protocol, actors/link, actors/common > engine, weights, data, transport, persistence, security, kubernetes, kernels, job > base > include, proto.
- An arrow points down or stays on its level; folders of one level form no cycle; roles never include one another.
- CAF stays in the actors and in what starts them: neither what is below them nor observability includes it, directly or through
  another header.
- A pure core (see is_pure) includes no CAF either, and nothing that is a clock, a thread, a socket or a file.
- An include of this tree is written from the root ("engine/model.hpp"); public headers as <dlrun/error.hpp>. Examples, which are
  projects of their own, include theirs as they like.
Tests, benchmarks and examples may include everything.
"""

import re
import sys

from lint_common import cpp_files, finding, finish, include_graph, parser, read, resolve_include, without_comments

LEVELS = {"include": 0, "proto": 0, "base": 1, "engine": 2, "data": 2, "transport": 2, "persistence": 2, "security": 2, "kernels": 2, "job": 2, "weights": 2, "kubernetes": 2,
          "actors/protocol": 3, "actors/link": 3, "actors/common": 3, "inference": 4, "observability": 6, "runtime": 7, "cli": 8}
ROLE_LEVEL = 5
MAY_INCLUDE_CAF = ("runtime", "cli")  # beside the actors
FREE = ("tests", "benchmarks", "examples")
OUTSIDE = "examples/"  # projects of their own, as users have them
PURE_NAME = re.compile(r"^actors/.*(_core|/supervisor\w*|/assignment)\.(hpp|cpp)$")
PURE_MARK = re.compile(r"^\s*/// Pure:", re.MULTILINE)
IMPURE = re.compile(r"^(caf/.*|thread|mutex|shared_mutex|condition_variable|future|fstream|filesystem|iostream|unistd\.h|fcntl\.h"
                    r"|signal\.h|csignal|poll\.h|sys/.*|netinet/.*|arpa/.*|spdlog/.*)$")
READS_CLOCK = re.compile(r"\b\w+_clock::now\s*\(|\bstd::random_device\b|\bclock_gettime\s*\(")


def folder_of(path):
    """The unit that arrows connect: a top folder, or a folder of actors/. None for what may include everything."""
    parts = path.split("/")
    if parts[0] in FREE or len(parts) == 1:
        return None
    if parts[0] == "actors":
        return f"actors/{parts[1]}" if len(parts) > 2 else "actors"
    return parts[0]


def level_of(folder):
    if folder.startswith("actors/"):
        return LEVELS.get(folder, ROLE_LEVEL)
    return LEVELS.get(folder)


def is_pure(root, path):
    """By name (`*_core`, `supervisor*`, `assignment`) or by saying so: a comment line that begins `/// Pure:`."""
    if PURE_NAME.match(path):
        return True
    return path.startswith("actors/") and bool(PURE_MARK.search(read(root, path)))


def arrow_findings(root, graph, path, edges):
    """Wrongly written includes and arrows that point up or sideways; collects the arrows of one level in `edges`."""
    source = folder_of(path)
    for line, quote, name in graph.direct(path):
        target = resolve_include(root, name)
        if target is None:
            if quote == '"' and not name.endswith(".pb.h") and not path.startswith(OUTSIDE):
                yield finding(path, line, f'"{name}" is no file seen from the root: write includes from there')
            continue
        if target.startswith("include/") != (quote == "<"):
            yield finding(path, line, f"{name}: public headers are included with <>, all others of the tree with quotes")
        goal = folder_of(target)
        if source is None or goal == source:
            continue
        if goal is None:
            yield finding(path, line, f"{source} must not include {target}")
            continue
        from_level, to_level = level_of(source), level_of(goal)
        if from_level is None or to_level is None:
            yield finding(path, line, f"{source if from_level is None else goal} has no place in the layers; name it in include_arrows.py")
        elif from_level == to_level == ROLE_LEVEL:
            yield finding(path, line, f"roles never include one another: {source} must not know {goal}; they meet in actors/protocol")
        elif to_level > from_level:
            yield finding(path, line, f"arrow points up: {source} must not know {goal}")
        elif to_level == from_level:
            edges.setdefault(source, {}).setdefault(goal, (path, line))


def cycle_findings(edges):
    """One finding for each pair of folders of one level of which each reaches the other."""
    def reaches(start, goal):
        seen, todo = set(), [start]
        while todo:
            for following in edges.get(todo.pop(), {}):
                if following == goal:
                    return True
                if following not in seen:
                    seen.add(following)
                    todo.append(following)
        return False
    for source, goals in sorted(edges.items()):
        for goal, (path, line) in sorted(goals.items()):
            if reaches(goal, source):
                yield finding(path, line, f"{source} and {goal} include each other")


def purity_findings(root, graph, path):
    """CAF below the actors; CAF, clocks, threads and files in pure cores."""
    folder = folder_of(path)
    pure = is_pure(root, path)
    below_actors = folder is not None and not folder.startswith("actors") and folder not in MAY_INCLUDE_CAF
    if not (pure or below_actors):
        return
    for reached in graph.closure(path):
        for line, _, name in graph.direct(reached):
            if name.startswith("caf/"):
                through = "" if reached == path else f" (through {reached})"
                what = "a pure core" if pure else folder
                yield finding(path, line if reached == path else 0, f"{what} must not include {name}{through}")
            elif pure and reached == path and IMPURE.match(name):
                yield finding(path, line, f"a pure core must not include <{name}>: time, files and threads come from its shell")
    if pure:
        code = without_comments(read(root, path))
        for match in READS_CLOCK.finditer(code):
            yield finding(path, code.count("\n", 0, match.start()) + 1, "a pure core reads no clock: time is an argument")


def main():
    arguments = parser(__doc__).parse_args()
    root = arguments.root.resolve()
    graph = include_graph(root)
    files = cpp_files(root)
    findings, edges = [], {}
    for path in files:
        findings.extend(arrow_findings(root, graph, path, edges))
        findings.extend(purity_findings(root, graph, path))
    findings.extend(cycle_findings(edges))
    return finish("include_arrows", f"{len(files)} files", findings)


if __name__ == "__main__":
    sys.exit(main())
