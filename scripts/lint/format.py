#!/usr/bin/python3
"""Formatting: every C++ file is as clang-format, with .clang-format of the root, would write it.

--fix writes the files instead of complaining.
"""

import re
import subprocess
import sys

from lint_common import cpp_files, finding, finish, parser

COMPLAINT = re.compile(r"^(?P<path>[^:\n]+):(?P<line>\d+):\d+: (?:error|warning): code should be clang-formatted", re.MULTILINE)


def main():
    arguments_parser = parser(__doc__)
    arguments_parser.add_argument("--fix", action="store_true", help="write the files as they should be")
    arguments = arguments_parser.parse_args()
    files = cpp_files(arguments.root)
    if not files:
        return finish("format", "0 files", [])
    mode = ["-i"] if arguments.fix else ["--dry-run"]
    result = subprocess.run(["clang-format", "--style=file", *mode, *files], cwd=arguments.root, capture_output=True, text=True)
    first = {}
    for match in COMPLAINT.finditer(result.stderr):
        first.setdefault(match.group("path"), int(match.group("line")))
    findings = [finding(path, line, "not formatted; scripts/lint/format.py --fix does it") for path, line in first.items()]
    if result.returncode != 0 and not findings:
        findings.append(finding(".clang-format", 0, result.stderr.strip()))
    return finish("format", f"{len(files)} files", findings)


if __name__ == "__main__":
    sys.exit(main())
