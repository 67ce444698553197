#!/usr/bin/python3
"""Actor READMEs: each folder of actors/ has one, of at most 60 lines; a role's answers five questions.

Owns, Handles, Sends, Fails when, Recovers by - each as the begin of a line, a heading or in bold.
"""

import re
import sys

from lint_common import CPP_SUFFIXES, all_files, finding, finish, parser, read

LINES_MAX = 60
NOT_ROLES = {"protocol", "common"}
QUESTIONS = ["Owns", "Handles", "Sends", "Fails when", "Recovers by"]


def main():
    arguments = parser(__doc__).parse_args()
    files = all_files(arguments.root)
    folders = sorted({path.split("/")[1] for path in files if path.startswith("actors/") and path.count("/") > 1
                      and path.endswith(CPP_SUFFIXES)})
    findings = []
    for folder in folders:
        path = f"actors/{folder}/README.md"
        if path not in files:
            findings.append(finding(path, 0, "is missing: " + " / ".join(QUESTIONS)))
            continue
        text = read(arguments.root, path)
        if text.count("\n") > LINES_MAX:
            findings.append(finding(path, LINES_MAX + 1, f"{text.count(chr(10))} lines, {LINES_MAX} are allowed"))
        for question in [] if folder in NOT_ROLES else QUESTIONS:
            if not re.search(rf"^[\s#*|-]*{question}\b", text, re.MULTILINE):
                findings.append(finding(path, 0, f"does not say '{question}'"))
    return finish("actor_readmes", f"{len(folders)} folders", findings)


if __name__ == "__main__":
    sys.exit(main())
