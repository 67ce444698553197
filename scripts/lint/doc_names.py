#!/usr/bin/python3
"""Names and figures in Markdown: what a page names in `code` exists, and what it quotes from a constant is its value.

- `folder/file` of one of the top-level folders is a file or folder here (`engine/network` for network.hpp or network.cpp);
- `some_class::member` stands in the sources, both names of it; `some_test` is a test program or a test of processes;
- a figure with a comment behind it, as in "B = 2 <!-- = early_publish_bound -->" or "64 KiB <!-- = chunk_bytes -->", is
  the number of the constant (constexpr) of that name.
A line of docs/decisions or CHANGELOG.md may name what there was once: these pages are not looked at for names.
"""

import re
import sys

from lint_common import CPP_SUFFIXES, all_files, finding, finish, parser, read, without_comments

HISTORY = ("docs/decisions/", "CHANGELOG.md")
CODE = re.compile(r"`([^`\n]+)`")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
PATH = re.compile(r"[\w.-]+(?:/[\w.*-]+)+/?")
MEMBER = re.compile(r"(?:dlrun::)?([a-z]\w*)::([a-z]\w*)(?:\(\))?")
TEST = re.compile(r"[a-z]\w*_test")
FIGURE = re.compile(r"(\d[\d',.]*)(?: ?([a-zA-Z%]+))? ?<!-- = (\w+) -->")
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
# What a name is set to: = 2, {2}, = std::chrono::seconds(2), = std::size_t{1} << 20, = 64 * 1024
VALUE = r"\bconstexpr\b[^;]*\b{}\b\s*(?:=\s*|\{{)(?:[\w:]+[{{(])?(\d[\d'.]*)[)}}]?(?: (<<|\*) (\d+))?"
OUTSIDE = {"std", "caf", "fmt", "dnnl", "rocksdb", "testing", "dlrun", "torch"}


def number(text):
    """A number as docs and sources write it: 65,536 and 65'536 are one."""
    return float(re.sub(r"[',]", "", text.rstrip(".,'")))


class names_of_the_tree:
    """What may be named: paths, words of the sources, tests."""

    def __init__(self, root):
        self.files = all_files(root)
        self.paths = set(self.files)
        for path in self.files:
            parts = path.split("/")
            self.paths |= {"/".join(parts[:n]) for n in range(1, len(parts))}
        self.stems = {path.rsplit(".", 1)[0] for path in self.files}
        self.top = {path.split("/")[0] for path in self.files if "/" in path}
        self.tests = {path.split("/")[-1].rsplit(".", 1)[0] for path in self.files if path.startswith("tests/")}
        texts = [(path, read(root, path)) for path in self.files]
        self.words, self.code = set(), ""
        for path, text in texts:
            if path.endswith(CPP_SUFFIXES + (".proto",)):
                code = without_comments(text)
                self.words |= set(re.findall(r"\w+", code))
                self.code += "" if path.startswith("tests/") else code
            elif path.endswith("CMakeLists.txt"):
                self.tests |= set(re.findall(r"\b(\w+_test)\b", text))

    def lacks(self, name):
        """What is wrong with `name`, or nothing."""
        member = MEMBER.fullmatch(name)
        if PATH.fullmatch(name) and name.split("/")[0] in self.top and not re.search(r"\*|NNNN", name):
            plain = name.rstrip("/")
            return None if plain in self.paths or plain in self.stems else "there is no such file or folder"
        if member and member[1] not in OUTSIDE:
            unknown = [word for word in member.groups() if word not in self.words]
            return f"the sources have no `{unknown[0]}`" if unknown else None
        if TEST.fullmatch(name) and name not in self.tests:
            return "there is no such test"
        return None


def values_of(code, name):
    """The numbers to which the sources set `name`."""
    values = set()
    for match in re.finditer(VALUE.format(re.escape(name)), code):
        value = number(match[1])
        if match[2]:
            value = value * int(match[3]) if match[2] == "*" else value * 2 ** int(match[3])
        values.add(value)
    return values


def wrong_figures(path, text, code):
    for match in FIGURE.finditer(text):
        line = text.count("\n", 0, match.end()) + 1
        figure, unit, name = match.groups()
        said, values = number(figure) * UNITS.get(unit, 1), values_of(code, name)
        if len(values) != 1:
            yield finding(path, line, f"`{name}` is {len(values)} constants of the sources; name one that is unique")
        elif said not in values:
            yield finding(path, line, f"says {said:g}, but the sources set {name} to {values.pop():g}")


def main():
    root = parser(__doc__).parse_args().root
    tree, findings, count = names_of_the_tree(root), [], 0
    for path in (path for path in tree.files if path.endswith(".md")):
        text = FENCE.sub(lambda block: "\n" * block.group().count("\n"), read(root, path))
        findings += wrong_figures(path, text, tree.code)
        if path.startswith(HISTORY):
            continue
        for match in CODE.finditer(text):
            count += 1
            problem = tree.lacks(match[1])
            if problem:
                findings.append(finding(path, text.count("\n", 0, match.start()) + 1, f"`{match[1]}`: {problem}"))
    return finish("doc_names", f"{count} names", findings)


if __name__ == "__main__":
    sys.exit(main())
