#!/usr/bin/python3
"""Reference of the job file: docs/spec.md has a row for each key of proto/job_spec.proto, where it belongs, and no other.

A table with the columns `key` and `type and range` lists the keys of one message, told by the names in the bold line or the
heading before it. Defaults and bounds are those of the rules. A kind without arguments (`relu`) is named in bold or in a table.
The table under "When a run is resumed" lists each key whose rule says `on_resume`, and no other.
"""

import re
import sys

from lint_common import finding, finish, parser, read

SCHEMA, REFERENCE = "proto/job_spec.proto", "docs/spec.md"
ROOT_MESSAGE = "JobSpec"
RESUMED = "## When a run is resumed"
# Tables that are not told by the name of a key: what is in the line or heading before them.
TOLD_BY_TEXT = {"Top level": ROOT_MESSAGE, "Layers": "LayerSpec", "Each of them": "DatasetSpec", "A column": "CsvColumn",
                "Learning rates": "LrScheduleSpec"}

TOKEN = re.compile(r'"(?:\\.|[^"])*"|[A-Za-z_][\w.]*|-?[\d.]+(?:e[+-]?\d+)?|[{}\[\]();=:,<>]')
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
HEADER = re.compile(r"^\| key \| type and range \|")


class field:
    """One key: its type (a name of a message, or of a scalar), rule and whether it is one of several kinds."""

    def __init__(self, name, kind, rule, is_choice):
        self.name, self.kind, self.rule, self.is_choice = name, kind, rule, is_choice


def value_of(tokens):
    """A rule's value: text, number, truth, list, or a name (FREE)."""
    token = tokens.pop(0)
    if token == "[":
        items = []
        while tokens[0] != "]":
            items.append(value_of(tokens))
            if tokens[0] == ",":
                tokens.pop(0)
        tokens.pop(0)
        return items
    if token[0] == '"':
        return token[1:-1]
    if token in ("true", "false"):
        return token == "true"
    return token if token[0].isalpha() else float(token)


def rule_in(tokens):
    """What stands between the braces of `[(rule) = {...}]`, from just behind the opening one."""
    rule = {}
    while tokens[0] != "}":
        name = tokens.pop(0)
        tokens.pop(0)  # the colon
        rule[name] = value_of(tokens)
        if tokens[0] == ",":
            tokens.pop(0)
    return rule


def field_in(statement, is_choice):
    """A field from the tokens of its statement, without the semicolon; None for `reserved` and the like."""
    if "=" not in statement:
        return None
    before = statement[:statement.index("=")]
    if len(before) < 2 or before[0] in ("reserved", "option", "syntax"):
        return None
    kind = "map" if before[0] == "map" else before[-2]
    rule = rule_in(statement[statement.index("{") + 1:]) if "{" in statement else {}
    return field(before[-1], kind, rule, is_choice)


def messages_of(text):
    """Name -> fields, for every message of the schema."""
    tokens = TOKEN.findall(re.sub(r"//[^\n]*", "", text))
    messages, opened, statement, inner = {}, [], [], 0
    for token in tokens:
        if token == "{" and not inner and statement[:1] in (["message"], ["oneof"]):
            opened.append(statement)
            if statement[0] == "message":
                messages[statement[1]] = []
            statement = []
        elif token == "}" and not inner and not statement:
            opened.pop()
        elif token == ";" and not inner:
            found = field_in(statement, bool(opened) and opened[-1][0] == "oneof")
            if found and opened:
                messages[opened[0][1]].append(found)
            statement = []
        else:
            inner += (token in "[{(") - (token in ")}]")
            statement.append(token)
    return messages


class table:
    """Rows of a table, by key: (line, type and range, default); and the texts that may say what it is of."""

    def __init__(self, line, captions):
        self.line, self.captions, self.rows = line, captions, {}


def tables_of(text):
    """Every table of keys in the reference."""
    tables, heading, caption, current, before = [], "", "", None, ""
    for number, line in enumerate(text.splitlines(), 1):
        if HEADER.match(line):
            current = table(number, [caption, heading])
            tables.append(current)
        elif line.startswith("|") and current:
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            for key in re.findall(r"`(\w+)`", cells[0]):
                current.rows[key] = (number, cells[1], cells[2])
        else:
            current = None
            if line.startswith("#"):
                heading = caption = line.lstrip("# ")
            elif line and not before:  # a paragraph begins
                caption = line
        before = line
    return tables


def names_in(caption):
    """The keys that a heading or a bold line is of."""
    bold = caption.split(" - ")[0] if caption.startswith("**`") else caption
    return re.findall(r"`(\w+)`", bold) if caption.startswith(("**`", "`")) else []


def messages_told(one, messages):
    """The names of the messages that a table is of."""
    for caption in one.captions:
        for text, message in TOLD_BY_TEXT.items():
            if caption.startswith(text):
                return [message]
        if names := names_in(caption):
            # of several fields of one name (`train`) the outermost is meant: messages are in that
            # order in the schema
            owners = [next((each.kind for fields in messages.values() for each in fields if each.name == name), name)
                      for name in names]
            return [owner for owner in owners if owner in messages]
    return []


def default_problem(rule, cell):
    """Why the cell does not tell the default, or None."""
    wanted = "required" if rule.get("required") else f"`{rule['default']}`" if "default" in rule else None
    if wanted is None or cell == wanted or (wanted == "required" and cell.startswith("required")):
        return None
    return f"the default is {wanted}, not {cell}"


def range_problem(each, cell):
    """Why the cell does not tell the bounds or the allowed texts, or None."""
    rule = each.rule
    if "one_of" in rule:
        named = re.findall(r"\w+", cell.removeprefix("one of"))
        return None if named == rule["one_of"] else f"allowed is one of {', '.join(rule['one_of'])}"
    if each.kind not in ("int64", "double"):
        return None
    wanted = [rule[name] for name in ("min", "max") if name in rule]
    found = [float(number) for number in NUMBER.findall(cell)]
    if found != wanted:
        return f"its bounds are {' and '.join(f'{bound:g}' for bound in wanted) or 'none'}"
    for name, words in (("min_exclusive", "above"), ("max_exclusive", "below")):
        if bool(rule.get(name)) != (words in cell):
            return f"a bound is {'exclusive' if rule.get(name) else 'inclusive'}: '{words}'"
    return None


def row_findings(one, message, fields):
    """What a table says of a message, and what it should."""
    keys = {each.name: each for each in fields if not each.is_choice}
    for name in keys.keys() - one.rows.keys():
        yield finding(REFERENCE, one.line, f"no row for `{name}` of {message}")
    for name, (line, kind, default) in one.rows.items():
        if name not in keys:
            yield finding(REFERENCE, line, f"`{name}`: {message} has no such key")
            continue
        for problem in (range_problem(keys[name], kind), default_problem(keys[name].rule, default)):
            if problem:
                yield finding(REFERENCE, line, f"`{name}`: {problem}")


def reachable(messages):
    """Those that a job file can hold, from the outermost."""
    seen, todo = [], [ROOT_MESSAGE]
    while todo:
        name = todo.pop(0)
        if name in messages and name not in seen:
            seen.append(name)
            todo += [each.kind for each in messages[name]]
    return seen


def rules_on_resume(messages, message=ROOT_MESSAGE, section=""):
    """(path, rule in lower case) of each key that has one of its own, from the outermost."""
    for each in messages.get(message, []):
        path = f"{section}{each.name}"
        if "on_resume" in each.rule:
            yield path, each.rule["on_resume"].lower()
        yield from rules_on_resume(messages, each.kind, path + ".")


def resume_findings(messages, text):
    """What the table of what a resumed run may have otherwise says, and what it should."""
    lines = text.splitlines()
    begin = lines.index(RESUMED) if RESUMED in lines else None
    wanted, found = dict(rules_on_resume(messages)), {}
    if begin is None:
        if wanted:
            yield finding(REFERENCE, 0, f"no section '{RESUMED}'")
        return
    for number, line in enumerate(lines[begin + 1:], begin + 2):
        if line.startswith("## "):
            break
        if row := re.match(r"\| ((?:`[\w.]+`(?:, )?)+) \| (\w+) \|", line):
            for path in re.findall(r"`([\w.]+)`", row[1]):
                found[path] = row[2]
                if wanted.get(path) != row[2]:
                    yield finding(REFERENCE, number, f"`{path}` is {wanted.get(path, 'without a rule')} on resume, not {row[2]}")
    for path in wanted.keys() - found.keys():
        yield finding(REFERENCE, begin + 1, f"no row for `{path}`, which is {wanted[path]} on resume")


def findings_of(messages, text):
    yield from resume_findings(messages, text)
    told = set()
    for one in tables_of(text):
        names = messages_told(one, messages)
        if not names:
            yield finding(REFERENCE, one.line, "which keys is this table of? Say so in the line before it")
        for name in names:
            told.add(name)
            yield from row_findings(one, name, messages[name])
    named = set(re.findall(r"\*\*`(\w+)`\*\*", text)) | set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    for name in reachable(messages):
        sections = [each for each in messages[name] if each.kind in messages]
        for each in sections:
            if each.name not in named and (each.is_choice or name not in told):
                yield finding(REFERENCE, 0, f"`{each.name}` of {name} is not named, in bold or in a table")
        values = [each.name for each in messages[name] if each not in sections]
        if values and name not in told:
            yield finding(REFERENCE, 0, f"no table for the keys of {name}: {', '.join(values)}")


def main():
    root = parser(__doc__).parse_args().root
    messages = messages_of(read(root, SCHEMA))
    findings = sorted(findings_of(messages, read(root, REFERENCE)), key=lambda one: one.line)
    count = sum(len(messages[name]) for name in reachable(messages))
    return finish("spec_reference", f"{count} keys", findings)


if __name__ == "__main__":
    sys.exit(main())
