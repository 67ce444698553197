"""Damages one file of the stores of a run that has died, and judges what `dlrun resume` makes of it.

Allowed are two ends: the result of an undisturbed run, or an error that names what is damaged and a way out. Never
another result, never an end by a signal, never a run without end.
"""

import pathlib
import re
import shutil

import small_data
from dlrun_job import expect, expectation_failed

PATIENCE_S = 90
STEPS_PART = (0.2, 0.8)  # of all steps, when everything dies
WIDE = 320  # outputs of the first layer: a PS shard's part of a gradient is over 64 KiB, so it goes into a segment
EPOCHS = 6

# What is a store's, by what it holds. RocksDB's LOCK and LOG* (its diary) hold nothing.
KINDS = {
    "log": "ps_shard-*/log/*.log",
    "tables": "ps_shard-*/log/*.sst",
    "segments": "ps_shard-*/segments/*.seg",
    "snapshots": "ps_shard-*/snapshots/*.snap",
    "manifest": "ps_shard-*/log/MANIFEST*",
    "current": "ps_shard-*/log/CURRENT",
    "format": "ps_shard-*/FORMAT",
    "journal log": "journal/log/*.log",
    "journal tables": "journal/log/*.sst",
    "journal manifest": "journal/log/MANIFEST*",
    "journal format": "journal/FORMAT",
}
WAY_OUT = re.compile(r"move the folder away|restore|another run folder|resume|remove|start the job|older one")


def make_spec(train, log):
    spec = small_data.make_spec("mlp_dropout", train, epochs=EPOCHS)
    spec["model"]["layers"][1]["linear"]["out_features"] = WIDE
    spec["durability"] = {"log": log, "max_recovery": "50ms"}  # many snapshots, much that is dropped
    spec["cluster"]["restart"] = {"intensity": 10, "period_s": 60}  # what is damaged for good is so at each start
    return spec


def die_half_way(bench, spec, steps, source):
    """@returns a run of which every process was killed."""
    job = bench.start(spec)
    job.kill_everything_at_step(int(steps * source.uniform(*STEPS_PART)))
    return job


def files_of(run_dir, kind):
    return sorted(file for file in pathlib.Path(run_dir).glob(KINDS[kind]) if file.stat().st_size > 0)


def damage_one(run_dir, source, kinds=tuple(KINDS)):
    """One byte of one file is flipped, or its end cut off. @returns the file and what was done to it."""
    kind = source.choice([kind for kind in kinds if files_of(run_dir, kind)])
    file = source.choice(files_of(run_dir, kind))
    content = bytearray(file.read_bytes())
    place = source.randrange(len(content))
    if source.random() < 0.5:
        content[place] ^= 1 << source.randrange(8)
        done = f"a bit of byte {place} of {len(content)} flipped"
    else:
        del content[place:]
        done = f"cut off at {place}"
    file.write_bytes(content)
    return file, f"{kind}: {file.relative_to(run_dir)} {done}"


def judge(job, file, reference):
    """Waits for the end of a resumed run. @returns "same result" or "refused"."""
    before = len(job.events())
    code = job.wait_end(PATIENCE_S)
    job.expect_nothing_left()
    said = f"exit code {code}\n{job.output()}"
    crashed = [one["text"] for one in job.events()[before:]
               if one["event"] in ("role-exited", "role-hung") and re.search("signal|no sign of life", one["text"])]
    expect(not crashed and code in (0, 1, 2), f"{crashed}\n{said}")
    if code == 0:
        report = job.report()
        for name in ("parameters_sha256", "samples_committed", "samples_missing", "samples_duplicated"):
            expect(report[name] == reference[name], f"{name}: {report[name]} instead of {reference[name]}\n{said}")
        return "same result"
    reason = job.output().splitlines()[-1]
    expect(any(str(part) in reason for part in (file, file.parent, file.parent.parent)),
           f"the reason does not name {file}\n{said}")
    expect(WAY_OUT.search(reason), f"the reason names no way out\n{said}")
    return "refused"


def run_case(bench, job, reference, source, kinds=tuple(KINDS)):
    """Damages a copy of the folder of a run that died, and resumes it. @returns what was done, what became of it."""
    damaged = []
    with bench.resume_copy(job, prepare=lambda copy: damaged.extend(damage_one(copy, source, kinds))) as copy:
        try:
            end = judge(copy, damaged[0], reference)
        except expectation_failed as problem:
            raise expectation_failed(f"{damaged[1]}: {problem}") from None
        shutil.rmtree(copy.run_dir)  # one that failed stays to be looked at
        return damaged[1], end
