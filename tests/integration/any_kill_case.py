"""Base of tests in which roles of a job are killed at random, seeded moments."""

import any_kills
from bench_case import bench_case


class any_kill_case(bench_case):
    def expect_survival(self, model, log, kinds, seed, count=3, change=lambda spec: spec):
        def make_spec(log):
            return change(any_kills.make_spec(model, self.data, log, epochs=any_kills.SHORT_EPOCHS))

        spec, reference = make_spec(log), self.undisturbed(make_spec("off"))
        kills, plan, report = any_kills.run_once(self.bench, spec, seed, reference, kinds, count)
        self.assertGreaterEqual(kills, 1, plan)
        return report
