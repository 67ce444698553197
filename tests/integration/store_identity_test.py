"""The identity of a PS shard's store: who put an older copy in its place is told so; stores of before there were any are used."""

import json
import pathlib
import shutil
import signal

import any_kills
from bench_case import bench_case, main
from dlrun_job import expect

SHARD = 1
FORMAT_1 = "dlrun-shard-store 1\n"  # all that dlrun 0.2 wrote into the file FORMAT


class store_identity(bench_case):
    def spec_with(self, log):
        return any_kills.make_spec("mlp_dropout", self.data, log, epochs=any_kills.SHORT_EPOCHS)

    def stores(self, job):
        """What `dlrun explain` shows, by PS shard; those of people's table too."""
        code, answer, complaint = job.ask("explain", "--json")
        self.assertEqual(code, 0, complaint)
        shown = json.loads(answer)
        self.assertIn("stores", shown, shown.get("stores_unknown"))
        table = job.ask("explain")[1]
        for store in shown["stores"]:
            self.assertRegex(table, rf"ps_shard {store['ps_shard']} +{store['host']} +{store['identity'][:8]} +0")
        return {store["ps_shard"]: store for store in shown["stores"]}

    def test_one_that_is_put_back_from_an_older_copy_is_told_and_costs_no_bit(self):
        reference = self.undisturbed(self.spec_with("off"))
        with self.bench.start(self.spec_with("every_step")) as job:
            job.kill_everything_at_step(reference["steps"] // 4)
            store, copy = job.run_dir / f"ps_shard-{SHARD}", job.run_dir.with_name("copy")
            shutil.copytree(store, copy)
            old = self.stores(job)[SHARD]
            job.resume()
            with job.held_from_step(reference["steps"] // 2):
                job.root.send_signal(signal.SIGINT)  # in order: the journal then knows all that was acknowledged
            job.wait_end()
            job.expect_nothing_left()
            newest = self.stores(job)[SHARD]["versions"][-1][1]
            shutil.rmtree(store)
            shutil.copytree(copy, store)
            job.resume()
            report = job.expect_complete(may_redo=True)
            self.assertEqual(report["parameters_sha256"], reference["parameters_sha256"])
            self.assertEqual(report["samples_committed"], reference["samples_committed"])
            [event] = job.events("store-short")
            self.assertEqual((event["role"], event["index"]), ("ps_shard", SHARD))
            self.assertEqual(event["host"], old["host"])
            self.assertEqual(event["reason"], "it is an older copy of itself")
            self.assertGreaterEqual(event["values"]["acknowledged"], newest - 1)
            self.assertLess(event["values"]["found"], event["values"]["acknowledged"])
            [loss] = report["store_losses"]
            self.assertEqual((loss["ps_shard"], loss["store"], loss["store_before"]), (SHARD, old["identity"], old["identity"]))
            self.assertEqual(loss["acknowledged"], event["values"]["acknowledged"])
            self.assertIn(f"store-short: {event['text']}", (job.run_dir / "logs" / "coordinator-0.log").read_text())
            after = self.stores(job)[SHARD]
            self.assertNotEqual(after["identity"], old["identity"])
            self.assertEqual(after["versions"][-1][1], reference["steps"])

    def test_while_it_runs_the_root_says_what_stores_hold(self):
        with self.bench.start(self.spec_with("every_step")) as job:
            with job.held_from_step(5):
                running = self.stores(job)
                self.assertEqual(set(running), {0, SHARD})
                for store in running.values():
                    self.assertGreater(store["versions"][-1][1], 0)
                self.assertEqual(len({store["identity"] for store in running.values()}), 2)
            job.kill_everything()
            for shard, store in self.stores(job).items():
                self.assertEqual(store["identity"], running[shard]["identity"])
            job.resume()
            job.expect_complete(may_redo=True)
            self.assertEqual(job.events("store-short"), [])

    def test_while_the_root_does_not_answer_what_stores_hold_is_told_as_unknown(self):
        with self.bench.start(self.spec_with("every_step")) as job:
            job.wait_until_all_run()
            job.send_signal(job.root.pid, signal.SIGSTOP)
            code, answer, complaint = job.ask("explain", "--json")
            self.assertEqual(code, 0, complaint)
            shown = json.loads(answer)
            self.assertNotIn("stores", shown)
            self.assertRegex(shown["stores_unknown"], r"^the root of the run \(pid \d+\) does not answer$")
            self.assertIn(f"is not known: {shown['stores_unknown']}", job.ask("explain")[1])

    def test_those_of_format_1_are_used_and_given_one(self):
        reference = self.undisturbed(self.spec_with("off"))
        with self.bench.start(self.spec_with("every_step")) as job:
            job.kill_everything_at_step(reference["steps"] // 3)
            files = sorted(job.run_dir.glob("ps_shard-*/FORMAT"))
            expect(files, "the stores have no file FORMAT")
            for file in files:
                file.write_text(FORMAT_1)
            self.assertEqual(job.ask("export", "--output", str(job.run_dir.with_name("exported")))[0], 0)
            self.assertEqual({file.read_text() for file in files}, {FORMAT_1})
            job.resume()
            report = job.expect_complete(may_redo=True)
            self.assertEqual(report["parameters_sha256"], reference["parameters_sha256"])
            self.assertEqual(report["store_losses"], [])
            self.assertEqual(job.events("store-short"), [])
            for file in files:
                self.assertRegex(file.read_text(), r"^dlrun-shard-store 2\nidentity [0-9a-f]{16}\nboot [0-9a-f-]{36}\nrun [0-9a-f]{16}\n$")

    def test_those_of_another_run_are_refused_and_so_is_its_record(self):
        reference = self.undisturbed(self.spec_with("off"))
        other_spec = self.spec_with("every_step")
        other_spec["train"]["seed"] += 1
        with self.bench.start(self.spec_with("every_step")) as job, self.bench.start(other_spec) as other:
            for one in (job, other):
                one.kill_everything_at_step(reference["steps"] // 3)
            for what in (f"ps_shard-{SHARD}", "run.record"):
                own, kept = job.run_dir / what, job.run_dir.with_name("kept")
                own.rename(kept)
                (shutil.copytree if kept.is_dir() else shutil.copy)(other.run_dir / what, own)
                self.expect_all_refuse(job)
                (shutil.rmtree if kept.is_dir() else pathlib.Path.unlink)(own)
                kept.rename(own)
            job.resume()
            report = job.expect_complete(may_redo=True)
            self.assertEqual(report["parameters_sha256"], reference["parameters_sha256"])

    def test_one_of_another_run_that_comes_while_it_runs_ends_the_job_at_the_first_start(self):
        other_spec = self.spec_with("every_step")
        other_spec["train"]["seed"] += 1
        with self.bench.start(other_spec) as other, self.bench.start(self.spec_with("every_step")) as job:
            other.kill_everything_at_step(5)
            with job.held_from_step(5):
                own, kept = job.run_dir / f"ps_shard-{SHARD}", job.run_dir.with_name("kept")
                own.rename(kept)
                shutil.copytree(other.run_dir / own.name, own)
                job.kill("ps_shard", SHARD)
            self.assertEqual(job.wait_end(), 1, job.output())
            reason = job.report()["reason"]
            for word in (str(own), "is the store of another run", "put back the one of this run", "would again end so"):
                self.assertIn(word, reason)
            self.assertEqual(len([one for one in job.events("role-exited") if (one["role"], one["index"]) == ("ps_shard", SHARD)]), 2)
            shutil.rmtree(own)
            kept.rename(own)
            job.resume()
            reference = self.undisturbed(self.spec_with("off"))
            self.assertEqual(job.expect_complete(may_redo=True)["parameters_sha256"], reference["parameters_sha256"])

    def expect_all_refuse(self, job):
        before = job.contents()
        for verb, options in (("resume", ()), ("export", ("--output", str(job.run_dir.with_name("exported")))), ("evaluate", ())):
            with self.subTest(verb):
                code, _, complaint = job.ask(verb, *options)
                self.assertEqual(code, 2, complaint)
                self.assertIn("of another run", complaint)
                self.assertEqual(job.contents(), before)

    def test_with_nothing_kept_on_disk_there_are_none(self):
        with self.bench.start(self.spec_with("off")) as job:
            job.expect_complete()
            self.assertEqual(self.stores(job), {})


if __name__ == "__main__":
    main()
