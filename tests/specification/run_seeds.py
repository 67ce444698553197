#!/usr/bin/python3
"""Runs the executable specification of the protocol: seeds with all rules kept, or with one of them broken.

A seed is printed when it fails; `--mode MODE --seed N --seeds 1 --trace` shows what happens in it. Mode `mixed` takes turns: two of
five seeds are default, one each undo, churn and stress. With several processes each runs its part of the seeds.
"""

import argparse
import collections
import multiprocessing
import sys
import time

from actor import violation
from planted_bugs import PLANTED, SCRIPTED
from simulation import MODES, simulation

MIXED = ("default", "undo", "churn", "default", "stress")
REPORT_EVERY = 200


def mode_of(mode, seed):
    return MIXED[seed % len(MIXED)] if mode == "mixed" else mode


def run_seed(seed, mode, bug=None, hosts=None, trace=False):
    """@returns (what was broken or None, the simulation)"""
    one = simulation(seed, bug, mode_of(mode, seed), hosts, trace)
    try:
        one.run()
    except violation as problem:
        return str(problem), one
    return None, one


def run_range(arguments, first, count):
    """@returns (seeds run, {mode: seeds}, [(seed, mode, problem)], counts of what happened)"""
    modes, failed, happened = collections.Counter(), [], collections.Counter()
    for seed in range(first, first + count):
        problem, one = run_seed(seed, arguments.mode, arguments.bug, arguments.hosts, arguments.trace)
        mode = mode_of(arguments.mode, seed)
        modes[mode] += 1
        happened.update(one.count)
        happened["events"] += one.event_number
        if problem:
            failed.append((seed, mode, problem))
            print(f"seed {seed} ({mode}): {problem}", flush=True)
            if not arguments.keep_going:
                break
    return sum(modes.values()), modes, failed, happened


def run_all(arguments):
    """In blocks, so that what was run so far is known when the command is ended."""
    begin, total = time.monotonic(), [0, collections.Counter(), [], collections.Counter()]
    block = max(1, min(REPORT_EVERY // arguments.processes, -(-arguments.seeds // arguments.processes)))
    starts = range(arguments.seed, arguments.seed + arguments.seeds, block)
    parts = [(arguments, first, min(block, arguments.seed + arguments.seeds - first)) for first in starts]
    with multiprocessing.Pool(arguments.processes) if arguments.processes > 1 else no_pool() as pool:
        for number, part in enumerate(pool.imap(run_part, parts), 1):
            total[0] += part[0]
            total[1].update(part[1])
            total[2] += part[2]
            total[3].update(part[3])
            if number % arguments.processes == 0 or number == len(parts):
                print(f"{total[0]} seeds from {arguments.seed} {dict(total[1])}: {len(total[2])} failed, "
                      f"{total[3]['events']} events, {time.monotonic() - begin:.0f} s", flush=True)
            if total[2] and not arguments.keep_going:
                break
    print({kind: count for kind, count in sorted(total[3].items())})
    return 1 if total[2] else 0


class no_pool:
    imap = staticmethod(map)

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        return False


def run_part(part):
    return run_range(*part)


def show_planted(planted):
    """Each where it is known to be found, and the same seed with the rule kept."""
    missed = 0
    for name, bug in planted.items():
        found, kept = bug.find(name), bug.find(None)
        missed += not bug.is_found(found) or kept is not None
        print(f"{name:16} {bug.rule:4} {bug.mode:8} seed {bug.seed:<6} {found or 'not found'}"
              + (f"; with the rule kept: {kept}" if kept else ""), flush=True)
    print(f"{len(planted) - missed} of {len(planted)} found; {len(SCRIPTED)} others by the script of a schedule")
    return 1 if missed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1000, metavar="N", help="how many (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="the first; the next adds one (default: 0)")
    parser.add_argument("--mode", choices=("mixed", *MODES), default="mixed",
                        help="; ".join(f"{name}: {what}" for name, what in MODES.items()) + " (default: mixed)")
    parser.add_argument("--hosts", type=int, choices=range(1, 6), metavar="N", help="1 to 5 in each seed (default: by seed)")
    parser.add_argument("--bug", choices=sorted(PLANTED | SCRIPTED), metavar="NAME", help="break one rule (planted_bugs.py)")
    parser.add_argument("--bugs", action="store_true", help="break each rule at the seed where that is known to be found")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="how many run beside each other (default: 1)")
    parser.add_argument("--keep-going", action="store_true", help="after a seed that fails")
    parser.add_argument("--trace", action="store_true", help="print what happens")
    arguments = parser.parse_args()
    if arguments.seeds < 1 or arguments.seed < 0 or arguments.processes < 1:
        parser.error("--seeds and --processes are at least 1, --seed at least 0")
    if arguments.bugs:
        return show_planted(PLANTED)
    return run_all(arguments)


if __name__ == "__main__":
    sys.exit(main())
