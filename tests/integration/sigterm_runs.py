"""Jobs on several hosts whose workers have a SIGTERM in every phase of their work, and what must come of them."""

import contextlib

import net_hosts
import worker_phases
from dlrun_job import expect, job_over

GRACE_S = 30  # cluster.leave_grace_s
PATIENCE_S = 1800


class tally:
    """What came of the signals so far."""

    def __init__(self, times):
        self.times, self.found, self.elsewhere = times, {phase: [] for phase in worker_phases.PHASES}, []
        self.given_up = {phase: 0 for phase in worker_phases.PHASES}

    def add(self, phase, departure):
        """@param departure None when the phase was not hit"""
        if departure is None:
            self.given_up[phase] += 1
        elif phase == "push" and departure.kept == 0:
            self.elsewhere.append(departure)  # all that it had pushed was committed: it was between two steps
        else:
            self.found[phase].append(departure)

    def open_phases(self):
        return [phase for phase in worker_phases.PHASES if len(self.found[phase]) < self.times]

    def next_phase(self):
        """The one with the fewest so far, but `start`, which follows each departure."""
        left = [phase for phase in self.open_phases() if phase != "start"]
        return min(left or ["push"], key=lambda phase: len(self.found[phase]))


def disturb(job, hosts, counted, seed):
    """Until the job is over, or each phase was hit often enough. @returns how many signals there were"""
    with worker_phases.leaving_workers(job, hosts, seed, GRACE_S) as workers:
        with contextlib.suppress(job_over):
            while counted.open_phases():
                phase = counted.next_phase()
                departure = workers.hit(phase)
                counted.add(phase, departure)
                if departure is not None and "start" in counted.open_phases():
                    counted.add("start", workers.hit_start())
        return workers.asked


def run_one(bench, spec, reference, counted, seed):
    """One job. @returns how many signals there were"""
    with net_hosts.net_hosts(bench.new_run_dir()) as hosts:
        with hosts.start(bench, spec, hosts.write_file(hosts.folder / "hosts.yaml")) as job:
            asked = disturb(job, hosts, counted, seed)
            report = job.expect_complete(PATIENCE_S)
            for name in ("parameters_sha256", "evaluations"):
                expect(report[name] == reference[name], f"{name}: {report[name]}, undisturbed {reference[name]}")
            for name in ("role-exited", "host-lost"):
                expect(not job.events(name), f"{name}: {job.events(name)}")
            expect(not report["recoveries"] and not report["rewinds"], f"work was lost: {report}")
    return asked
