#!/usr/bin/python3
"""Counts the test cases of one ctest run: prints "PASSED FAILED".

count_tests.py JUNIT_FILE GTEST_FOLDER - the file that `ctest --output-junit` wrote, and the folder into which each
GoogleTest program wrote its cases (GTEST_OUTPUT=xml:FOLDER/). A program that crashed wrote none and counts as one failure.
"""

import pathlib
import sys
import xml.etree.ElementTree as xml


def gtest_counts(folder):
    """(passed, failed, programs with a failure)"""
    passed = failed = programs = 0
    for path in sorted(folder.glob("*.xml")):
        try:
            suites = xml.parse(path).getroot()
        except xml.ParseError:  # its program died while writing; ctest counts it
            continue
        bad = int(suites.get("failures", 0)) + int(suites.get("errors", 0))
        passed += int(suites.get("tests", 0)) - bad - int(suites.get("disabled", 0))
        failed += bad
        programs += bad > 0
    return passed, failed, programs


def failed_programs(junit):
    """Programs that ctest saw fail: by their exit status, a signal or a time-out."""
    if not junit.is_file():
        return 1
    return sum(case.find("failure") is not None or case.get("status") == "fail" for case in xml.parse(junit).iter("testcase"))


def main():
    junit, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    passed, failed, programs = gtest_counts(folder)
    print(passed, failed + max(0, failed_programs(junit) - programs))


if __name__ == "__main__":
    main()
