"""Tests of kernels notice a flipped bit: FILE KERNELS_CUDA_TEST [unittest options].

Every test is run on stand-ins that flip one bit of what the first step of each device writes (test_device.cpp). Those that pass all
the same are listed here, with the reason.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else None
SLOW = "huge_vectors"  # takes minutes where each step is looked at
NO_STEP = "it asks test_device() for no step"
LOWEST, EXPONENT, SIGN = 0, 30, 31  # of a float
CLOSE = "what it computes may be so far from the exact sums"
UNREAD = "most of what its step writes is the order of the places, which nothing reads afterwards"
ONE_OF_MANY = "of what its step writes it looks at one number, the first bad place; another test looks at the rows"
WRITTEN_ANEW = "what its first step writes, graphs write anew before the test looks at it"
# Suite or test -> why it passes.
PASS_ALWAYS = {"grid": NO_STEP, "stand_in_device": NO_STEP, "stand_in_module": NO_STEP,
               "bf16.is_the_nearest_of_8_bits_and_the_even_one_of_two": NO_STEP,
               "bf16.gradients_of_one_row_are_added_in_the_order_of_their_places": UNREAD,
               "rows_of_tables.gradients_of_one_row_are_added_in_the_order_of_their_places": UNREAD,
               "rows_of_tables.the_first_bad_place_is_named_whichever_thread_finds_it": ONE_OF_MANY,
               "graphs.are_as_far_as_events_say": WRITTEN_ANEW, "graphs.do_nothing_when_they_are_made": WRITTEN_ANEW,
               "graphs.read_what_lies_at_their_addresses_when_they_run": WRITTEN_ANEW}
PASS_WITH = {LOWEST: {"softmax_forward.has_no_limit_of_rows": CLOSE, "library_steps.a_convolution_is_what_its_definition_says": CLOSE,
                       "library_steps.gradients_of_a_convolution_are_those_of_its_forward_pass": CLOSE}, EXPONENT: {}, SIGN: {}}


def passed(bit):
    """@returns the names of tests that pass, without what follows a '/', and of all that were run"""
    with tempfile.TemporaryDirectory() as folder:
        results = pathlib.Path(folder, "results.json")
        environment = {**os.environ, "GTEST_OUTPUT": f"json:{results}", **({} if bit is None else {"DLRUN_FLIPPED_BIT": str(bit)})}
        subprocess.run([PROGRAM, f"--gtest_filter=-*{SLOW}*"], env=environment, stdout=subprocess.DEVNULL, check=False)
        suites = json.loads(results.read_text())["testsuites"]
    tests = [(f"{suite['name']}.{test['name']}", "failures" in test) for suite in suites for test in suite["testsuite"]]
    return {name for name, failed in tests if not failed}, {name for name, _ in tests}


def is_listed(name, reasons):
    """By its suite or its own name, without the variant of the device."""
    bare = name.removeprefix("variant/").split("/")[0]
    return bare in reasons or bare.split(".")[0] in reasons


class flipped_bits(unittest.TestCase):
    maxDiff = None

    def test_without_one_all_pass(self):
        good, run = passed(None)
        self.assertEqual(good, run)
        self.assertGreater(len(run), 100)

    def test_each_test_that_runs_a_step_fails(self):
        for bit, reasons in PASS_WITH.items():
            with self.subTest(bit=bit):
                good, _ = passed(bit)
                self.assertEqual(sorted(name for name in good if not is_listed(name, PASS_ALWAYS | reasons)), [])


if __name__ == "__main__":
    unittest.main()
