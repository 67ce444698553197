"""`dlrun resume --skip STEP:SLOT`: the records of a slot are left out, all others are not."""

from bench_case import main
from changed_runs import EPOCHS, LR, changed_runs, gone_back, skip_options

SLOTS_MAX = 512


class left_out_slots(changed_runs):
    # 2003 records in slots of 8, 4 slots a step: the last of 63 steps has slots of 8, 8 and 3.
    LAST = 62
    FULL, REST = 8, 3

    def test_exactly_their_records_are_missing_whoever_dies_afterwards(self):
        spec = self.durable_spec("every_step")
        steps = self.steps_of(spec)
        ahead = 2 * steps // 3
        parked = [(ahead, 1, self.FULL), (ahead, 3, self.FULL), (steps - 1, 2, self.REST)]
        options = skip_options(*(f"{step}:{slot}" for step, slot, _ in parked))
        job = self.killed_run(spec, steps // 3)
        twin = self.resumed_copy(job, options=options)
        twin.kill_everything_at_step(ahead + 5)
        twin.resume()
        job.resume(options=options)
        report = self.expect_end_with_parked(job, parked)
        self.assertEqual(report["samples_committed"], self.records * spec["train"]["epochs"] - 2 * self.FULL - self.REST)
        same = self.expect_end_with_parked(twin, parked)
        self.assertEqual(same["parameters_sha256"], report["parameters_sha256"])
        self.assertEqual(same["samples_committed"], report["samples_committed"])

    def test_those_already_trained_are_undone_by_going_back(self):
        spec = self.durable_spec("every_step")
        late = self.killed_run(spec, self.steps_of(spec) // 3)
        early = self.enterContext(self.bench.start(spec))
        early.wait_for(lambda status: len(status["roles"]) > 1, "it has begun to start roles")
        early.kill_everything()
        for job in (early, late):
            job.resume(options=skip_options("100:2"))
        ahead, undone = (self.expect_end_with_parked(job, [(100, 2, self.FULL)]) for job in (early, late))
        self.assertEqual(undone["parameters_sha256"], ahead["parameters_sha256"])
        self.assertEqual(gone_back(undone), [100])
        self.assertGreater(undone["steps_redone"], 0)

    def test_a_step_of_which_nothing_is_left_changes_nothing(self):
        for slots in (4, 1):
            with self.subTest(slots=slots):
                spec = self.durable_spec("every_step", epochs=EPOCHS // 2, microbatches_per_step=slots)
                steps = self.steps_of(spec)
                job = self.killed_run(spec, steps // 4)
                parked = [(steps // 2, slot, self.FULL) for slot in range(slots)]
                job.resume(options=skip_options(*(f"{step}:{slot}" for step, slot, _ in parked)))
                job.kill_everything_at_step(steps // 2 + 1)
                job.resume()
                self.expect_end_with_parked(job, parked)

    def test_a_later_change_does_not_go_back_to_them(self):
        spec = self.durable_spec("every_step")
        steps = self.steps_of(spec)
        job = self.killed_run(spec, steps // 4)
        job.resume(options=skip_options(f"{steps // 3}:0"))
        job.kill_everything_at_step(steps // 2)
        job.resume([f"{LR}=0.005"])
        report = self.expect_end_with_parked(job, [(steps // 3, 0, self.FULL)])
        self.assertLess(report["rewinds"][-1]["steps_redone"], steps // 2 - steps // 3)

    def test_what_is_no_slot_of_the_job_is_refused(self):
        spec = self.durable_spec("every_step")
        steps = self.steps_of(spec)
        job = self.killed_run(spec, 10)
        for text in ("12", "12:", ":3", "a:b", "12:3x", "-1:2", "1:2:", "1:2:x", "1:2:3:4", "1:2:4294967295", "1: 2", "12:99999999999999999999"):
            with self.subTest(text):
                self.expect_refused(job, [f"--skip={text}"], "STEP:SLOT")
        for text in (f"{steps}:0", "0:4", f"{self.LAST}:3", f"{steps - 1}:3", "18446744073709551615:0"):
            with self.subTest(text):
                self.expect_refused(job, skip_options(text), f"no slot {text}")
        self.expect_refused(job, skip_options("20:1", "0:4"), "no slot 0:4")
        self.expect_refused(job, skip_options(f"0:1:{self.FULL}"), f"no record 0:1:{self.FULL}")

    def test_more_than_can_be_kept_are_refused(self):
        job = self.killed_run(self.durable_spec("every_step"), 10)
        slots = [f"{step}:{slot}" for step in range(200, 500) for slot in range(2)][:SLOTS_MAX + 1]
        self.expect_refused(job, skip_options(*slots), str(SLOTS_MAX))


if __name__ == "__main__":
    main()
