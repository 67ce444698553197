#!/usr/bin/python3
"""Sizes: no function over 45 lines, no class over 300 lines or 30 methods; a warning for a file over 450.

A class has the methods whose bodies are written, in its header or in any source of its folder, and the lines of these
bodies: spread over files it stays one class. A nested class counts for itself, and so does a test.

What was larger when a rule came is listed in sizes_baseline.txt as `function path name lines` or `class folder name
lines methods`. The list may only shrink: nothing new is added, a function's number is exact, and a class that has
become smaller by a tenth has its numbers lowered or its line removed.
"""

import pathlib
import re
import sys

from lint_common import cpp_files, finding, finish, parser, read, without_comments

FUNCTION_LINES_MAX = 45
CLASS_LINES_MAX = 300
CLASS_METHODS_MAX = 30
CLASS_SLACK = 0.9  # a listed class may be this part of its numbers: a change of a line or two leaves the list alone
FILE_LINES_MAX = 450
BASELINE = "scripts/lint/sizes_baseline.txt"
PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum)\b|\bextern\s*\"\"")
TYPE_HEAD = re.compile(r"\s*(?:template\s*<[^()]*>\s*)?(?:class|struct|union)\b")
CLASS_NAME = re.compile(r"\b(?:class|struct|union)\s+((?:\w+::)*\w+)")
TEMPLATE_ARGUMENTS = re.compile(r"<[^<>]*>")
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


def without_template_arguments(text):
    while True:
        shorter = TEMPLATE_ARGUMENTS.sub("", text)
        if shorter == text:
            return text
        text = shorter


def name_of(head):
    head = NOISE.sub(" ", head)
    gtest = re.search(r"\bTEST(?:_F|_P)?\s*\(\s*(\w+)\s*,\s*(\w+)", head)
    if gtest:
        return f"{gtest.group(1)}.{gtest.group(2)}"
    head = head if "operator" in head else without_template_arguments(head)
    match = re.search(r"(operator\s*(?:\(\s*\)|[^\s(]+)|[~\w:]+)\s*\(", head)
    return re.sub(r"\s", "", match.group(1)) if match else "lambda"


def class_of_scope(head):
    """The name of the class that a scope is, or None for a namespace or an enum."""
    plain = without_template_arguments(outside_parentheses(NOISE.sub(" ", head)))
    if re.search(r"\b(?:namespace|enum)\b", plain):
        return None
    match = CLASS_NAME.search(plain)
    return match.group(1) if match else None


def functions(text):
    """(name, first line, lines) of every outermost function body in C++ text: from its `{` to its `}`."""
    for name, begin, lines, _ in scanned(text):
        if name is not None:
            yield name, begin, lines


def methods(text):
    """(class, lines) of every body of a method in C++ text, and (class, 0) for every class that is defined there."""
    for name, _, lines, around in scanned(text):
        if name is None:
            yield around, 0
            continue
        outer = name.partition("operator")[0].rstrip(":") if "operator" in name else name.rpartition("::")[0]
        within = "::".join(part for part in (around, outer) if part)
        if within:
            yield within, lines


def scanned(text):
    """(name, first line, lines, class around it) of every function body, and (None, line, 0, class) of every class."""
    code = PREPROCESSOR.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), without_comments(text))
    head, stack, line, parentheses = "", [], 1, 0

    def around():
        return "::".join(name for kind, name, *_ in stack if kind == "scope" and name)

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
                yield name, begin, line - begin + 1, around()
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
                stack.append((kind, class_of_scope(head), line, 0))
                if stack[-1][1]:
                    yield None, line, 0, around()
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


class measured_class:
    """A class, wherever in a folder its methods are written."""

    def __init__(self):
        self.path, self.lines, self.methods, self.is_defined = "", 0, 0, False

    def add(self, path, lines):
        if lines == 0:
            self.is_defined, self.path = True, path
        else:
            self.lines, self.methods = self.lines + lines, self.methods + 1


def measure_classes(texts):
    """{(folder, class): measured_class} of the classes that are defined in these (path, text)."""
    classes = {}
    for path, text in texts:
        folder = path.rpartition("/")[0] or "."
        for name, lines in methods(text):
            classes.setdefault((folder, name), measured_class()).add(path, lines)
    return {key: one for key, one in classes.items() if one.is_defined}


def read_baseline(root):
    """({(path, function): lines}, {(folder, class): (lines, methods)})"""
    path = pathlib.Path(root) / BASELINE
    functions_listed, classes_listed = {}, {}
    for row in path.read_text().splitlines() if path.is_file() else []:
        if not row.strip() or row.startswith("#"):
            continue
        kind, place, name, *numbers = row.split()
        numbers = tuple(int(number) for number in numbers)
        if kind == "function":
            functions_listed[(place, name)] = numbers[0]
        else:
            classes_listed[(place, name)] = numbers
    return functions_listed, classes_listed


def look_at_function(path, name, begin, lines, listed):
    allowed = listed.pop((path, name), FUNCTION_LINES_MAX)
    if lines > allowed:
        yield finding(path, begin, f"{name} has {lines} lines, {allowed} are allowed")
    elif FUNCTION_LINES_MAX < allowed and lines < allowed:
        yield finding(BASELINE, 0, f"{path} {name} has {lines} lines now: lower or remove its {allowed}")


def look_at_class(key, one, listed):
    limits = (CLASS_LINES_MAX, CLASS_METHODS_MAX)
    numbers, allowed = (one.lines, one.methods), listed.pop(key, None)
    if allowed is None and any(number > limit for number, limit in zip(numbers, limits)):
        yield finding(one.path, 0, f"{key[1]} has {one.lines} lines in {one.methods} methods, {limits[0]} in {limits[1]} "
                                   "are allowed: cut it by what its parts are for")
    elif allowed is not None and any(number > max(most, limit) for number, most, limit in zip(numbers, allowed, limits)):
        yield finding(one.path, 0, f"{key[1]} has {one.lines} lines in {one.methods} methods, more than the {allowed[0]} in "
                                   f"{allowed[1]} that {BASELINE} allows")
    elif allowed is not None and (all(number <= limit for number, limit in zip(numbers, limits)) or
                                  any(number < CLASS_SLACK * most and most > limit
                                      for number, most, limit in zip(numbers, allowed, limits))):
        yield finding(BASELINE, 0, f"{key[0]} {key[1]} has {one.lines} lines in {one.methods} methods now: lower or remove "
                                   f"its {allowed[0]} {allowed[1]}")


def main():
    arguments = parser(__doc__).parse_args()
    root = arguments.root.resolve()
    functions_listed, classes_listed = read_baseline(root)
    findings, warnings, count = [], [], 0
    texts = [(path, read(root, path)) for path in cpp_files(root)]
    for path, text in texts:
        lines_in_file = text.count("\n")
        if lines_in_file > FILE_LINES_MAX:
            warnings.append(finding(path, 0, f"{lines_in_file} lines, over {FILE_LINES_MAX}: is it one thing?"))
        for name, begin, lines in functions(text):
            count += 1
            findings += look_at_function(path, name, begin, lines, functions_listed)
    classes = measure_classes(texts)
    for key, one in sorted(classes.items()):
        findings += look_at_class(key, one, classes_listed)
    findings += [finding(BASELINE, 0, f"{place} {name} is gone: remove its line") for place, name in (*functions_listed, *classes_listed)]
    return finish("sizes", f"{count} functions and {len(classes)} classes in {len(texts)} files", findings, warnings)


if __name__ == "__main__":
    sys.exit(main())
