"""Every role is killed in every phase of a job on several hosts: one restart for each kill, and nobody else's; the bits stay."""

import random

import net_hosts
import phase_kills
import small_data
import worker_phases
from bench_case import bench_case, main

EPOCHS = 150
TRIES_MAX = 6  # of a role in a phase: a short one may be missed


class recovery_phases(bench_case):
    def test_a_kill_costs_one_restart(self):
        self.enter_or_skip(net_hosts.net_hosts(self.bench.new_run_dir(), 1), net_hosts.no_namespaces).__exit__()
        validation = small_data.write_images(self.bench.folder, "validation", worker_phases.VALIDATION_RECORDS, seed=2)
        specs = [phase_kills.make_spec(self.data, validation, epochs=EPOCHS, log=log) for log in ("every_step", "snapshots")]
        reference = self.bench.complete(specs[0])
        source = random.Random(7)
        pairs, jobs = phase_kills.plan(1, source), 0
        while pairs.open_pairs():
            phase_kills.run_one(self.bench, specs[jobs % 2], reference, pairs, source)
            jobs += 1
            self.assertLessEqual(max(pairs.tried.values()), TRIES_MAX, pairs.found)


if __name__ == "__main__":
    main()
