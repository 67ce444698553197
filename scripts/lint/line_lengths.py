#!/usr/bin/python3
"""Line lengths: prose of Markdown files wraps at 110 characters, comments at 100.

Long lines are hard to read and to compare. Left alone are what cannot be wrapped: tables, code blocks, headings and
words (links, paths) longer than that; and a comment behind code, which the formatter wraps with it.
--fix wraps the paragraphs that are too wide, and touches no other.
"""

import re
import sys

from lint_common import all_files, finding, finish, parser, read

PROSE_COLUMNS = 110
COMMENT_COLUMNS = 100
COMMENT_FILES = {".hpp": "//", ".cpp": "//", ".cu": "//", ".proto": "//", ".py": "#", ".cmake": "#"}
# Kept whole: a link, a piece of code; then a word with what is stuck to it.
ATOM = re.compile(r"(?:\[[^\]]*\]\([^)\s]*\)|`[^`]*`|[^\s`\[]|\[|`)+")
ITEM = re.compile(r"(?P<marker>[-*+]|\d+\.)\s+")
STARTS_MARKUP = re.compile(r"^(?:[-*+>|]|#+|\d+[.)])$|^[|>#]|^(?:```|~~~)")
DOC_TAG = re.compile(r"@\w+|\\\w+ |[-*] |\d+\. |\([a-z0-9]\) ")
DRAWING = re.compile(r"\S {2,}\S|[\u2500-\u257f]|-->|^NOLINT|^clang-format")


def wrap(text, first, rest, columns):
    """Lines of `text` at most `columns` wide where its words allow it; `first` and `rest` stand before them."""
    lines, line = [], first
    words = ATOM.findall(text)
    for word in words:
        empty = line in (first, rest)
        if not empty and len(line) + 1 + len(word) > columns and not STARTS_MARKUP.match(word):
            lines.append(line)
            line, empty = rest, True
        line += word if empty else " " + word
    return [*lines, line]


def fits(lines, columns):
    return all(len(line) <= columns for line in lines)


class markdown_paragraphs:
    """Finds the paragraphs and list items of a Markdown file: (first line, last line + 1, marker, indentation of the rest)."""

    def __init__(self, lines):
        self.lines = lines

    def __iter__(self):
        fenced, start, prefix, hang = None, None, "", ""
        for number, line in enumerate([*self.lines, ""]):
            stripped = line.strip()
            fence = re.match(r"(```+|~~~+)", stripped)
            item = ITEM.match(line.lstrip())
            plain = not fenced and stripped and not fence and not self.is_markup(line)
            if start is not None and (not plain or item):
                yield start, number, prefix, hang
                start = None
            if fence and (fenced is None or stripped.startswith(fenced)):
                fenced = None if fenced else fence.group()
            if plain and start is None:
                start = number
                indent = line[:len(line) - len(line.lstrip())]
                prefix = indent + (item.group() if item else "")
                hang = " " * len(prefix)

    @staticmethod
    def is_markup(line):
        return bool(re.match(r"\s*(?:\||#{1,6} |<|>|\[[^\]]+\]:|={3,}$|-{3,}$)", line))


def wrapped_markdown(text):
    """The text wrapped, and the numbers of lines (from 1) that were too long."""
    lines, result, long, done = text.split("\n"), [], [], 0
    for start, end, prefix, hang in markdown_paragraphs(lines):
        result += lines[done:start]
        paragraph = lines[start:end]
        done = end
        body = " ".join(line.strip() for line in [paragraph[0][len(prefix):], *paragraph[1:]])
        wrapped = wrap(body, prefix, hang, PROSE_COLUMNS)
        if fits(paragraph, PROSE_COLUMNS) or any(line.endswith("  ") for line in paragraph) or wrapped == paragraph:
            result += paragraph
            continue
        long.append(start + 1 + next(at for at, line in enumerate(paragraph) if len(line) > PROSE_COLUMNS))
        result += wrapped
    return "\n".join([*result, *lines[done:]]), long


def comment_parts(line, mark):
    """Indentation with the comment's mark, what is between mark and text, and the text; None for a line that is no comment."""
    match = re.match(r"(\s*" + mark + ("+[!<]?" if mark == "//" else "+") + r")(\s*)(.*)$", line)
    return match.groups() if match and not line.lstrip().startswith("#!") else None


def comment_paragraphs(lines, mark):
    """The paragraphs of a file's comments as lists of (line number, parts): lines of one mark and one indentation, of which
    none but the first begins a list item or a tag. What follows an item may be indented further."""
    paragraph = []
    for number, line in enumerate([*lines, ""]):
        parts = comment_parts(line, mark)
        usable = parts and parts[1] and parts[2] and not DRAWING.search(parts[2])
        begins = not usable or DOC_TAG.match(parts[2])
        if paragraph and not begins:
            first, last = paragraph[0][1], paragraph[-1][1]
            deeper = len(paragraph) == 1 and DOC_TAG.match(first[2]) and len(parts[1]) > len(first[1])
            begins = parts[0] != last[0] or (parts[1] != last[1] and not deeper)
        if begins and paragraph:
            yield paragraph
            paragraph = []
        if usable:
            paragraph.append((number, parts))


def wrapped_comments(text, mark):
    """As wrapped_markdown, for the comments of a source."""
    lines, result, long, done = text.split("\n"), [], [], 0
    for paragraph in comment_paragraphs(lines, mark):
        start, end = paragraph[0][0], paragraph[-1][0] + 1
        if fits(lines[start:end], COMMENT_COLUMNS):
            continue
        head, tail = paragraph[0][1], paragraph[-1][1]
        first, rest = head[0] + head[1], tail[0] + tail[1]
        if len(paragraph) == 1 and DOC_TAG.match(head[2]):
            rest = first + "  "
        wrapped = wrap(" ".join(parts[2] for _, parts in paragraph), first, rest, COMMENT_COLUMNS)
        if wrapped != lines[start:end]:
            long += [number + 1 for number in range(start, end) if len(lines[number]) > COMMENT_COLUMNS][:1]
            result += lines[done:start] + wrapped
            done = end
    return "\n".join([*result, *lines[done:]]), long


def looked_at(root):
    """(path, function that wraps its text, what it says)"""
    for path in all_files(root):
        suffix = "." + path.rsplit(".", 1)[-1]
        if suffix == ".md":
            yield path, wrapped_markdown, f"prose wider than {PROSE_COLUMNS} characters"
        elif suffix in COMMENT_FILES:
            mark = COMMENT_FILES[suffix]
            yield path, lambda text, mark=mark: wrapped_comments(text, mark), f"a comment wider than {COMMENT_COLUMNS} characters"


def main():
    arguments_parser = parser(__doc__)
    arguments_parser.add_argument("--fix", action="store_true", help="wrap what is too wide")
    arguments = arguments_parser.parse_args()
    findings, count = [], 0
    for path, wrapped, message in looked_at(arguments.root):
        count += 1
        text = read(arguments.root, path)
        new, long = wrapped(text)
        if arguments.fix and new != text:
            (arguments.root / path).write_text(new, encoding="utf-8")
        elif not arguments.fix:
            findings += [finding(path, line, f"{message}; scripts/lint/line_lengths.py --fix wraps it") for line in long]
    return finish("line_lengths", f"{count} files", findings)


if __name__ == "__main__":
    sys.exit(main())
