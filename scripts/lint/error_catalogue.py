#!/usr/bin/python3
"""Catalogue of errors: docs/errors.md has a row for each error code with its exit code, and its messages are what the sources say.

- Codes are those of include/dlrun/error.hpp, exit codes those of job/exit_code.cpp.
- A fenced block without a language holds messages, one a line (a line `$ ...` is a command). Each plain word of a message must be
  in a text of the sources that fits there: a literal whose placeholders are filled. Words in quotes, paths, numbers, keys of
  the job file and texts of the operating system are values.
"""

import os
import re
import signal
import sys

from lint_common import cpp_files, finding, finish, parser, read, without_comments

CATALOGUE = "docs/errors.md"
CODES, EXIT_CODES, EXIT_OF_CODES = "include/dlrun/error.hpp", "job/exit_code.hpp", "job/exit_code.cpp"
NOT_SAID = ("tests/", "benchmarks/", "examples/")
# What libraries and servers say in our messages: CLI11, yaml-cpp, zlib, libpng, RocksDB, protobuf,
# libcurl, etcd, Kubernetes.
FOREIGN = ("The following argument was not expected", "Run with --help for more information", "end of sequence flow not found",
           "incorrect data check", "IDAT", "IO error", "While appending to file", "Corruption", "checksum mismatch in file", "modified",
           "Failed to connect to", "etcdserver: too many operations in txn request", "cannot open shared object file",
           "Forbidden", "Error from server", "is forbidden", "is forbidden: violates PodSecurity", "Unable to connect to the server: dial tcp",
           "i/o timeout", "etcdserver: request timed out", "Pending, ImagePullBackOff: no such image", "Succeeded",
           "nodes are available", "Insufficient cpu", "Back-off pulling image", "unable to create new content in namespace",
           "because it is being terminated", "error when creating", "would violate PodSecurity", "User")

LITERALS = re.compile(r'"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*')
ONE_LITERAL = re.compile(r'"((?:\\.|[^"\\\n])*)"')
FORMAT_PART = re.compile(r"\{\{|\}\}|(?P<placeholder>\{[^{}]*\})|[^{}]+|[{}]")
BLOCK = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| `(\w+)` \| (\d+) \|", re.MULTILINE)
QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
WORD = re.compile(r"[A-Za-z]{4,}")
VALUE = re.compile(r"[^\s]*[/_.\d=<>\\-][^\s]*")  # tokens that are paths, numbers, keys
LETTERS_MIN = 4


def unescaped(literal):
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), literal)


def constant_parts(line):
    """Those between the placeholders of a format string."""
    parts = [""]
    for match in FORMAT_PART.finditer(line):
        if match["placeholder"]:
            parts.append("")
        else:
            parts[-1] += {"{{": "{", "}}": "}"}.get(match[0], match[0])
    return tuple(parts)


def texts_of(root):
    """The lines of all literals of the sources, each as its constant parts."""
    texts = set()
    for path in cpp_files(root):
        if path.startswith(NOT_SAID):
            continue
        for match in LITERALS.finditer(without_comments(read(root, path), keep_strings=True)):
            text = "".join(unescaped(part) for part in ONE_LITERAL.findall(match.group()))
            for line in text.split("\n"):
                parts = constant_parts(line)
                if sum(map(len, re.findall(r"[A-Za-z]+", "".join(parts)))) >= LETTERS_MIN:
                    texts.add(parts)
    return texts


def covered_by(texts, message):
    """Which characters of a message are constant parts of texts that fit there."""
    covered = [False] * len(message)
    for parts in texts:
        if not all(part in message for part in parts):
            continue
        pattern = ".*?".join(f"({re.escape(part)})" for part in parts)
        for match in re.finditer(pattern, message):
            for number in range(1, len(parts) + 1):
                covered[match.start(number):match.end(number)] = [True] * (match.end(number) - match.start(number))
    return covered


def unknown_words(message, texts, values):
    """The plain words that no text of the sources has there."""
    covered = covered_by(texts, message)
    for pattern in (QUOTED, VALUE):
        for match in pattern.finditer(message):
            covered[match.start():match.end()] = [True] * len(match.group())
    for value in values:
        for match in re.finditer(rf"\b{re.escape(value)}\b", message):
            covered[match.start():match.end()] = [True] * len(match.group())
    return [match.group() for match in WORD.finditer(message) if not all(covered[match.start():match.end()])]


def values_of(root):
    """Words that stand for themselves in messages: names of the job file, what the operating system and libraries say."""
    names = set(re.findall(r"\b[a-z]\w{3,}\b", read(root, "proto/job_spec.proto")))
    signals = [one.name.removeprefix("SIG") for one in signal.Signals]
    return [*names, *signals, *(os.strerror(number) for number in range(1, 134)), *FOREIGN]


def message_findings(root, text):
    """How many messages there are, and what is wrong with them."""
    texts, values, count, findings = texts_of(root), values_of(root), 0, []
    for block in BLOCK.finditer(text):
        first = text.count("\n", 0, block.start(1)) + 1
        for line, message in enumerate(block.group(1).splitlines(), first):
            if message.startswith("$ ") or not message.strip():
                continue
            count += 1
            if unknown := unknown_words(message.removeprefix("dlrun: "), texts, values):
                findings.append(finding(CATALOGUE, line, f"no source says '{' '.join(unknown)}' there: {message}"))
    return count, findings


def exit_codes(root):
    """Error code -> exit code, as the program has it."""
    numbers = dict(re.findall(r"^\s*(\w+) = (\d+),", read(root, EXIT_CODES), re.MULTILINE))
    codes = {}
    for cases, name in re.findall(r"((?:case error_code::\w+:\s*)+)return exit_code::(\w+);", read(root, EXIT_OF_CODES)):
        codes.update({code: numbers.get(name) for code in re.findall(r"::(\w+):", cases)})
    return codes


def code_findings(root, text):
    """How many codes there are, and what is wrong with their rows."""
    body = re.search(r"enum class error_code[^{]*\{(.*?)\};", without_comments(read(root, CODES)), re.DOTALL).group(1)
    codes, rows = re.findall(r"([a-z]\w*)\s*(?:=[^,]*)?,", body), {match[1]: match for match in ROW.finditer(text)}
    findings, exits = [], exit_codes(root)
    for code in codes:
        if code not in rows:
            findings.append(finding(CATALOGUE, 0, f"no row for the code `{code}`"))
        elif rows[code][2] != exits.get(code):
            line = text.count("\n", 0, rows[code].start()) + 1
            findings.append(finding(CATALOGUE, line, f"`{code}` ends the program with {exits.get(code)}, not {rows[code][2]}"))
    for name in rows.keys() - set(codes):
        findings.append(finding(CATALOGUE, text.count("\n", 0, rows[name].start()) + 1, f"there is no error code `{name}`"))
    return len(codes), findings


def main():
    root = parser(__doc__).parse_args().root
    text = read(root, CATALOGUE)
    codes, of_codes = code_findings(root, text)
    messages, of_messages = message_findings(root, text)
    return finish("error_catalogue", f"{codes} codes, {messages} messages", of_codes + of_messages)


if __name__ == "__main__":
    sys.exit(main())
