"""`cluster.device`: whole jobs on a stand-in of a GPU, and what a job says of a module, a driver or a GPU that is not there.

The stand-in computes the kernels of kernels/cuda on the processor, so its bits are no GPU's, but every promise that does not
depend on the device is one here: the same bits with any number of workers, and after any faults.
"""

import json
import os
import pathlib
import re
import shutil
import struct
import sys
import unittest.mock

import device_faults
import dlrun_job
import small_data
from bench_case import bench_case, main
from changed_runs import set_options
from device_faults import EPOCHS, RECORDS, VARIABLE
from dlrun_job import all_run

MODULES = pathlib.Path(sys.argv.pop(2))  # where the build has its modules for tests
BAD_USAGE = 2
MANY = 100  # where the processor computes
WORD_BITS = 32  # of what a flipped bit is in


def module(name):
    return str(MODULES / f"libdlrun_{name}.so")


class device_case(bench_case):
    """Jobs whose module is that of the environment."""

    records = RECORDS

    def setUp(self):
        super().setUp()
        before = os.environ.get(VARIABLE)
        self.addCleanup(lambda: os.environ.pop(VARIABLE, None) if before is None else os.environ.update({VARIABLE: before}))

    def use(self, name):
        os.environ[VARIABLE] = module(name)

    def job(self, model="mlp_dropout", device="cuda", precision="fp32", **options):
        spec = self.spec(model, **{"epochs": EPOCHS[model], **options})
        spec["cluster"]["device"] = device
        spec["train"]["precision"] = precision
        spec["durability"] = {"log": "every_step"}
        return spec

    def embedding_job(self, **options):
        """Of two columns with numbers of rows that bf16 does not have."""
        numbers, classes = self.bench.folder / "numbers.npy", self.bench.folder / "classes.npy"
        rows = [float(1001 + 2 * (i * i % 499)) for i in range(2 * self.records)]
        numbers.write_bytes(small_data.npy((self.records, 2), struct.pack(f"<{len(rows)}f", *rows)))
        classes.write_bytes(small_data.npy((self.records,), bytes((3 * i + i // 7) % 10 for i in range(self.records)), "|u1"))
        spec = self.job(precision="bf16", **options)
        spec["data"]["train"] = {"format": "npy", "records": str(numbers), "labels": str(classes)}
        spec["model"] = {"input": [2], "layers": [{"embedding": {"num_embeddings": 2000, "embedding_dim": 3}}, "flatten",
                                                  {"linear": {"out_features": 10}}]}
        return spec


class stand_in(device_case):
    def setUp(self):
        super().setUp()
        self.use("cuda_stand_in")

    def reference(self, model):
        report = self.undisturbed(self.job(model, workers=1, ps_shards=1))
        self.assertNotIn(report["host"]["device"], ("", "cpu"))
        return report

    def expect_same(self, report, model):
        reference = self.reference(model)
        for key in ("parameters_sha256", "samples_committed", "train_loss"):
            self.assertEqual(report[key], reference[key], key)
        self.assertEqual(report["host"], reference["host"])

    def test_more_workers_compute_the_same_bits(self):
        for model in EPOCHS:
            for placement in ("processes", "threads"):
                with self.subTest(model=model, placement=placement):
                    self.expect_same(self.bench.complete(self.job(model, workers=2, placement=placement)), model)

    def test_a_killed_worker_changes_no_bit(self):
        for model in EPOCHS:
            with self.subTest(model=model), self.bench.start(self.job(model, workers=2)) as job:
                with job.held_from_step(2, all_run):
                    job.kill_together([("worker", 1)])
                self.expect_same(job.expect_complete(), model)

    def test_a_run_that_is_resumed_ends_with_the_same_bits_on_what_it_was_trained_on(self):
        for model in EPOCHS:
            with self.subTest(model=model), self.bench.start(self.job(model, device="auto", workers=2)) as job:
                job.kill_everything_at_step(3)
                self.assertIn("device: cuda", pathlib.Path(job.run_dir, "spec.yaml").read_text())
                job.resume(options=set_options("cluster.workers=1", "cluster.device=auto"))
                self.expect_same(job.expect_complete(may_redo=True), model)

    def test_tf32_has_bits_of_its_own_that_neither_workers_nor_kills_nor_a_resume_change(self):
        self.expect_bits_of_its_own("tf32")

    def test_bf16_has_bits_of_its_own_that_neither_workers_nor_kills_nor_a_resume_change(self):
        self.expect_bits_of_its_own("bf16")

    def expect_bits_of_its_own(self, precision):
        reference = self.undisturbed(self.job("cnn_batch_norm", precision=precision, workers=1, ps_shards=1))
        self.assertTrue(reference["host"]["device"].endswith(f"| {precision}"), reference["host"]["device"])
        in_fp32 = self.reference("cnn_batch_norm")
        self.assertNotEqual(reference["parameters_sha256"], in_fp32["parameters_sha256"])
        self.assertAlmostEqual(reference["train_loss"], in_fp32["train_loss"], delta=0.02)
        with self.bench.start(self.job("cnn_batch_norm", precision=precision, workers=2)) as job:
            with job.held_from_step(2, all_run):
                job.kill_together([("worker", 1)])
            reports = [job.expect_complete()]
        with self.bench.start(self.job("cnn_batch_norm", precision=precision, workers=2)) as job:
            job.kill_everything_at_step(3)
            code, _, complaint = job.ask("resume", *set_options("train.precision=fp32"))
            self.assertEqual(code, BAD_USAGE, complaint)
            self.assertIn(f"train.precision: {precision} -> fp32", complaint)
            job.resume()
            reports.append(job.expect_complete(may_redo=True))
        for report in reports:
            self.assertEqual(report["parameters_sha256"], reference["parameters_sha256"])
            self.assertEqual(report["host"], reference["host"])

    def test_an_embedding_in_bf16_has_bits_that_neither_workers_nor_kills_nor_a_resume_change(self):
        reference = self.undisturbed(self.embedding_job(workers=1, ps_shards=1))
        in_fp32 = self.embedding_job(workers=1, ps_shards=1)
        in_fp32["train"]["precision"] = "fp32"
        in_fp32 = self.undisturbed(in_fp32)
        self.assertNotEqual(reference["parameters_sha256"], in_fp32["parameters_sha256"])
        self.assertAlmostEqual(reference["train_loss"], in_fp32["train_loss"], delta=0.02)
        with self.bench.start(self.embedding_job(workers=2)) as job:
            with job.held_from_step(2, all_run):
                job.kill_together([("worker", 1), ("ps_shard", 0)])
            reports = [job.expect_complete(may_redo=True)]
        with self.bench.start(self.embedding_job(workers=2)) as job:
            job.kill_everything_at_step(3)
            job.resume(options=set_options("cluster.workers=1"))
            reports.append(job.expect_complete(may_redo=True))
        for report in reports:
            self.assertEqual(report["parameters_sha256"], reference["parameters_sha256"])

    def test_a_version_is_evaluated_on_the_same_device(self):
        spec = self.job(workers=2)
        spec["data"]["validation"] = {"split": 0.2}
        spec["train"]["evaluate_every"] = "1 epoch"
        reports = [self.bench.complete(spec, (f"cluster.workers={workers}",)) for workers in (1, 2)]
        self.assertEqual(reports[0]["evaluations"], reports[1]["evaluations"])
        self.assertEqual(reports[0]["validation"], reports[1]["validation"])

    def test_the_processor_computes_nearly_the_same(self):
        here = self.undisturbed(self.job(device="cpu", workers=1))
        self.assertEqual(here["host"]["device"], "cpu")
        self.assertAlmostEqual(here["train_loss"], self.reference("mlp_dropout")["train_loss"], delta=0.02)

    def test_auto_says_which_gpu_it_takes(self):
        with self.bench.start(self.job(device="auto")) as job:
            job.expect_complete()
            self.assertIn("cluster.device: auto is cuda: GPU", job.output())
            self.assertIn(job.report()["host"]["device"].split(" | ")[0].split(",")[0], job.output())

    def test_a_module_that_goes_away_ends_the_worker_with_its_reason(self):
        copy = self.bench.folder / "module.so"
        shutil.copy(module("cuda_stand_in"), copy)
        os.environ[VARIABLE] = str(copy)
        spec = self.job()
        spec["train"]["epochs"] = 1000
        spec["cluster"]["restart"] = {"intensity": 1, "period_s": 60}
        with self.bench.start(spec) as job:
            job.wait_for_step(2)
            os.unlink(copy)
            job.kill_together([("worker", 0)])
            self.assertEqual(job.wait_end(), 1, job.output())
            self.assertIn("there is no CUDA module", job.report()["reason"])


class failing_devices(device_case):
    """What docs/gpu.md says of them; scripts/acceptance/stand_in_kills is the long form."""

    def setUp(self):
        super().setUp()
        self.devices = device_faults.stand_in_devices(MODULES, self.bench.folder)
        self.enterContext(self.devices)

    def test_each_costs_its_worker_and_no_bit(self):
        for model, workers, plan in (("mlp_dropout", 1, device_faults.DEVICE), ("cnn_batch_norm", 2, ("fails_at_step", "ps_shard"))):
            with self.subTest(model=model):
                reference = self.undisturbed(device_faults.make_spec(model, self.data, workers=1))
                ends, report = dlrun_job.until_held(lambda model=model, workers=workers, plan=plan, reference=reference: device_faults.run_with(
                    self.bench, self.devices, self.data, model, workers, plan, seed=1, reference=reference))
                self.assertGreaterEqual(len(report["recoveries"]), ends)

    def test_that_always_fail_end_the_job_with_what_they_said_and_no_record_is_blamed(self):
        for kind, words in device_faults.LAST_WORDS.items():
            with self.subTest(kind):
                fault = self.devices.give(kind, device_faults.NUMBERS_MAX[kind], always=True)
                spec = device_faults.make_spec("mlp_dropout", self.data, workers=1)
                spec["cluster"]["restart"] = {"intensity": 3, "period_s": 60}
                with self.bench.start(spec) as job:
                    self.assertEqual(job.wait_end(), 1, job.output())
                    report = job.report()
                    self.assertIn(words, report["reason"])
                    self.assertEqual(report["error"], "restart_budget_exceeded")
                    self.assertEqual(report["parked_shards"], [])
                    job.expect_nothing_left()
                fault.unlink()


    def test_that_make_no_graphs_or_take_no_memory_of_the_host_are_told_of_and_cost_no_bit(self):
        reference = self.undisturbed(device_faults.make_spec("mlp_dropout", self.data, workers=1))
        for refused, direct, words in (({}, ("parameters", "gradients"), ()),
                                       ({"refuses_host_memory": 1}, ("gradients",), ("a copy of parameters between host and GPU",)),
                                       ({"refuses_host_memory": 2}, ("parameters",), ("a copy of gradients between host and GPU",)),
                                       ({"no_graph_from": 3}, ("parameters",), ("gpu-graphs: steps are started one by one",))):
            with self.subTest(refused):
                faults = [self.devices.give(kind, number, always=True) for kind, number in refused.items()]
                with self.bench.start(device_faults.make_spec("mlp_dropout", self.data, workers=1)) as job:
                    report = job.expect_complete()
                    log = (job.run_dir / "logs" / "worker-0.log").read_text()
                self.assertEqual(report["parameters_sha256"], reference["parameters_sha256"])
                for what in direct:
                    self.assertEqual(log.count(f"gpu-copies: the GPU copies {what} where the host has them"), 1, log)
                for said in words:
                    self.assertEqual(log.count(said), 1, log)
                self.assertEqual(log.count("injected"), len(words), log)
                for fault in faults:
                    fault.unlink()

    def test_a_microbatch_that_does_not_fit_is_told_with_one_that_does(self):
        spec = device_faults.make_spec("cnn_batch_norm", self.data, workers=1)
        spec["cluster"]["restart"] = {"intensity": 1, "period_s": 60}
        spec["train"] |= {"microbatch_size": 200, "microbatches_per_step": 1}
        self.devices.give("memory_bytes", 2_000_000, always=True)
        with self.bench.start(spec) as job:
            self.assertEqual(job.wait_end(), 1, job.output())
            report = job.report()
            self.assertEqual(report["parked_shards"], [])
            found = re.search(r"A microbatch of 200 records needs .* would fit: set train\.microbatch_size: (\d+)", report["reason"])
            self.assertIsNotNone(found, report["reason"])
        spec["train"]["microbatch_size"] = int(found.group(1))
        self.assertGreater(spec["train"]["microbatch_size"], 1)
        self.bench.complete(spec)

    def test_one_that_fails_three_times_is_avoided_and_costs_no_bit(self):
        reference = self.undisturbed(device_faults.make_spec("mlp_dropout", self.data, workers=1))
        for kind in ("fails_at_step", "hangs_at_step"):
            with self.subTest(kind):
                fault = self.devices.give(kind, device_faults.NUMBERS_MAX[kind], gpu=0)
                with self.bench.start(device_faults.make_spec("mlp_dropout", self.data, workers=1)) as job:
                    with job.held_from_step(1, lambda status: "avoided_gpus" in status) as status:
                        pass
                    report = job.expect_complete(may_redo=True)
                    self.expect_avoided(job, report, status["avoided_gpus"], device_faults.LAST_WORDS[kind])
                self.assertEqual(report["parameters_sha256"], reference["parameters_sha256"])
                fault.unlink()

    def expect_avoided(self, job, report, shown, words):
        [event] = job.events("gpu-avoided")
        self.assertEqual((event["role"], event["values"]["gpu"], event["host"]), ("worker", 0, os.uname().nodename))
        self.assertIn(words, event["reason"])
        self.assertTrue(event["text"].endswith("; workers get GPU 1"), event["text"])
        self.assertEqual(shown, [{"gpu": 0, "host": event["host"], "reason": event["reason"]}])
        self.assertEqual(len(job.events("role-exited")), 3, "the other GPU is good")
        self.assertIn("GPU 0 is avoided from now on", report["recoveries"][-1]["cause"])
        code, told, _ = job.ask("explain", "--json")
        self.assertEqual(code, 0)
        self.assertEqual(json.loads(told)["avoided_gpus"],
                         [{"gpu": 0, "host": event["host"], "since": event["time"], "reason": event["reason"]}])

    def test_the_last_one_is_not_avoided_and_the_job_ends_with_what_it_said(self):
        self.use("fake_two_gpus")  # which do not open
        spec = device_faults.make_spec("mlp_dropout", self.data, workers=1)
        spec["cluster"]["restart"] = {"intensity": 6, "period_s": 60}
        with self.bench.start(spec) as job:
            self.assertEqual(job.wait_end(), 1, job.output())
            [event] = job.events("gpu-avoided")
            self.assertEqual(event["values"]["gpu"], 0)
            self.assertIn("GPU 1 does not answer", job.report()["reason"])


class flipped_bits(device_case):
    """A device that computes one wrong bit, in what the first pass writes. Nobody computes it again."""

    def setUp(self):
        super().setUp()
        self.devices = device_faults.stand_in_devices(MODULES, self.bench.folder)
        self.enterContext(self.devices)

    def train(self, spec, step, seed):
        fault = self.devices.give("flips_bit_at_step", f"{step}-{seed}")
        job = self.enterContext(self.bench.start(spec))
        code = job.wait_end()
        self.assertFalse(fault.exists(), "a device took it")
        return job, code

    def test_change_the_parameters_or_end_the_job(self):
        """Other steps of the first two passes write, at the places that are drawn, what nothing reads or what a relu makes 0."""
        spec = self.job(workers=1, ps_shards=1, epochs=1)
        reference = self.undisturbed(spec)
        ends = set()
        for bit, steps in {10: (1, 3, 4, 6, 7, 11, 12, 13, 15, 16, 18, 19), 30: (2, 3, 4, 6, 7, 8, 10, 11, 12, 13, 16, 18, 20)}.items():
            for step in steps:
                with self.subTest(step=step, bit=bit):
                    job, code = self.train(spec, step, WORD_BITS * step + bit)
                    report = job.report()
                    ends.add((bit, report.get("error", "")))
                    self.assertEqual((code, report["error"]), (1, "diverged") if code else (0, ""), job.output())
                    self.assertNotEqual(report["parameters_sha256"], reference["parameters_sha256"])
        self.assertEqual(ends, {(10, ""), (30, ""), (30, "diverged")})

    def test_that_end_the_job_are_gone_when_it_is_resumed_from_before_them(self):
        spec = self.job(workers=1, ps_shards=1, epochs=1)
        job, code = self.train(spec, 4, WORD_BITS * 4 + 30)
        self.assertEqual((code, job.report()["error"]), (1, "diverged"))
        job.resume(options=["--from", "0"])
        self.assertEqual(job.expect_complete(may_redo=True)["parameters_sha256"], self.undisturbed(spec)["parameters_sha256"])

    def test_in_the_number_of_a_row_ends_the_job_and_a_resume_has_the_bits_of_an_undisturbed_run(self):
        spec = self.embedding_job(workers=1, ps_shards=1)
        reference = self.undisturbed(spec)
        job, code = self.train(spec, 2, 0)
        self.assertEqual(code, 1, job.output())
        self.assertIn("takes whole numbers from 0 to 1999", job.report()["reason"])
        job.resume()
        self.assertEqual(job.expect_complete(may_redo=True)["parameters_sha256"], reference["parameters_sha256"])


class no_gpu(device_case):
    """None that a job could use."""

    def expect_refused(self, spec, *words):
        with self.bench.start(spec) as job:
            self.assertEqual(job.wait_end(), BAD_USAGE, job.output())
            lines = job.output().splitlines()
            self.assertEqual([line for line in lines if not line.startswith("dlrun: ")], [], "nothing was begun")
            for word in words:
                self.assertIn(word, job.output())
            self.assertFalse(job.run_dir.exists())

    def test_cuda_is_refused_with_what_is_missing(self):
        for name, words in (("absent", ("there is no CUDA module", module("absent"), "docs/gpu.md", VARIABLE)),
                            ("fake_needy", ("cannot be loaded", "libdlrun_fake_absent.so: cannot open shared object file")),
                            ("fake_no_entry", ("is no CUDA module of dlrun", "dlrun_device_module_1")),
                            ("fake_other_build", ("is of another build", "build and install both together")),
                            ("fake_no_driver", ("there is no NVIDIA driver",)), ("fake_no_gpu", ("nvidia-smi -L",)),
                            ("fake_old_gpus", ("Fake GPU", "too old", "7.5", "8.0")),
                            ("fake_mixed_gpus", ("would not compute the same bits", "GPUs of one model"))):
            with self.subTest(name):
                self.use(name)
                self.expect_refused(self.job(), *words, "; or set cluster.device: cpu")

    def test_gpus_that_are_not_there_are_refused(self):
        spec = self.job(device="auto")
        spec["cluster"]["gpus"] = [7]
        self.use("fake_two_gpus")
        self.expect_refused(spec, "cluster.gpus: there is no GPU 7: the host has 2")
        self.use("absent")
        self.expect_refused(spec, "there is no CUDA module", "leave cluster.gpus out")

    def test_other_precisions_than_fp32_are_refused_where_there_is_no_gpu(self):
        self.use("fake_no_gpu")
        for precision in ("tf32", "bf16"):
            self.expect_refused(self.job(device="auto", precision=precision), "has no GPU", "; or set train.precision: fp32")
            self.expect_refused(self.job(precision=precision), "; or set cluster.device: cpu and set train.precision: fp32")
            self.expect_refused(self.job(device="cpu", precision=precision), f"train.precision: {precision} is a precision of GPUs")

    def test_an_environment_that_overrides_the_precision_is_refused(self):
        self.use("cuda_stand_in")
        with unittest.mock.patch.dict(os.environ, NVIDIA_TF32_OVERRIDE="0"):
            self.expect_refused(self.job(precision="tf32"), "NVIDIA_TF32_OVERRIDE=0", "unset it")

    def test_auto_is_the_processor_and_stays_so(self):
        self.use("fake_no_driver")
        with self.bench.start(self.job(device="auto", epochs=MANY)) as job:
            job.kill_everything_at_step(3)
            self.assertIn("cluster.device: auto is cpu: there is no NVIDIA driver", job.output())
            self.use("fake_two_gpus")
            job.resume()
            report = job.expect_complete(may_redo=True)
        self.assertEqual(report["host"]["device"], "cpu")
        self.assertEqual(report["parameters_sha256"], self.undisturbed(self.job(device="cpu", workers=1, epochs=MANY))["parameters_sha256"])

    def test_a_program_is_told_so_as_json(self):
        self.use("fake_no_gpu")
        run_dir = self.bench.new_run_dir()
        file = small_data.write_spec(run_dir.with_suffix(".yaml"), self.job(device="auto"))
        with dlrun_job.running_job(self.program, run_dir, ["train", str(file), "--run-dir", str(run_dir), "--json"]) as job:
            job.expect_complete()
            first = json.loads(job.output().splitlines()[0])
        self.assertEqual((first["type"], first["device"]), ("device", "cpu"))
        self.assertIn("has no GPU", first["reason"])

    def test_another_device_cannot_be_gone_on_with(self):
        self.use("fake_two_gpus")
        with self.bench.start(self.job(device="cpu", epochs=MANY)) as job:
            job.kill_everything_at_step(3)
            code, _, complaint = job.ask("resume", *set_options("cluster.device=cuda"))
            self.assertEqual(code, BAD_USAGE, complaint)
            self.assertIn("cluster.device: cpu -> cuda", complaint)

    def test_a_gpu_that_does_not_open_ends_the_job_with_its_reason(self):
        self.use("fake_two_gpus")
        spec = self.job()
        spec["cluster"]["restart"] = {"intensity": 1, "period_s": 60}
        with self.bench.start(spec) as job:
            self.assertEqual(job.wait_end(), 1, job.output())
            self.assertIn("does not answer", job.report()["reason"])


if __name__ == "__main__":
    main()
