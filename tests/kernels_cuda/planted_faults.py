#!/usr/bin/python3
"""Removes each barrier of the GPU kernels, and each event and wait of what asks for them, in turn, and looks whether the tests notice.

Barriers are __syncthreads() of kernels/cuda; events and waits are record(), wait() and finish() of a device in engine/cuda, and flush(),
which puts gathered steps into a lane before something else. The tests
that run on the stand-in are built once more, in a folder that is removed, with a switch at each of these: one of them is off in a run.
Only what includes such a place is compiled, as the build compiles it. What the tests notice (they fail, end, or do not end) is caught.
Needs a build of kernels_cuda_test and engine_cuda_test by Ninja.
--threads removes the barriers from the build with a thread of the host for each thread of a block instead, and looks whether
ThreadSanitizer notices: it needs kernels_cuda_threads_test. Ends with 1 where fewer than 95 % are caught, and where one is not
that EQUIVALENT does not name.
"""

import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lint"))

from lint_common import without_comments

TESTS = ("kernels_cuda_test", "engine_cuda_test")
WITH_THREADS = ("kernels_cuda_threads_test",)
LEAST = 0.95
CPU_SECONDS_MAX = 300  # a busy host takes longer by the clock

# Folder -> (what is removed there, what takes its place).
DEVICE = r"\b(?:on_\.|device_->|inner_->)"
ARGUMENTS = r"\((?:[^()]|\([^()]*\))*\)"
REMOVED = {
    "kernels/cuda": [(re.compile(r"\b__syncthreads\(\)"), "static_cast<void>(0)")],
    "engine/cuda": [(re.compile(DEVICE + r"(?:record|wait)" + ARGUMENTS), "static_cast<void>(0)"),
                    (re.compile(DEVICE + r"finish" + ARGUMENTS), "::dlrun::result<void>{}"),
                    (re.compile(r"(?<!void )\b(?:on_\.)?flush\((?:on)?\)(?=;)"), "static_cast<void>(0)")],
}
# Those that no test can notice, and why. Key: as printed, without the line.
EQUIVALENT = {}

SWITCH = "PLANTED_FAULT"
HEADER = f"""#pragma once
#include <cstdlib>
/// Number of the place that is left out in this run; 0: none.
inline const int planted_fault = std::atoi(std::getenv("{SWITCH}"));
"""


class place:
    """A barrier, an event or a wait: the `number`-th that is found, the `own`-th of its file."""

    def __init__(self, number, path, own, line, text, instead):
        self.number, self.path, self.line, self.text = number, path, line, " ".join(text.split())
        self.name = f"{path}#{own}"
        self.switched = f"(planted_fault == {number} ? {instead} : {text})"


def find_places(root):
    """@returns the places, and path -> the text of the file with a switch at each of its own"""
    places, switched = [], {}
    for folder, patterns in REMOVED.items():
        for file in sorted(file for file in (root / folder).iterdir() if file.suffix in (".cu", ".hpp", ".cpp")):
            text, path = file.read_text(), str(file.relative_to(root))
            code = without_comments(text, keep_strings=True)  # of the same length
            spans = sorted((found.span(), instead) for pattern, instead in patterns for found in pattern.finditer(code))
            own = [place(len(places) + number, path, number, text.count("\n", 0, begin) + 1, text[begin:end], instead)
                   for number, ((begin, end), instead) in enumerate(spans, 1)]
            for one, ((begin, end), _) in reversed(list(zip(own, spans))):
                text = text[:begin] + one.switched + text[end:]
            places += own
            if own:
                switched[path] = text
    return places, switched


def give_up(why):
    sys.exit(f"planted_faults: {why}")


class build:
    """What Ninja knows: how each object of the tests is made, of what, and how they are linked."""

    def __init__(self, folder, tests):
        self.folder, self.tests = folder.resolve(), tests
        cache = self.folder / "CMakeCache.txt"
        home = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", cache.read_text() if cache.is_file() else "", re.M)
        if home is None or pathlib.Path(home.group(1)).resolve() != ROOT:
            give_up(f"{folder} is no build of {ROOT}; make one (docs/testing.md), or name another with --build")
        self.check_done()
        self.compile, self.link = {}, {}
        for test in tests:
            for line in self.ninja("-t", "commands", f"bin/{test}").splitlines():
                words = shlex.split(line)
                if "-c" in words:
                    self.compile[words[words.index("-o") + 1]] = words
                elif f"bin/{test}" in words:  # : && the command && :
                    self.link[test] = words[2:-2]
        self.sources = self.read_sources()

    def check_done(self):
        """What is not compiled here is taken from the build as it is."""
        if "no work to do" not in self.ninja("-n", *(f"bin/{test}" for test in self.tests)):
            give_up(f"{self.folder} is not up to date: cmake --build {self.folder} --target {' '.join(self.tests)}")

    def ninja(self, *arguments):
        done = subprocess.run(["ninja", "-C", str(self.folder), *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            give_up(f"ninja {' '.join(arguments[:2])}: {done.stderr.strip()}")
        return done.stdout

    def read_sources(self):
        """Object -> the files that it was made of."""
        sources, current = {}, set()
        for line in self.ninja("-t", "deps", *self.compile).splitlines():
            if line and not line.startswith(" "):
                current = sources.setdefault(line.split(":")[0], set())
            elif line.strip():
                current.add(os.path.normpath(self.folder / line.strip()))
        return sources

    def made_of(self, paths):
        wanted = {str(ROOT / path) for path in paths}
        return [name for name in self.compile if wanted & self.sources.get(name, set())]


def archive_of(name):
    """The library that has an object."""
    folder, target = re.fullmatch(r"(.*)/CMakeFiles/(.*)\.dir/.*", name).groups()
    return f"{folder}/lib{target}.a"


class switched_tests:
    """The tests with all switches, in `folder`."""

    def __init__(self, of, switched, folder, jobs):
        self.of, self.switched, self.folder = of, switched, folder
        for path, text in switched.items():
            copy = folder / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text)
        (folder / "planted_fault.hpp").write_text(HEADER)
        names = of.made_of(switched)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            self.made = dict(zip(names, pool.map(self.compile, range(len(names)), names)))
        if not self.made:
            give_up(f"nothing is made of {', '.join(switched)}; is {of.folder} built?")
        for test in of.tests:
            self.link(test)

    def compile(self, number, name):
        words = list(self.of.compile[name])
        words = words[next(at for at, word in enumerate(words) if word.endswith("++")):]  # without ccache
        for option, values in (("-MD", 0), ("-MT", 1), ("-MF", 1)):
            at = words.index(option)
            del words[at:at + 1 + values]
        made = self.folder / f"{number}.o"
        words[words.index("-o") + 1], words[-1] = str(made), str(self.source_of(number, pathlib.Path(words[-1])))
        options = ["-g1" if "-fsanitize=thread" in words else "-g0", "-w", *([] if "-O0" in words else ["-O1"])]  # tests have a precompiled header, which wants its own
        self.do([words[0], f"-I{self.folder}", *words[1:], *options, "-include", str(self.folder / "planted_fault.hpp")], name)
        return str(made)

    def source_of(self, number, source):
        path = os.path.relpath(source, ROOT)
        if path in self.switched:
            return self.folder / path
        text = source.read_text()
        for path in self.switched:  # a unity build names its sources by their whole paths
            text = text.replace(f'"{ROOT / path}"', f'"{self.folder / path}"')
        copy = self.folder / f"{number}{source.suffix}"
        copy.write_text(text)
        return copy

    def link(self, test):
        words = [self.made.get(word, word) for word in self.of.link[test]]
        at = words.index("-o")
        libraries = [made for name, made in self.made.items() if archive_of(name) in words]
        self.do([*words[:at], *libraries, "-o", str(self.folder / test), *words[at + 2:]], test)

    def do(self, words, what):
        done = subprocess.run(words, cwd=self.of.folder, capture_output=True, text=True)
        if done.returncode != 0:
            give_up(f"{what} cannot be made with switches: {done.stderr[-2000:]}")

    def run(self, test, number):
        """@returns None when it passed, else how it failed"""
        environment = {**os.environ, SWITCH: str(number), "GTEST_FAIL_FAST": "1", "GTEST_BRIEF": "1", "TSAN_OPTIONS": "halt_on_error=1"}
        done = subprocess.run(["prlimit", f"--cpu={CPU_SECONDS_MAX}", str(self.folder / test)], env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode == 0:
            return None
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return f"{test} does not end"
        said = done.stdout.decode(errors="replace")
        if race := re.search(r"data race.*?/(kernels/cuda/[\w/.]+:\d+)", said, re.S):
            return f"a race at {race.group(1)}"
        case = re.search(r"^\[  FAILED  \] ([\w./]+)", said, re.M)
        return case.group(1) if case else f"{test} ends with {done.returncode}: {said.strip()[-100:]}"

    def noticed(self, one):
        """@returns by which test, or None"""
        order = self.of.tests if one.path.startswith("kernels") else self.of.tests[1:]  # kernels know nothing of the engine
        return next(filter(None, (self.run(test, one.number) for test in order)), None)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", metavar="FOLDER", help="(default: build/release)")
    parser.add_argument("--list", action="store_true", help="only show the places")
    parser.add_argument("--threads", action="store_true", help="of the barriers, what ThreadSanitizer says")
    parser.add_argument("--only", default="", metavar="TEXT", help="of the places, those that have this in their name, as printed")
    parser.add_argument("--sample", type=int, metavar="N", help="only so many, drawn")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the draw (default: 1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="so many at once (default: one a processor)")
    return parser.parse_args()


def chosen_of(places, options):
    chosen = [one for one in places if options.only in one.name]
    if options.sample is not None:
        drawn = random.Random(options.seed).sample(range(len(chosen)), min(options.sample, len(chosen)))
        chosen = [chosen[number] for number in sorted(drawn)]
    return chosen or give_up(f"no place has '{options.only}' in its name (--list)")


def verdict(one, noticed):
    """@returns (what to say, whether that is as it should be)"""
    reason = EQUIVALENT.get(one.name)
    if noticed and reason:
        return f"{noticed}, and EQUIVALENT says that nothing can", False
    return noticed or f"NOT CAUGHT: {reason or 'nobody knows why'}", bool(noticed or reason)


def main():
    options = arguments()
    places, switched = find_places(ROOT)
    tests_of = WITH_THREADS if options.threads else TESTS
    if options.threads:
        places = [one for one in places if one.path.startswith("kernels")]
        switched = {path: text for path, text in switched.items() if path.startswith("kernels")}
    chosen = chosen_of(places, options)
    if options.list:
        print("\n".join(f"{one.name} (line {one.line}): {one.text}" for one in chosen))
        return 0
    begin, caught, good = time.monotonic(), 0, True
    with tempfile.TemporaryDirectory(prefix="planted-faults-") as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        tests = switched_tests(build(options.build, tests_of), switched, pathlib.Path(folder), options.jobs)
        print(f"built in {time.monotonic() - begin:.0f} s", flush=True)
        if failed := [how for test in tests_of if (how := tests.run(test, 0))]:
            give_up(f"with nothing left out: {', '.join(failed)}")
        for one, noticed in zip(chosen, pool.map(tests.noticed, chosen)):
            said, is_good = verdict(one, noticed)
            caught, good = caught + bool(noticed), good and is_good
            print(f"{one.name} (line {one.line}): {one.text}: {said}", flush=True)
    print(f"{caught} of {len(chosen)} caught; {time.monotonic() - begin:.0f} s")
    whole = len(chosen) == len(places)
    return 0 if good and (caught >= LEAST * len(chosen) or options.threads or not whole) else 1


if __name__ == "__main__":
    sys.exit(main())
