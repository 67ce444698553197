"""Hosts are lost with their disks, and nothing that was committed is computed again, in jobs that say nothing of copies."""

import json

import small_disks
from bench_case import main
from copies_case import STEP, copies
from dlrun_job import wait_until
from hosts_case import PS_SHARDS

BAD_INPUT, INTERRUPTED = 2, 130


class a_lost_host(copies):
    def test_of_a_ps_shard_with_its_disk_costs_no_committed_step(self):
        job, spec = self.begin()
        committed = self.committed(job)
        self.hosts.lose("beta")
        wait_until(lambda: self.places(job)[("ps_shard", 1)] == "gamma", "PS shard 1 is where its copy was")
        self.wait_until_whole(job, ["gamma", "alpha"])
        self.expect_nothing_lost(job, spec, [committed])
        self.assertEqual(len(job.events("host-lost")), 1)
        [left] = job.events("keeper-left")
        self.assertIn("its PS shard starts on its host, from the copy", left["text"])
        self.assertEqual(job.events("store-short"), [])

    def test_of_the_copies_lets_training_go_on_and_others_are_filled(self):
        job, spec = self.begin()
        self.hosts.lose("gamma")
        self.wait_until_whole(job, ["beta", "alpha"])
        report = self.expect_same_bits(job, spec)
        self.assertEqual(report["rewinds"], [])
        for event, count in (("copy-lost", PS_SHARDS), ("copy-whole", 2 * PS_SHARDS)):
            self.assertEqual(len(job.events(event)), count, event)

    def test_and_then_the_next_one_until_only_the_root_is_left(self):
        job, spec = self.begin()
        committed = [self.committed(job)]
        self.hosts.lose("beta")
        self.wait_until_whole(job, ["gamma", "alpha"])
        committed.append(self.committed(job))
        self.hosts.lose("gamma")
        wait_until(lambda: self.places(job)[("ps_shard", 1)] == "alpha", "PS shard 1 is on alpha")
        wait_until(lambda: len(job.events("copy-waits")) == PS_SHARDS, "it is told that there are no copies")
        self.expect_nothing_lost(job, spec, committed)


class a_process(copies):
    def test_of_a_ps_shard_that_is_killed_starts_there_again_and_the_copy_stays_whole(self):
        job, spec = self.begin()
        job.kill("ps_shard", 1)
        job.wait_for_exits(1)
        job.wait_until_all_run()
        report = self.expect_same_bits(job, spec)
        self.assertEqual(report["rewinds"], [])
        self.assertEqual(self.places(job)[("ps_shard", 1)], "beta")
        self.assertEqual(job.events("copy-lost"), [])

    def test_of_a_keeper_that_is_killed_is_replaced_and_its_copy_is_whole_again(self):
        job, spec = self.begin()
        job.kill("keeper", 1)
        wait_until(lambda: len(job.events("copy-whole")) == PS_SHARDS + 1, "the copy is whole again")
        [lost] = job.events("copy-lost")
        self.assertIn("ps_shard 1 goes on without a copy", lost["text"])
        report = self.expect_same_bits(job, spec)
        self.assertEqual(report["rewinds"], [])


class a_copy(copies):
    def test_whose_disk_is_full_is_given_up_and_others_are_filled_elsewhere(self):
        disk = self.enterContext(small_disks.in_memory("256m"))
        self.hosts.folder_of("gamma").rmdir()
        self.hosts.folder_of("gamma").symlink_to(disk.folder)
        job, spec = self.begin()

        def are_given_up():
            disk.fill()  # again and again: what a copy drops makes room
            return {event["index"] for event in job.events("copy-silent")} == set(range(PS_SHARDS))

        wait_until(are_given_up, "both copies are given up")
        self.wait_until_whole(job, ["beta", "alpha"])
        report = self.expect_same_bits(job, spec)
        self.assertEqual(report["rewinds"], [])

    def test_that_is_damaged_when_its_keeper_starts_is_set_aside_and_another_is_filled(self):
        job, spec = self.begin()
        [store] = self.hosts.folder_of("gamma").rglob("ps_shard-1")
        [current] = store.rglob("CURRENT")
        current.write_text("nothing of the kind\n")
        job.kill("keeper", 1)
        wait_until(lambda: len(job.events("copy-whole")) == PS_SHARDS + 1, "the copy is whole again")
        self.assertTrue(store.with_name("ps_shard-1.damaged").is_dir())
        report = self.expect_same_bits(job, spec)
        self.assertEqual(report["rewinds"], [])


class a_run_that_goes_on(copies):
    def test_begins_from_the_copies_when_a_host_and_its_disk_are_gone(self):
        job, spec = self.begin()
        committed = self.committed(job)
        job.root.kill()
        self.hosts.kill_all(*self.hosts.names)
        job.wait_end()
        self.hosts.lose("beta")
        listed = self.hosts.write_file(self.bench.folder / "without_beta.yaml")
        content = json.loads(listed.read_text())
        content["hosts"] = [host for host in content["hosts"] if host["name"] != "beta"]
        listed.write_text(json.dumps(content))
        job.resume(options=["--hosts", str(listed)])
        self.expect_nothing_lost(job, spec, [committed])
        self.assertEqual(job.events("store-missing"), [])


class a_lost_host_of_a_job_without_a_log(a_lost_host):
    """What is committed are snapshots."""

    log = "snapshots"


class a_process_of_a_job_without_a_log(a_process):
    log = "snapshots"


class a_copy_of_snapshots(a_copy):
    log = "snapshots"


class a_run_without_a_log_that_goes_on(a_run_that_goes_on):
    log = "snapshots"


class the_number_of_stores(copies):
    def wait_and_stop(self, job):
        """At STEP; without haste, since nothing of it is to be seen."""
        job.wait_for_step(STEP)
        self.assertEqual(job.ask("stop")[0], 0)
        self.assertEqual(job.wait_end(), INTERRUPTED, job.output())
        return job.report()["durability"]["replicas"]

    def said(self, job):
        """What it says of its number, at each start."""
        return [line for line in job.output().splitlines() if line.startswith("durability.replicas: ") or "degraded" in line]

    def expect_two(self, said):
        self.assertIn("durability.replicas: auto is 2: the job begins with 3 hosts, so each PS shard's store has a copy", said)
        self.assertIn("a host that is lost with its disk costs no committed step", said)

    def test_is_two_on_several_hosts_and_that_is_said_with_the_reason(self):
        job, spec = self.begin()
        report = self.expect_same_bits(job, spec)
        [said] = self.said(job)
        self.expect_two(said)
        self.assertEqual(report["durability"]["replicas"], 2)
        self.assertIn("replicas: auto", (job.run_dir / "spec.yaml").read_text())

    def test_is_one_if_somebody_asks_for_it_and_that_is_a_warning(self):
        spec = self.small_job()
        with self.start(spec, ["durability.replicas=1"]) as job:
            report = self.expect_same_bits(job, spec)
        self.assertEqual(report["durability"]["replicas"], 1)
        [said] = self.said(job)
        self.assertIn("dlrun: warning: degraded: with durability.replicas: 1 a host that is lost with its disk", said)
        self.assertEqual([one for one in job.events("role-placed") if one["role"] == "keeper"], [])

    def test_is_for_the_hosts_of_each_resume(self):
        job, spec = self.begin()
        self.assertEqual(self.wait_and_stop(job), 2)
        job.resume()
        self.assertEqual(self.wait_and_stop(job), 1)
        job.resume(options=["--hosts", str(self.list)])
        job.wait_for(lambda status: {one["state"] for one in self.roles(status, "keeper").values()} == {"whole"}, "the copies are whole")
        report = self.expect_same_bits(job, spec, may_redo=True)
        self.assertEqual(report["durability"]["replicas"], 2)
        first, alone, again = self.said(job)
        self.expect_two(first)
        self.assertIn("durability.replicas: auto is 1: the job begins with one host", alone)
        self.assertIn("; before it was 2", alone)
        self.expect_two(again)
        self.assertIn("; before it was 1", again)

    def test_that_was_asked_for_is_not_left_out_on_one_host(self):
        spec = self.unhurried(self.small_job())
        job = self.start(spec, ["durability.replicas=2"])
        self.addCleanup(job.__exit__)
        self.wait_and_stop(job)
        self.assertEqual(self.said(job), [])
        job.resume()
        self.assertEqual(job.wait_end(), BAD_INPUT, job.output())
        self.assertIn("let it be auto", job.output().splitlines()[-1])
        job.resume(overrides=["durability.replicas=auto"])
        report = self.expect_same_bits(job, spec, may_redo=True)
        self.assertEqual(report["durability"]["replicas"], 1)


class what_is_shown(copies):
    def test_is_where_each_copy_is_and_whether_it_is_whole(self):
        job, spec = self.begin()
        _, told, _ = job.ask("status")
        self.assertIn("copies: ps_shard 0 on gamma (whole), ps_shard 1 on gamma (whole)", told)
        _, told, _ = job.ask("explain")
        for shard in range(PS_SHARDS):
            self.assertRegex(told, rf"ps_shard {shard}, copy \(whole(, \d+ behind)?\) +gamma ")
            self.assertRegex(told, rf"keeper {shard} +gamma .* a copy of ps_shard {shard} belongs on another host")
        self.expect_same_bits(job, spec)


if __name__ == "__main__":
    main()
