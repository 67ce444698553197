"""Kills any role of a running job, or all of them, at random moments; the result must be that of an undisturbed run.

Needs durable state: `durability.log` every_step or snapshots. A death of everything is followed by `dlrun resume`.
"""

import random
import time

import small_data
from dlrun_job import expect, job_over
from worker_kills import draw_delay

WORKERS, PS_SHARDS = 3, 2
EPOCHS = {"mlp_dropout": 90, "cnn_batch_norm": 36}  # a second or a few each
# Of the tests, the short form of scripts/acceptance/kill_anyone. The job is held until the moment
# of each kill, so it need not be long.
SHORT_EPOCHS = {"mlp_dropout": 45, "cnn_batch_norm": 18}
KILLED_BEFORE = 0.6  # of all steps
RECOVERY_DELAY_MAX_S = 0.15  # a second kill falls into the recovery from the first

SINGLE = ("worker", "ps_shard", "coordinator")
SEVERAL = ("ps_shard_and_workers", "all_ps_shards", "ps_shard_twice", "coordinator_and_ps_shard", "everything")


def make_spec(model, train, log, sync="process", epochs=EPOCHS):
    spec = small_data.make_spec(model, train, epochs=epochs[model], workers=WORKERS, ps_shards=PS_SHARDS)
    spec["durability"] = {"log": log, "sync": sync}
    spec.setdefault("cluster", {})["restart"] = {"intensity": 100}
    return spec


def plan_kills(source, steps, kinds, count):
    """@returns [(step from which on, kind)] in order of steps."""
    moments = sorted(source.randrange(int(steps * KILLED_BEFORE)) for _ in range(count))
    return [(step, source.choice(kinds)) for step in moments]


def victims_of(kind, source):
    """Groups of (role, index); between groups a moment passes."""
    shard = ("ps_shard", source.randrange(PS_SHARDS))
    workers = [("worker", one) for one in range(WORKERS)]
    return {
        "worker": [[source.choice(workers)]],
        "ps_shard": [[shard]],
        "coordinator": [[("coordinator", 0)]],
        "ps_shard_and_workers": [[shard, *workers]],
        "all_ps_shards": [[("ps_shard", one) for one in range(PS_SHARDS)]],
        "ps_shard_twice": [[shard], [shard]],
        "coordinator_and_ps_shard": [[("coordinator", 0), shard]],
    }[kind]


def strike(job, step, kind, source, delay_s):
    """As kill_at_step, of what `kind` says. @returns how many were killed (the death of everything counts as one)."""
    if kind == "everything":
        return strike_everything(job, step, delay_s)
    first, *others = victims_of(kind, source)
    kills = job.kill_at_step(step, first, delay_s)
    for group in others:
        time.sleep(source.uniform(0, RECOVERY_DELAY_MAX_S))
        kills += job.kill_together(group)
    return kills


def strike_everything(job, step, delay_s):
    with job.moment_at_step(step, delay_s):
        if job.root.poll() is not None:
            raise job_over("it ended before everything was killed")
        job.kill_everything()
    job.resume()
    return 1


def run_once(bench, spec, seed, reference, kinds, count):
    """One job under seeded kills, checked. @returns (kills, the plan as far as it came, the report)"""
    source = random.Random(seed)
    plan, done, kills = plan_kills(source, reference["steps"], kinds, count), [], 0
    may_redo = any(kind in SEVERAL for _, kind in plan)
    with bench.start(spec) as job:
        try:
            for step, kind in plan:
                delay_s = draw_delay(source) if done else 0  # the first is never missed
                kills += strike(job, step, kind, source, delay_s)
                done.append((step, kind))
        except job_over:  # it was quicker than the plan; if it failed, what follows says so
            pass
        report = job.expect_complete(may_redo=may_redo)
        expect(report["parameters_sha256"] == reference["parameters_sha256"],
               f"parameters {report['parameters_sha256']}, without kills {reference['parameters_sha256']}\n"
               f"{job.output()}")
        expect(report["samples_committed"] == reference["samples_committed"], "not all samples were trained")
        return kills, done, report
