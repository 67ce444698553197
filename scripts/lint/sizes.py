#!/usr/bin/python3
"""Sizes: no function over 60 lines; a warning for a file over 450.

A function that was longer when the rule came is listed in sizes_baseline.txt as `path name lines`. The list may only
shrink: who shortens one of them lowers or removes its line, and nothing new is added. It is empty.
"""

import pathlib
import re
import sys

from lint_common import cpp_files, finding, finish, parser, read, without_comments

FUNCTION_LINES_MAX = 60
FILE_LINES_MAX = 450
BASELINE = "scripts/lint/sizes_baseline.txt"
PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum)\b|\bextern\s*\"\"")
TYPE_HEAD = re.compile(r"\s*(?:template\s*<[^()]*>\s*)?(?:class|struct|union)\b")
NOISE = re.compile(r"\[\[.*?\]\]|\b(?:alignas|__attribute__|requires|decltype|noexcept|explicit)\s*\([^(){};]*(?:\([^()]*\)[^(){};]*)*\)", re.DOTALL)
MEMBER_INITIALISER = re.compile(r"\)[^()]*?(?<!:):(?!:).*?[,:\s][\w:]+(?:<[^;{}]*>)?\s*$", re.DOTALL)
LAMBDA = re.compile(r"\[[^\[\]]*\]\s*(?:\([^;]*\))?[\w\s:<>,&*\->]*$", re.DOTALL)


def outside_parentheses(text):
    """The text without what is in parentheses, so that default arguments do not look like assignments."""
    result, depth = [], 0
    for character in text:
        depth += character == "("
        if depth == 0:
            result.append(character)
        depth -= character == ")" and depth > 0
    return "".join(result)


def kind_of_block(head):
    """What a `{` after `head` opens, outside of functions: scope, function, initialiser or member (of a constructor's list)."""
    head = NOISE.sub(" ", head)
    plain = outside_parentheses(head)
    assigned = re.search(r"(?<![=!<>+\-*/%&|^])=(?!=)", re.sub(r"\boperator\s*\W+", "operator", plain))
    if assigned:
        return "function" if LAMBDA.search(head) else "initialiser"
    if "(" not in head:
        return "scope" if SCOPE.search(head) else "initialiser"
    if TYPE_HEAD.match(plain): # a specialisation such as struct handler<void(int)>
        return "scope"
    if MEMBER_INITIALISER.search(head) and not re.search(r"[)}]\s*$|\b(?:const|noexcept|override|final|try)\s*$", head):
        return "member"
    return "function"


def name_of(head):
    head = NOISE.sub(" ", head)
    gtest = re.search(r"\bTEST(?:_F|_P)?\s*\(\s*(\w+)\s*,\s*(\w+)", head)
    if gtest:
        return f"{gtest.group(1)}.{gtest.group(2)}"
    match = re.search(r"(operator\s*(?:\(\s*\)|[^\s(]+)|[~\w:]+)\s*\(", head)
    return re.sub(r"\s", "", match.group(1)) if match else "lambda"


def functions(text):
    """(name, first line, lines) of every outermost function body in C++ text: from its `{` to its `}`."""
    code = PREPROCESSOR.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), without_comments(text))
    head, stack, line, parentheses = "", [], 1, 0
    for character in code:
        inside = bool(stack) and stack[-1][0] in ("function", "initialiser", "member")
        if character == "\n":
            line += 1
        if inside:
            kind, name, begin, depth = stack[-1]
            depth += (character == "{") - (character == "}")
            if depth:
                stack[-1] = (kind, name, begin, depth)
                continue
            stack.pop()
            if kind == "function":
                yield name, begin, line - begin + 1
            head = head + "()" if kind == "member" else head + "=0" if kind == "initialiser" else ""
        elif parentheses:
            parentheses += (character == "(") - (character == ")")
            head += character
        elif character == "(":
            parentheses = 1
            head += character
        elif character == "{":
            kind = kind_of_block(head)
            if kind == "scope":
                stack.append((kind, "", line, 0))
                head = ""
            else:
                stack.append((kind, name_of(head), line, 1))
        elif character == "}":
            if stack:
                stack.pop()
            head = ""
        elif character == ";":
            head = ""
        else:
            head += character
            if character == ":" and re.search(r"\b(public|protected|private)\s*:$", head):
                head = ""


def read_baseline(root):
    path = pathlib.Path(root) / BASELINE
    entries = {}
    if path.is_file():
        for row in path.read_text().splitlines():
            if row.strip() and not row.startswith("#"):
                file_name, function, lines = row.split()
                entries[(file_name, function)] = int(lines)
    return entries


def main():
    arguments = parser(__doc__).parse_args()
    root = arguments.root.resolve()
    baseline, findings, warnings, count = read_baseline(root), [], [], 0
    files = cpp_files(root)
    for path in files:
        text = read(root, path)
        lines_in_file = text.count("\n")
        if lines_in_file > FILE_LINES_MAX:
            warnings.append(finding(path, 0, f"{lines_in_file} lines, over {FILE_LINES_MAX}: is it one thing?"))
        for name, begin, lines in functions(text):
            count += 1
            allowed = baseline.pop((path, name), FUNCTION_LINES_MAX)
            if lines > allowed:
                findings.append(finding(path, begin, f"{name} has {lines} lines, {allowed} are allowed"))
            elif FUNCTION_LINES_MAX < allowed and lines < allowed:
                findings.append(finding(BASELINE, 0, f"{path} {name} has {lines} lines now: lower or remove its {allowed}"))
    findings += [finding(BASELINE, 0, f"{path} {name} is gone: remove its line") for path, name in baseline]
    return finish("sizes", f"{count} functions in {len(files)} files", findings, warnings)


if __name__ == "__main__":
    sys.exit(main())
