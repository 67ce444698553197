"""One job on several hosts, each a network namespace with a folder of its own: the same bits as on one, whatever is lost."""

import contextlib
import json
import os
import signal

import small_data
from bench_case import main
from dlrun_job import job_over, wait_until
from hosts_case import EPOCHS, PS_SHARDS, WORKERS, on_several_hosts

LIFETIME_S = 5


class trains_on_them(on_several_hosts):
    def test_with_the_bits_of_one_host_and_roles_on_each(self):
        spec = self.small_job()
        with self.start(spec) as job:
            job.wait_until_all_run()
            for name in self.hosts.names[1:]:
                self.assertTrue(self.roles_on(name), f"nothing runs on {name}")
            self.expect_same_bits(job, spec)
        placed = {event["text"].split(" runs on host ")[0] for event in job.events("role-placed")}
        self.assertEqual(len(placed), 1 + WORKERS + PS_SHARDS)
        self.assertEqual(len(job.events("host-joined")), 2)


class has_another_number_of_workers(on_several_hosts):
    def test_as_often_as_somebody_wants_and_the_bits_stay(self):
        spec = self.small_job()
        with self.start(spec) as job:
            job.wait_until_all_run()
            changes = 0
            with contextlib.suppress(job_over):
                while True:
                    workers = (1, WORKERS, 2)[changes % 3]
                    code, _, complaint = job.ask("scale", "--workers", str(workers))
                    if code:
                        job.wait_end()
                        break
                    changes += 1
                    job.wait_for(lambda status: status.get("workers") == {"wanted": workers, "present": workers, "leaving": 0},
                                 f"{workers} workers are there")
            self.assertGreater(changes, 2, complaint)
            report = self.expect_same_bits(job, spec)
        self.assertEqual(report["recoveries"], [])


class survives(on_several_hosts):
    def test_the_end_of_each_worker_on_another_host(self):
        spec = self.small_job()
        with self.start(spec) as job:
            job.wait_for_step(20)
            status = job.wait_until_all_run()
            there = {pid for name in self.hosts.names[1:] for pid in self.hosts.processes(name)}
            workers = [one["pid"] for one in status["roles"] if one["role"] == "worker" and one["pid"] in there]
            self.assertTrue(workers)
            for pid in workers:
                os.kill(pid, signal.SIGKILL)
            report = self.expect_same_bits(job, spec)
        self.assertGreaterEqual(len(report["recoveries"]), len(workers))

    def test_the_end_of_the_agent_of_a_host(self):
        spec = self.small_job()
        with self.start(spec) as job:
            job.wait_for_step(20)
            os.kill(self.hosts.agent_of("gamma"), signal.SIGKILL)
            wait_until(lambda: job.events("host-lost"), "the loss of gamma is told")
            self.expect_same_bits(job, spec, may_redo=True)
        self.assertEqual(len(job.events("host-joined")), 3)  # it came back

    def test_the_loss_of_a_host_with_its_disk(self):
        spec = self.small_job()
        with self.start(spec) as job:
            job.wait_for_step(20)
            self.hosts.lose("beta")
            self.expect_same_bits(job, spec, may_redo=True)
        [lost] = job.events("host-lost")
        self.assertIn("host beta", lost["text"])

    def test_a_host_that_is_cut_off_for_good_ends_all_that_it_runs(self):
        spec = self.small_job()
        with self.start(spec) as job:
            job.wait_for_step(20)
            self.hosts.set_link("gamma", "down")
            self.expect_same_bits(job, spec, may_redo=True)


class renews_certificates(on_several_hosts):
    def renewals(self, name):
        """How often each role on a host has got a new one."""
        logs = (self.hosts.folder_of(name) / "run" / "logs").glob("*.log")
        return [log.read_text().count("certificate-renewed") for log in logs]

    def test_while_the_job_runs_and_new_connections_begin_with_them(self):
        content = json.loads(self.list.read_text())
        self.list.write_text(json.dumps({**content, "certificate_lifetime_s": LIFETIME_S}))
        spec = self.small_job()
        spec["train"]["epochs"] = 12 * EPOCHS
        with self.start(spec) as job:
            status = job.wait_until_all_run()
            # Those of the start are over for all.
            job.wait_for(lambda _: all(min(self.renewals(name)) >= 3 for name in self.hosts.names[1:]), "3 renewals of each")
            there = {pid for name in self.hosts.names[1:] for pid in self.hosts.processes(name)}
            for pid in [one["pid"] for one in status["roles"] if one["role"] == "worker" and one["pid"] in there]:
                os.kill(pid, signal.SIGKILL)
            report = job.expect_complete()
            self.expect_nobody_left()
        self.assertEqual(report["rewinds"], [])
        self.assertEqual(job.events("host-lost"), [])


class is_refused(on_several_hosts):
    def expect_refused(self, job, *words):
        self.assertEqual(job.wait_end(), 2, job.output())
        last = job.output().splitlines()[-1]
        for word in words:
            self.assertIn(word, last)
        self.expect_nobody_left()
        self.expect_nothing_behind(job)

    def rewrite(self, change):
        """The list of hosts with a change. @returns its path"""
        content = json.loads(self.list.read_text())
        change(content)
        path = self.bench.folder / "changed.yaml"
        path.write_text(json.dumps(content))
        return path

    def expect_nothing_behind(self, job):
        """Nothing began: no folder of the run is left, on any host."""
        self.assertFalse(job.run_dir.exists())
        for name in self.hosts.names[1:]:
            left = self.hosts.folder_of(name) / "run"
            self.assertFalse((left / "run.id").exists(), f"{left} is left")

    def test_a_list_with_a_host_twice_before_anything_is_made(self):
        changed = self.rewrite(lambda content: content["hosts"].append(content["hosts"][1]))
        with self.start(self.small_job(), hosts=changed) as job:
            self.expect_refused(job, "changed.yaml", "10.78.0.2")

    def test_a_list_without_the_host_that_it_is_on(self):
        changed = self.rewrite(lambda content: content["hosts"].pop(0))
        with self.start(self.small_job(), hosts=changed) as job:
            self.expect_refused(job, "changed.yaml", "10.78.0.1")

    def test_a_host_whose_data_is_other_data(self):
        other = self.bench.folder / "other"
        other.mkdir()
        changed = small_data.write_images(other, "train", self.records, seed=2)
        script = (f'[ "$0" != beta ] || mount --bind {changed["records"]} {self.data["records"]}; '
                  f'exec ip netns exec {self.hosts.prefix}$0 "$@"')
        start = ["unshare", "-m", "sh", "-c", script, "{host}"]
        with self.start(self.small_job(), hosts=self.rewrite(lambda content: content.update(start=start))) as job:
            self.expect_refused(job, "host beta", "not that of host alpha", self.data["records"])

    def test_a_host_whose_folder_holds_something_else(self):
        (self.hosts.folder_of("gamma") / "run").mkdir()
        (self.hosts.folder_of("gamma") / "run" / "thesis.tex").touch()
        with self.start(self.small_job()) as job:
            self.expect_refused(job, "host gamma", str(self.hosts.folder_of("gamma") / "run"))

    def test_a_host_on_which_the_program_is_missing(self):
        changed = self.rewrite(lambda content: content.update(program="/nowhere/dlrun"))
        with self.start(self.small_job(), hosts=changed) as job:
            self.expect_refused(job, "/nowhere/dlrun")

    def test_roles_that_share_a_process(self):
        with self.start(self.small_job(placement="threads")) as job:
            self.expect_refused(job, "cluster.placement")


if __name__ == "__main__":
    main()
