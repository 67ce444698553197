#!/usr/bin/python3
"""Quoted code: a block that says where it is from is what stands there, word for word.

In a page: `<!-- from data/permutation.hpp -->` on the line before a fenced block. A line `...` in the block, or `// ...`,
stands for lines that were left out.
"""

import re
import sys

from lint_common import all_files, finding, finish, parser, read

QUOTE = re.compile(r"^<!-- from (\S+) -->\n+```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LEFT_OUT = re.compile(r"^\s*(?://\s*)?\.\.\.\s*$", re.MULTILINE)


def complaint(root, source, block):
    """Why the block is no quotation of the source, or None."""
    if not (root / source).is_file():
        return f"quotes {source}, which is not there"
    text, position = read(root, source), 0
    for part in LEFT_OUT.split(block):
        part = part.strip("\n")
        found = text.find(part, position)
        if found < 0:
            line = next((row for row in part.splitlines() if row.strip() and row not in text), part.splitlines()[0])
            return f"is not what {source} says: {line.strip()}"
        position = found + len(part)
    return None


def main():
    arguments = parser(__doc__).parse_args()
    findings, blocks = [], 0
    for path in all_files(arguments.root):
        if not path.endswith(".md"):
            continue
        text = read(arguments.root, path)
        for match in QUOTE.finditer(text):
            blocks += 1
            problem = complaint(arguments.root, match.group(1), match.group(2))
            if problem:
                findings.append(finding(path, text.count("\n", 0, match.start()) + 1, problem))
    return finish("quoted_code", f"{blocks} blocks", findings)


if __name__ == "__main__":
    sys.exit(main())
