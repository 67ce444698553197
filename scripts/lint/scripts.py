#!/usr/bin/python3
"""Scripts: each parses, each that has a #! line may be executed, and each in Python that takes options explains them (--help),
for which it must find what it imports; packages that are not installed are not looked for. Python is Debian's own interpreter.
"""

import ast
import os
import re
import subprocess
import sys

from lint_common import all_files, finding, finish, in_parallel, parser

INTERPRETERS = {"#!/bin/bash": "bash", "#!/usr/bin/python3": "python"}
TAKES_OPTIONS = re.compile(r"\.parse_args\(\)")
MISSING_MODULE = re.compile(r"No module named '([^'.]+)")


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


def help_problem(root, path, modules):
    """How the script fails when asked for its options, or None."""
    result = subprocess.run([(root / path).resolve(), "--help"], capture_output=True, text=True,
                            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    missing = MISSING_MODULE.search(result.stderr)
    if result.returncode == 0 or "Traceback" not in result.stderr or (missing and missing[1] not in modules):
        return None
    return f"--help fails: {result.stderr.strip().splitlines()[-1]}"


def main():
    arguments = parser(__doc__).parse_args()
    root, findings, count, with_options = arguments.root, [], 0, []
    paths = all_files(root)
    for path in paths:
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
        elif opening.endswith("python3") and os.access(root / path, os.X_OK) and TAKES_OPTIONS.search((root / path).read_text()):
            with_options.append(path)
    modules = {path.split("/")[-1].removesuffix(".py") for path in paths if path.endswith(".py")}
    for path, problem in zip(with_options, in_parallel(lambda one: help_problem(root, one, modules), with_options)):
        if problem:
            findings.append(finding(path, 0, problem))
    return finish("scripts", f"{count} scripts", findings)


if __name__ == "__main__":
    sys.exit(main())
