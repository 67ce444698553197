#!/usr/bin/python3
"""Says which test cases of one ctest run failed, and why: a line for each.

failed_tests.py JUNIT_FILE - the file that `ctest --output-junit` wrote, with the whole output of what failed. A case that had
begun and not ended, as when its program hung or crashed, is named as such; a program that says nothing of its cases, by its
last line.
"""

import pathlib
import re
import sys
import xml.etree.ElementTree as xml

GTEST_BEGUN = re.compile(r"^\[ RUN      \] (\S+)", re.M)
GTEST_ENDED = re.compile(r"^\[ {2,}(?:OK|FAILED|SKIPPED) {1,2}\] ([\w./]+\.[\w./]+)", re.M)
GTEST_FAILED = re.compile(r"^\[  FAILED  \] (\S+?),? .*\(\d+ ms\)$", re.M)
GTEST_FAILURE = re.compile(r"^(\S+:\d+): Failure\n(.*)", re.M)
UNITTEST_FAILED = re.compile(r"^(?:FAIL|ERROR): (\S+) \(.*?\n-{70}\n(.*?)\n\n", re.M | re.S)
LENGTH_MAX = 200


def gtest_cases(output):
    """(case, why) for each that failed or did not end."""
    begun = list(GTEST_BEGUN.finditer(output))
    ends = [one.start() for one in begun[1:]] + [len(output)]
    for one, end in zip(begun, ends):
        case, text = one.group(1), output[one.start() : end]
        failure = GTEST_FAILURE.search(text)
        why = f"{pathlib.Path(failure.group(1)).name}: {failure.group(2).strip()}" if failure else ""
        if case not in GTEST_ENDED.findall(text):
            yield case, "did not end" + (f"; {why}" if why else "")
        elif case in GTEST_FAILED.findall(text):
            yield case, why


def unittest_cases(output):
    for one in UNITTEST_FAILED.finditer(output):
        yield one.group(1), one.group(2).strip().splitlines()[-1]


def failed_cases(junit):
    """(program, case, why) of each; `case` is empty where the program names none."""
    for program in xml.parse(junit).iter("testcase"):
        if program.find("failure") is None and program.get("status") != "fail":
            continue
        output = program.findtext("system-out") or ""
        cases = [*gtest_cases(output), *unittest_cases(output)]
        if not cases:
            cases = [("", (output.strip().splitlines() or ["it said nothing"])[-1])]
        for case, why in cases:
            yield program.get("name"), case, why


def main():
    junit = pathlib.Path(sys.argv[1])
    if not junit.is_file():
        return
    for program, case, why in failed_cases(junit):
        print(f"failed: {program} {case}: {why}".replace(" :", ":")[:LENGTH_MAX])


if __name__ == "__main__":
    main()
