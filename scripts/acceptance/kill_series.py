"""Runs under seeded kills of any role, one after the other, until enough processes were killed."""

import time
from collections import Counter

import acceptance_common as common
from acceptance_common import dlrun_job

import any_kills

KILLS_A_RUN = 4


def add_options(parser, kills):
    parser.add_argument("--kills", type=int, default=kills, metavar="N", help=f"go on until so many (default: {kills})")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the first run; the next adds one (default: 1)")
    parser.add_argument("--logs", nargs="+", default=["every_step", "snapshots"], help="durability.log (default: both)")
    parser.add_argument("--kinds", nargs="+", default=any_kills.SINGLE + any_kills.SEVERAL, help="of kills (default: all)")


def run(bench, cases, arguments):
    """The cases, each (name, specification, report of an undisturbed run), take turns by the seed.

    @returns whether every run ended with the parameters of its undisturbed one"""
    begin, good, runs, kills, kinds, redone = time.monotonic(), 0, 0, 0, Counter(), 0
    while kills < arguments.kills:
        seed, runs = arguments.seed + runs, runs + 1
        name, spec, reference = cases[seed % len(cases)]
        try:
            killed, plan, report = any_kills.run_once(bench, spec, seed, reference, arguments.kinds, KILLS_A_RUN)
            good, kills, redone = good + 1, kills + killed, redone + report["steps_redone"]
            kinds.update(kind for _, kind in plan)
            common.say(f"seed {seed} {name}: ok, {report['wall_seconds']:.1f} s, {killed} killed,"
                       f" {report['steps_redone']} steps redone: "
                       + ", ".join(f"{kind} from step {step}" for step, kind in plan))
        except dlrun_job.expectation_failed as problem:
            kills += KILLS_A_RUN  # so that a broken program comes to an end
            common.say(f"seed {seed} {name}: FAILED: {problem}")
    common.say(f"{good} of {runs} runs with the reference hash, nothing missing, duplicated or left; {kills} SIGKILLs,"
               f" {redone} steps redone; {dict(kinds)}; {time.monotonic() - begin:.0f} s")
    return good == runs
