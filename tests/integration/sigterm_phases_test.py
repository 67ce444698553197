"""A worker on one of several hosts has a SIGTERM in every phase of its work: it leaves, no step is done again, the bits stay."""

import net_hosts
import sigterm_runs
import small_data
import worker_phases
from bench_case import bench_case, main

EPOCHS = 150
TIMES = 1


class sigterm_phases(bench_case):
    def spec(self, log):
        validation = small_data.write_images(self.bench.folder, "validation", worker_phases.VALIDATION_RECORDS, seed=2)
        return worker_phases.make_spec(self.data, validation, epochs=EPOCHS, log=log)

    def test_in_each_phase_it_leaves_without_a_trace(self):
        self.enter_or_skip(net_hosts.net_hosts(self.bench.new_run_dir(), 1), net_hosts.no_namespaces).__exit__()
        reference = self.bench.complete(self.spec("every_step"))
        for seed, log in enumerate(("every_step", "snapshots")):
            counted = sigterm_runs.tally(TIMES)
            while counted.open_phases():
                sigterm_runs.run_one(self.bench, self.spec(log), reference, counted, seed)


if __name__ == "__main__":
    main()
