"""`dlrun resume` with another specification: what may change, what comes of it, what is refused."""

from bench_case import main
from changed_runs import LR, changed_runs, gone_back, kept_specs, set_options, skip_options

RATE, OTHER_RATE = "0.005", "0.03"


class other_numbers_of_the_optimizer(changed_runs):
    def test_from_version_0_on_it_is_the_job_that_had_them_from_the_begin(self):
        spec = self.durable_spec("snapshots")
        changed = self.durable_spec("off")
        changed["train"]["optimizer"]["sgd"]["lr"] = float(RATE)
        reference = self.bench.complete(changed)
        job = self.killed_run(spec, self.steps_of(spec) // 3)
        job.resume([f"{LR}={RATE}"])  # there is no snapshot yet: everybody goes back to version 0
        report = job.expect_complete(may_redo=True)
        for name in ("parameters_sha256", "train_loss", "train_accuracy", "samples_committed"):
            self.assertEqual(report[name], reference[name], name)

    def test_from_what_is_on_disk_on_whoever_dies_afterwards(self):
        spec = self.durable_spec("every_step")
        steps = self.steps_of(spec)
        unchanged = self.undisturbed(self.durable_spec("off"))
        job = self.enterContext(self.bench.start(spec))
        durable = job.kill_everything_at_step(steps // 4)
        twin = self.resumed_copy(job, [f"{LR}={RATE}"])
        with twin.held_from_step(steps // 2):
            twin.kill("ps_shard")  # its log has steps of both
            twin.wait_for_exits(1)
            twin.kill_everything()
        twin.resume()
        job.resume([f"{LR}={RATE}"])
        report = job.expect_complete(may_redo=True)
        same = twin.expect_complete(may_redo=True)
        self.assertEqual(same["parameters_sha256"], report["parameters_sha256"])
        self.assertEqual(same["train_loss"], report["train_loss"])
        self.assertNotEqual(report["parameters_sha256"], unchanged["parameters_sha256"])
        self.assertEqual(gone_back(same), gone_back(report))
        version, = gone_back(report)
        self.assertGreaterEqual(version, durable)

    def test_changed_twice_each_in_a_specification_of_its_own(self):
        spec = self.durable_spec("every_step")
        steps = self.steps_of(spec)
        job = self.killed_run(spec, steps // 5)
        first = kept_specs(job)["spec.yaml"]
        job.resume([f"{LR}={RATE}"])
        job.kill_everything_at_step(2 * steps // 5)
        again = [f"{LR}={OTHER_RATE}", "train.optimizer.sgd.momentum=0.8"]
        twin = self.resumed_copy(job, again)
        twin.kill_everything_at_step(3 * steps // 5)
        twin.resume()
        job.resume(again)
        report = job.expect_complete(may_redo=True)
        self.assertEqual(twin.expect_complete(may_redo=True)["parameters_sha256"], report["parameters_sha256"])
        kept = kept_specs(job)
        self.assertEqual(sorted(kept), ["spec.1.yaml", "spec.2.yaml", "spec.yaml"])
        self.assertEqual(kept["spec.yaml"], first)
        self.assertIn(f"lr: {RATE}", kept["spec.1.yaml"])
        self.assertIn(f"lr: {OTHER_RATE}", kept["spec.2.yaml"])
        self.assertIn("momentum: 0.8", kept["spec.2.yaml"])


class another_schedule_and_clipping(changed_runs):
    """PS shards exchange norms from here on, and replay steps of before without."""

    CHANGES = ["train.clip_norm=0.4", "train.lr_schedule={cosine: {eta_min: 0.001}, warmup_steps: 30}"]

    def test_whoever_dies_afterwards(self):
        spec = self.durable_spec("every_step")
        steps = self.steps_of(spec)
        unchanged = self.undisturbed(self.durable_spec("off"))
        job = self.killed_run(spec, steps // 4)
        twin = self.resumed_copy(job, self.CHANGES)
        with twin.held_from_step(steps // 2):
            twin.kill("ps_shard")  # its log has steps of both
            twin.wait_for_exits(1)
            twin.kill_everything()
        twin.resume()
        job.resume(self.CHANGES)
        report = job.expect_complete(may_redo=True)
        self.assertEqual(twin.expect_complete(may_redo=True)["parameters_sha256"], report["parameters_sha256"])
        self.assertNotEqual(report["parameters_sha256"], unchanged["parameters_sha256"])
        self.assertIn("clip_norm: 0.4", kept_specs(job)["spec.1.yaml"])

    def test_from_version_0_on_it_is_the_job_that_had_them_from_the_begin(self):
        spec, changed = self.durable_spec("snapshots"), self.durable_spec("off")
        changed["train"].update({"clip_norm": 0.4, "lr_schedule": {"cosine": {"eta_min": 0.001}, "warmup_steps": 30}})
        reference = self.bench.complete(changed)
        job = self.killed_run(spec, self.steps_of(spec) // 3)
        job.resume(self.CHANGES)  # there is no snapshot yet: everybody goes back to version 0
        self.assertEqual(job.expect_complete(may_redo=True)["parameters_sha256"], reference["parameters_sha256"])


class changes_without_effect_on_the_result(changed_runs):
    def test_they_give_the_bits_of_an_undisturbed_run(self):
        reference = self.undisturbed(self.durable_spec("off"))
        job = self.killed_run(self.durable_spec("every_step"), reference["steps"] // 3)
        job.resume(["cluster.workers=1", "cluster.placement=threads", "cluster.tensor_channel=tcp", "cluster.restart.intensity=3",
                    "durability.sync=power", "durability.max_recovery=2s", "durability.disk_quota=1GiB"])
        report = job.expect_complete(may_redo=True)
        self.assertEqual(report["parameters_sha256"], reference["parameters_sha256"])
        self.assertEqual(gone_back(report), [])
        kept = kept_specs(job)
        self.assertEqual(sorted(kept), ["spec.yaml"])
        for line in ("workers: 1", "placement: threads", "tensor_channel: tcp", "sync: power", 'max_recovery: "2s"', 'disk_quota: "1GiB"'):
            self.assertIn(line, kept["spec.yaml"])


class refused_changes(changed_runs):
    CHANGEABLE = ("train.optimizer", "cluster.workers", "disk_quota")

    def test_what_the_bits_on_disk_depend_on(self):
        job = self.killed_run(self.durable_spec("every_step"), 10)
        for change in ("model.layers[3]={dropout: {p: 0.3}}", "model.layers[2]=flatten", "train.seed=8",
                       "train.shuffle=false", "train.epochs=37", "train.microbatch_size=4",
                       "train.microbatches_per_step=2", "data.train.normalize.mean=0.25", "cluster.ps_shards=1", "cluster.threads_per_worker=2",
                       "durability.log=snapshots", "name=other"):
            with self.subTest(change):
                self.expect_refused(job, set_options(change), change.partition("=")[0].partition("[")[0].split(".")[-1],
                                    *self.CHANGEABLE)

    def test_another_optimizer_and_one_whose_state_is_not_there(self):
        job = self.killed_run(self.durable_spec("every_step"), 10)
        for change in ("train.optimizer={adam: {lr: 0.001}}", "train.optimizer.sgd.momentum=0"):
            with self.subTest(change):
                self.expect_refused(job, set_options(change), "optimizer", "kind", "momentum", *self.CHANGEABLE)

    def test_values_that_are_none(self):
        job = self.killed_run(self.durable_spec("every_step"), 10)
        for change, word in ((f"{LR}=fast", "fast"), (f"{LR}=-1", "-1"), ("train.optimizer.sgd.rate=1", "rate"),
                             ("cluster.workers=0", "workers"), (LR, LR), ("train.skip=['12:1']", "--skip")):
            with self.subTest(change):
                self.expect_refused(job, set_options(change), word)
        # One that is refused takes one that is not with it.
        self.expect_refused(job, set_options(f"{LR}={RATE}", "train.seed=8"), "seed")

    def test_any_of_a_run_that_kept_nothing(self):
        job = self.enterContext(self.bench.start(self.durable_spec("off")))
        job.kill_everything_at_step(1)
        self.expect_refused(job, set_options(f"{LR}={RATE}"), "durability.log is off")
        self.expect_refused(job, skip_options("700:1"), "durability.log is off")

    def test_a_lost_data_file(self):
        job = self.killed_run(self.durable_spec("every_step"), 10)
        (self.bench.folder / "train-labels").unlink()
        self.expect_refused(job, set_options(f"{LR}={RATE}"), "train-labels")


if __name__ == "__main__":
    main()
