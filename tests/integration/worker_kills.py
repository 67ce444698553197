"""Kills workers of a running job at random moments and checks that the result is that of an undisturbed run."""

import random

import small_data
from dlrun_job import expect, identities, job_over

KILLS_MAX = 5
WORKERS = 3
EPOCHS = {"mlp_dropout": 90, "cnn_batch_norm": 36}  # a second or a few each
ATTEMPTS = 10  # for a job that was over before the last kill
KILLED_BEFORE = 0.5  # of all steps: `status` lags behind, and a job that has ended has no workers
UNHELD = 0.7  # of the kills
DELAY_MAX_S = 0.03  # any moment within a step


def make_spec(model, train):
    return small_data.make_spec(model, train, epochs=EPOCHS[model], workers=WORKERS, ps_shards=2)


def plan_kills(source, steps):
    """1 to 5 kills in groups. @returns [(step from which on, workers that die together)] in order of steps."""
    left = source.randint(1, KILLS_MAX)
    groups = []
    while left > 0:
        size = min(left, source.choice((1, 1, 2, WORKERS)))
        groups.append(source.sample(range(WORKERS), size))
        left -= size
    moments = sorted(source.randrange(int(steps * KILLED_BEFORE)) for _ in groups)
    return list(zip(moments, groups))


def draw_delay(source):
    """After which a kill comes at a step: none, while the job is held there, or so many seconds, any moment within a step."""
    return source.uniform(0, DELAY_MAX_S) if source.random() < UNHELD else 0


class witness:
    """Remembers who else runs, and objects when one of them is replaced."""

    def __init__(self):
        self.known = {}

    def look(self, status):
        for who, (pid, incarnation) in identities(status).items():
            if pid and incarnation:
                first = self.known.setdefault(who, (pid, incarnation))
                expect(first == (pid, incarnation),
                       f"{who} was {first} (pid, incarnation) and is {(pid, incarnation)}")


def told_kills(job, report, kills):
    """Checks that only workers died. @returns how many deaths the report has; one at the very end belongs to the end."""
    for event in job.troubles():
        expect(event["role"] == "worker", f"an event of another role: {event}")
    exits = job.events("role-exited")
    expect(len(exits) <= kills, f"{kills} kills, but {len(exits)} exits: {exits}")
    told = len(report["recoveries"])
    expect(told <= len(exits), f"{len(exits)} exits, but recoveries {report['recoveries']}")
    taken_over = [(event["index"], event["incarnation"]) for event in job.events("slots-redispatched")]
    for late in exits[told:]:  # the agent saw it when the coordinator's report was written
        expect((late["index"], late["incarnation"]) not in taken_over, f"{late} had slots, but is not in the report: {report['recoveries']}")
    return told


def kill_as_planned(job, plan, source, others):
    """@returns how many workers were killed: fewer than planned when the job was quicker."""
    kills = 0
    try:
        for step, workers in plan:
            kills += job.kill_at_step(step, [("worker", one) for one in workers], draw_delay(source), others.look)
    except job_over:
        pass
    return kills


def run_once(bench, spec, seed, reference):
    """One job under seeded kills, checked. @returns (deaths, the plan, the report)"""
    source = random.Random(seed)
    plan, others = plan_kills(source, reference["steps"]), witness()
    with bench.start(spec) as job:
        kills = kill_as_planned(job, plan, source, others)
        job.watch_until_end(others.look)
        report = job.expect_complete()
        expect(report["parameters_sha256"] == reference["parameters_sha256"],
               f"parameters {report['parameters_sha256']}, without kills {reference['parameters_sha256']}")
        expect(report["samples_committed"] == reference["samples_committed"], "not all samples were trained")
        return told_kills(job, report, kills), plan, report


def run_with_kills(bench, spec, seed, reference):
    """As run_once, again while the job was over before the last kill: `status` is late on a busy machine."""
    for _ in range(ATTEMPTS):
        kills, plan, report = run_once(bench, spec, seed, reference)
        if kills == sum(len(workers) for _, workers in plan):
            return kills, plan, report
    raise job_over(f"the job of seed {seed} is always over before its last kill")
