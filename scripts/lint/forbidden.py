#!/usr/bin/python3
"""Forbidden words: what must not be in the code, and why.

- caf::infinite               nothing waits for ever
- file(GLOB ...)              source lists are explicit
- TODO, FIXME, XXX            what is left to do is written where work is planned, not where it is forgotten
- DeleteRange                 a compaction of nothing else may end the process when the disk fails it (RocksDB 7.8)
- GTEST_SKIP, DISABLED_       a test runs or does not exist
- rows of dashes              a section of a source is headed by one line, `// ---- name`
- sleeping in tests           wait for what should happen, with a deadline
- symbolic links              they lead nowhere on another machine
"""

import re
import sys

from lint_common import CPP_SUFFIXES, all_files, all_paths, finding, finish, parser, read, without_comments

# (which files, whether comments count too, pattern, what to say)
RULES = [
    (lambda path: path.endswith(CPP_SUFFIXES), False, re.compile(r"\bcaf::infinite\b"),
     "nothing waits for ever, give it a deadline"),
    (lambda path: path.endswith(CPP_SUFFIXES), False, re.compile(r"\bDeleteRange\b"),
     "keys are removed one by one, by database::erase"),
    (lambda path: path.endswith(CPP_SUFFIXES), False, re.compile(r"\b(GTEST_SKIP|DISABLED_\w*)"),
     "a test runs or does not exist"),
    (lambda path: path.startswith("tests/") and path.endswith(CPP_SUFFIXES), False,
     re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep|sleep)\s*\("),
     "no sleeping in tests: wait for what should happen, with a deadline"),
    (lambda path: path.endswith(CPP_SUFFIXES), True, re.compile(r"^ *//.*-{5,}.*$", re.MULTILINE),
     "a section is headed by one line, `// ---- name`"),
    (lambda path: path.endswith((*CPP_SUFFIXES, ".cmake", ".proto", ".sh", "CMakeLists.txt")) or "." not in path.split("/")[-1],
     True, re.compile(r"\b(TODO|FIXME|XXX)\b"), "finish it, or write it where work is planned"),
    (lambda path: path.endswith((".cmake", "CMakeLists.txt")), True, re.compile(r"\bfile\s*\(\s*GLOB", re.IGNORECASE),
     "source lists are explicit: name each file"),
]
# These name what they forbid.
EXEMPT = ("scripts/lint/", "tests/lint/")


def main():
    arguments = parser(__doc__).parse_args()
    files = [path for path in all_files(arguments.root) if not path.startswith(EXEMPT)]
    findings = [finding(path, 0, "a symbolic link leads nowhere on another machine: copy the file, or name it")
                for path in all_paths(arguments.root) if (arguments.root / path).is_symlink()]
    for path in files:
        rules = [rule for rule in RULES if rule[0](path)]
        if not rules:
            continue
        text = read(arguments.root, path)
        code = without_comments(text) if path.endswith(CPP_SUFFIXES) else text
        for _, comments_too, pattern, message in rules:
            where = text if comments_too else code
            for match in pattern.finditer(where):
                findings.append(finding(path, where.count("\n", 0, match.start()) + 1, f"{match.group().strip()}: {message}"))
    return finish("forbidden", f"{len(files)} files", findings)


if __name__ == "__main__":
    sys.exit(main())
