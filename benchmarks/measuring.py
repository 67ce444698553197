"""What the benchmarks share: whose the processor was, rounds that count, two sides in alternation, training runs."""

import contextlib
import datetime
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/integration"))
sys.dont_write_bytecode = True

import small_data

EXAMPLES = ROOT / "examples" / "fashion_mnist"
RECORDS = {"mlp": 60000, "cnn": 12800}  # of a short run's epoch
PROGRAMS = ROOT / "build/release/bin"
TICKS = os.sysconf("SC_CLK_TCK")
FOREIGN_SHARE_MAX = 0.3  # of one core
ATTEMPTS = 3  # rounds that may be thrown away, as a multiple of those wanted
RUN_SECONDS_MAX = 1800
BATCH = 128  # records of a process in a step
BUSY_LOOP = "while True: pass"


class failure(Exception):
    """What stops a benchmark; its text says why and what to do."""


def run_script(main):
    """Runs `main()` as a script. SIGTERM ends it as Ctrl-C does: what it has started, and its hosts, go with it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main())


def output_of(command, environment=None):
    """What a program printed, when it ended well."""
    done = subprocess.run([str(word) for word in command], env=environment, text=True, capture_output=True, timeout=RUN_SECONDS_MAX)
    if done.returncode != 0:
        raise failure(f"{command[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def google_benchmark(folder, name, *options, environment=None):
    """Of a program of Google Benchmark: name of a case -> its numbers."""
    said = output_of([folder / name, "--benchmark_format=json", *options], environment)
    if not said.startswith("{"):  # it has no such case
        raise failure(f"{name} {' '.join(options)}: {said.strip()}")
    answer = json.loads(said)
    broken = [case["error_message"] for case in answer["benchmarks"] if case.get("error_occurred")]
    if broken:
        raise failure(f"{name}: {broken[0]}")
    return {case["name"]: case for case in answer["benchmarks"]}


# ---- whose the processor was


def busy_seconds():
    """CPU time of the whole machine that was not idle."""
    fields = [int(one) for one in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    user, nice, system, _, _, irq, soft, steal = fields
    return (user + nice + system + irq + soft + steal) / TICKS


def seconds_of(pid):
    """CPU time of one process so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def observed(measure, companions=()):
    """@returns the result of measure() and how much of a core others used meanwhile: neither we, nor processes that it started
    and waited for, nor `companions` (process ids)."""

    def moment():
        now = os.times()
        return busy_seconds(), sum(now[:4]) + sum(seconds_of(pid) for pid in companions), now.elapsed

    busy, own, elapsed = moment()
    result = measure()
    busy_now, own_now, elapsed_now = moment()
    return result, ((busy_now - busy) - (own_now - own)) / max(elapsed_now - elapsed, 0.01)


def quiet_rounds(measure, rounds, companions=()):
    """`rounds` results of measure() during which the machine was ours; others are thrown away, and that is said."""
    results = []
    for _ in range(rounds * (1 + ATTEMPTS)):
        result, foreign = observed(measure, companions)
        if foreign > FOREIGN_SHARE_MAX:
            print(f"  a round thrown away: others used {foreign:.2f} of a core", file=sys.stderr)
            continue
        results.append(result)
        if len(results) == rounds:
            return results
    raise failure("the machine is not quiet: stop what else runs on it")


@contextlib.contextmanager
def busy_processes(count):
    """So many processes that do nothing but compute. Gives their process ids."""
    started = [subprocess.Popen([sys.executable, "-c", BUSY_LOOP]) for _ in range(count)]
    try:
        yield [one.pid for one in started]
    finally:
        for one in started:
            one.kill()
            one.wait()


# ---- two sides


def spread(values):
    return f"{statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def in_turns(sides):
    """A function that measures both `sides` (name -> function) and gives name -> result; who goes first alternates."""
    turn = 0

    def pair():
        nonlocal turn
        turn += 1
        return {name: sides[name]() for name in (list(sides) if turn % 2 else reversed(sides))}

    return pair


def compare(what, sides, pairs, companions=(), unit="samples/s"):
    """Runs both `sides` (name -> function that gives a rate) `pairs` times; who goes first alternates. What counts is the ratio
    within a pair, since its two runs see much the same machine.

    Prints each pair and the median of the ratios first side / second side, which it @returns."""
    (first, _), (second, _) = sides.items()
    pair = in_turns(sides)
    ratios = []
    for number in range(pairs):
        rates = quiet_rounds(pair, 1, companions)[0]
        ratios.append(rates[first] / rates[second])
        print(f"{what}  pair {number + 1}  {first} {rates[first]:7.0f}  {second} {rates[second]:7.0f} {unit}  ratio {ratios[-1]:.3f}", flush=True)
    print(f"{what}  ratio: median {spread(ratios)}", flush=True)
    return ratios


# ---- training


def told(log, text):
    """When lines of a log say `text`."""
    return [datetime.datetime.fromisoformat(line.split()[0]) for line in log.read_text().splitlines() if text in line]


def training_seconds(logs, steps):
    """From the first version that every PS shard has made to the last: what is built at the first step, and the snapshot and the
    evaluation of the last version, come once a run, however long it is, and count for neither side."""
    shards = list(logs.glob("ps_shard-*.log"))
    begin = [told(log, " first-step: version 1 ") for log in shards]
    end = [told(log, f" trained: version {steps} ") for log in shards]
    if not shards or not all(begin) or not all(end):
        raise failure(f"{logs} do not say when training began and finished")
    return (max(one[-1] for one in end) - max(one[0] for one in begin)).total_seconds()


def training_rate(logs, report):
    """Samples a second over training_seconds(), which begin when the first step is done."""
    steps = report["steps"]
    return report["samples_committed"] * (steps - 1) / steps / training_seconds(logs, steps)


@contextlib.contextmanager
def data_of_seconds(model):
    """A folder with as many records of Fashion-MNIST as are trained in some seconds. Machines that are shared are fast and slow in
    turns, of tens of seconds: the two runs of a pair see the same turn when they are short."""
    with tempfile.TemporaryDirectory() as folder:
        small_data.write_fashion_mnist(pathlib.Path(folder), "train", RECORDS[model])
        yield folder


def settings_of(workers, epochs, ps_shards=1, data=small_data.FASHION_MNIST):
    """How both sides of a comparison train: 128 records a process and step, processes of one thread."""
    return {"data.train.records": f"{data}/train-images-idx3-ubyte.gz", "data.train.labels": f"{data}/train-labels-idx1-ubyte.gz",
            "train.epochs": epochs, "train.microbatch_size": BATCH, "train.microbatches_per_step": workers, "cluster.workers": workers,
            "cluster.ps_shards": ps_shards, "cluster.threads_per_worker": 1}


def train(program, model, settings, watch=None, environment=None):
    """Runs an example from beginning to end in a folder of its own. `watch(run_dir, process)`, when given, is called while it runs.

    @returns its report and `rate`: samples a second from the first version that was made to the last."""
    with tempfile.TemporaryDirectory() as folder:
        run_dir = pathlib.Path(folder) / "run"
        command = [str(program), "train", str(EXAMPLES / f"{model}.yaml"), "--run-dir", str(run_dir)]
        for path, value in settings.items():
            command += ["--set", f"{path}={value}"]
        with open(pathlib.Path(folder) / "output", "w+") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment)
            try:
                if watch:
                    watch(run_dir, process)
                process.wait(RUN_SECONDS_MAX)
            finally:
                process.kill()
                process.wait()
            output.seek(0)
            if process.returncode != 0:
                raise failure(f"dlrun failed on {model} (exit code {process.returncode}):\n{output.read()}")
        report = json.loads((run_dir / "report.json").read_text())
        return report | {"rate": training_rate(run_dir / "logs", report)}
