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

    def test_what_is_no_text_any_more_ends_the_job_with_a_message(self):
        """Its bytes are in the message, in events.jsonl and in the report: none of them may stumble over that."""
        reference = self.bench.complete(store_damage.make_spec(self.data, "off"))
        job = self.enterContext(store_damage.die_half_way(
            self.bench, store_damage.make_spec(self.data, "every_step"), reference["steps"], random.Random(SEED)))
        file = "ps_shard-0/FORMAT"
        with self.bench.resume_copy(job, ["cluster.restart.intensity=2"],
                                    prepare=lambda copy: (copy / file).write_bytes(b"\xff\xfe\n")) as copy:
            self.assertEqual(store_damage.judge(copy, copy.run_dir / file, reference), "refused")


if __name__ == "__main__":
    main()
