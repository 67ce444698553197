"""One damaged file after the death of everything: the result of an undisturbed run, or an error that says what to do."""

import random

import store_damage
from bench_case import bench_case, main

CASES = 8
SEED = 1


class damaged_store(bench_case):
    def test_no_damage_gives_another_result(self):
        reference = self.bench.complete(store_damage.make_spec(self.data, "off"))
        for number, log in enumerate(("every_step", "snapshots")):
            job = self.enterContext(store_damage.die_half_way(
                self.bench, store_damage.make_spec(self.data, log), reference["steps"], random.Random(SEED + number)))
            for case in range(CASES):
                with self.subTest(log=log, case=case):
                    store_damage.run_case(self.bench, job, reference, random.Random(f"{SEED} {log} {case}"))


if __name__ == "__main__":
    main()
