"""What a process prints with `--log-format json`, read again: tests/cli/log_output_test.cpp has all of the format."""

import json
import re

PREFIXES = {"info": "", "warning": "dlrun: warning: ", "error": "dlrun: "}
OF_RUNTIME = "unshare: "
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def entry_of(line):
    """None: it is no such line."""
    try:
        told = json.loads(line)
    except ValueError:
        return None
    return told if isinstance(told, dict) and "message" in told else None


def text_of(line):
    """What it tells people."""
    told = entry_of(line)
    return line if told is None else PREFIXES[told["level"]] + told["message"]


def lines_of(text):
    """Of a log; the last one may still be written. No other character than a newline ends one."""
    return [line for line in text.split("\n") if line]


def text_of_all(text):
    return "\n".join(map(text_of, text.split("\n")))


def problem_of(line):
    """What a collector of logs would not understand of it; "": nothing."""
    told = entry_of(line)
    if told is None:
        return "it is no object with a message"
    if not TIME.fullmatch(told.get("time", "")):
        return "its time is none"
    if told.get("level") not in PREFIXES:
        return "its level is none"
    return "" if told["message"] and list(told)[:3] == ["time", "level", "message"] else "it does not say time, level and message first"


def problems_in(text):
    """Of the lines of a log, those that a collector would not understand, and why; but for those of what plays the runtime of
    containers, which may complain when one is stopped."""
    return [(line, why) for line in lines_of(text) if not line.startswith(OF_RUNTIME) and (why := problem_of(line))]
