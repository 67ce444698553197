#!/usr/bin/python3
"""Scripts: each parses, and each that has a #! line may be executed. Python runs with Debian's own interpreter."""

import ast
import os
import subprocess
import sys

from lint_common import all_files, finding, finish, parser

INTERPRETERS = {"#!/bin/bash": "bash", "#!/usr/bin/python3": "python"}


def first_line(path):
    with open(path, "rb") as file:
        return file.readline(80).decode("utf-8", errors="replace").rstrip("\n")


def syntax_problem(path, language):
    """Where the script does not parse, or None."""
    if language == "bash":
        result = subprocess.run(["bash", "-n", path], capture_output=True, text=True)
        return result.stderr.strip() or None
    try:
        ast.parse(path.read_bytes(), filename=str(path))
    except SyntaxError as problem:
        return f"line {problem.lineno}: {problem.msg}"
    return None


def main():
    arguments = parser(__doc__).parse_args()
    root, findings, count = arguments.root, [], 0
    for path in all_files(root):
        name = path.split("/")[-1]
        opening = first_line(root / path)
        if not (opening.startswith("#!") or name.endswith((".sh", ".py"))):
            continue
        count += 1
        if opening.startswith("#!"):
            if opening not in INTERPRETERS:
                findings.append(finding(path, 1, f"{opening}: use one of {', '.join(INTERPRETERS)}"))
                continue
            if not os.access(root / path, os.X_OK):
                findings.append(finding(path, 0, "has a #! line but may not be executed: chmod +x"))
        language = INTERPRETERS.get(opening, "bash" if name.endswith(".sh") else "python")
        problem = syntax_problem(root / path, language)
        if problem:
            findings.append(finding(path, 0, problem))
    return finish("scripts", f"{count} scripts", findings)


if __name__ == "__main__":
    sys.exit(main())
