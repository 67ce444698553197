#!/usr/bin/python3
"""Markdown links: every link to a file of this tree, and to a heading, leads somewhere. Links to the web are not followed."""

import posixpath
import re
import sys
import urllib.parse

from lint_common import all_files, finding, finish, parser, read

LINK = re.compile(r"(?<!!)\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|!\[[^\]]*\]\(([^)\s]+)\)|^\[[^\]]+\]:\s+(\S+)", re.MULTILINE)
CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*\s*$", re.MULTILINE)


def blanked(match):
    return re.sub(r"[^\n]", " ", match.group())


def anchors(text):
    """The names that headings get on GitHub."""
    names, seen = set(), {}
    fences = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
    for heading in HEADING.findall(fences.sub(blanked, text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        count = seen.get(slug, 0)
        seen[slug] = count + 1
        names.add(slug if count == 0 else f"{slug}-{count}")
    return names


def complaint(root, path, link):
    """Why `link` in file `path` leads nowhere, or None."""
    if re.match(r"[a-z][a-z0-9+.-]*:", link):
        return None
    target, _, anchor = urllib.parse.unquote(link).partition("#")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
    if target.startswith(".."):
        return f"{link} leaves the tree"
    if not (root / target).exists():
        return f"{link}: there is no {target}"
    if anchor and target.endswith(".md") and anchor not in anchors(read(root, target)):
        return f"{link}: {target} has no heading #{anchor}"
    return None


def main():
    arguments = parser(__doc__).parse_args()
    pages = [path for path in all_files(arguments.root) if path.endswith(".md")]
    findings, links = [], 0
    for path in pages:
        text = CODE.sub(blanked, read(arguments.root, path))
        for match in LINK.finditer(text):
            links += 1
            problem = complaint(arguments.root, path, next(group for group in match.groups() if group))
            if problem:
                findings.append(finding(path, text.count("\n", 0, match.start()) + 1, problem))
    return finish("markdown_links", f"{links} links in {len(pages)} pages", findings)


if __name__ == "__main__":
    sys.exit(main())
