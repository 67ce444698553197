"""dlrun drain: everything moves off a host, which may then be switched off, and no step is done again."""

import signal
import subprocess
import time

import coordinator_losses as losses
import log_watch
from bench_case import main
from copies_case import STEP, copies, newest
from dlrun_job import all_run, status_of, until_held, wait_until
from etcd_members import no_etcd
from hosts_case import on_several_hosts, without_copies
from net_hosts import state_of

BAD_INPUT = 2
GRACE_S = 60  # in which a root may come back
EPOCHS, SLOT_S = 16, 0.05  # of 63 steps: the job lasts until its pauses end, and is quick from then on
NO_RESTARTS, ANY_RESTARTS = {"intensity": 0}, {"intensity": 1000}  # with 0 the first restart that counts ends the job


class drains(copies):
    """Each host has a PS shard, and the copy of another one."""

    ps_shards = 3

    def setUp(self):
        super().setUp()
        self.pauses.set_all(SLOT_S)
        self.name = self.hosts.names[1]

    def begin(self, **cluster):
        spec = self.small_job(epochs=EPOCHS, **{"ps_shards": self.ps_shards, "restart": NO_RESTARTS} | cluster)
        spec["durability"] = {"log": self.log}
        job = self.start(spec)
        self.addCleanup(job.__exit__)
        job.wait_for_step(STEP)
        self.wait_until_all_whole(job)
        return job, spec

    def wait_until_all_whole(self, job):
        job.wait_for(lambda status: all_run(status) and all(one["state"] == "whole" for one in self.roles(status, "keeper").values()),
                     "all copies are whole")

    def state_of(self, job, host=None):
        return state_of(job.status(), host or self.name)

    def drain(self, job, *options, host=None):
        return job.ask("drain", host or self.name, *options)

    def drain_and_wait(self, job, host=None):
        code, told, complaint = self.drain(job, "--wait", host=host)
        self.assertEqual(code, 0, complaint)
        self.assertIn("is drained: it may be switched off", told)

    def roles_there(self, job, host=None):
        """By the places that are told."""
        return sorted(role for (role, _), where in self.places(job).items() if where == (host or self.name))

    def expect_undisturbed(self, job, spec):
        """The bits of one host, nothing done again, no role that died."""
        report = self.expect_same_bits(job, spec)
        self.assertEqual((report["rewinds"], report["recoveries"]), ([], []))
        for event in ("host-lost", "role-exited", "store-short", "copy-silent"):
            self.assertEqual(job.events(event), [], event)
        return report

    def switch_off(self, name):
        """With its disk."""
        self.hosts.lose(name)


class a_host(drains):
    def test_with_a_ps_shard_a_copy_and_workers_is_emptied_and_its_loss_costs_nothing(self):
        job, spec = self.begin()
        self.assertEqual({"ps_shard", "keeper", "worker"}, set(self.roles_there(job)))
        with log_watch.log_watch(job.run_dir) as log:
            undisturbed = time.monotonic()
            job.wait_for_step(job.status()["step"] + 2 * STEP)
            began = time.monotonic()
            self.drain_and_wait(job)
            ended = time.monotonic()
            print(f"drained in {ended - began:.1f} s; longest pause of steps {max(log.gaps(began, ended)):.0f} ms,"
                  f" before {max(log.gaps(undisturbed, began)):.0f} ms")
        self.assertEqual(self.roles_on(self.name), [])
        self.assertEqual(self.state_of(job), "drained")
        for verb in ("status", "explain"):
            self.assertIn("drained", job.ask(verb)[1])
        self.switch_off(self.name)
        wait_until(lambda: job.events("host-left"), "it is told that the host has gone")
        self.assertEqual(self.state_of(job), "drained")
        self.expect_undisturbed(job, spec)
        self.assertEqual(len(job.events("host-drained")), 1)
        self.assertEqual(len(job.events("host-joined")), 2)
        moved = [event for event in job.events("role-placed") if "is drained" in event["reason"]]
        self.assertIn("ps_shard", {event["role"] for event in moved})

    def test_that_is_killed_while_it_is_emptied_is_a_lost_host_and_drained_after_that(self):
        job, spec = self.begin(restart=ANY_RESTARTS)
        committed = self.committed(job)
        with job.held_from_step(STEP):  # no worker leaves: what it keeps is not committed
            self.assertEqual(self.drain(job)[0], 0)
            self.switch_off(self.name)
            wait_until(lambda: job.events("host-lost"), "it is given up")
            self.assertEqual(self.state_of(job), "draining")
        wait_until(lambda: job.events("host-drained"), "it is drained")
        report = self.expect_same_bits(job, spec, may_redo=True)
        self.expect_committed_kept(report, [committed])

    def test_whose_drain_is_undone_is_used_again(self):
        job, spec = self.begin(workers_max=8)
        self.drain_and_wait(job)
        code, told, complaint = self.drain(job, "--undo")
        self.assertEqual((code, complaint), (0, ""), told)
        self.assertEqual(self.state_of(job), "there")
        code, _, complaint = job.ask("scale", "--workers", "8", "--wait")
        self.assertEqual(code, 0, complaint)
        self.assertTrue(self.roles_on(self.name), "workers run there again")
        self.expect_undisturbed(job, spec)

    def test_that_is_off_is_started_again_when_that_is_undone(self):
        job, spec = self.begin()
        self.drain_and_wait(job)
        self.hosts.kill_all(self.name)
        wait_until(lambda: job.events("host-left"), "it is told that the host has gone")
        self.assertEqual(self.drain(job, "--undo")[0], 0)
        wait_until(lambda: len(job.events("host-joined")) == 3, "it is back")
        self.expect_undisturbed(job, spec)


class a_host_of_a_job_without_a_log(a_host):
    """Its PS shard stands still until its copy has the version that it stands at."""

    log = "snapshots"

    def test_whose_drain_is_undone_while_its_ps_shard_stands_still_keeps_it(self):
        job, spec = self.begin()
        [shard] = [index for (role, index), where in self.places(job).items() if (role, where) == ("ps_shard", self.name)]

        def wait_until_it_is(state):
            job.wait_for(lambda status: self.roles(status, "ps_shard")[shard]["state"] == state, f"its PS shard is {state}")

        workers = [worker["pid"] for worker in self.roles(job.status(), "worker").values()]
        for pid in workers:  # so that the gradients of the next step do not come
            job.send_signal(pid, signal.SIGSTOP)
        try:
            self.assertEqual(self.drain(job)[0], 0)
            wait_until_it_is("moving")
            self.assertEqual(self.drain(job, "--undo")[0], 0)
            wait_until_it_is("training")
        finally:
            for pid in workers:
                job.send_signal(pid, signal.SIGCONT)
        self.assertEqual(self.places(job)[("ps_shard", shard)], self.name)
        self.expect_undisturbed(job, spec)
        self.assertEqual(job.events("role-left"), [])


class two_hosts(drains):
    host_count = 4

    def test_are_emptied_at_once_and_switched_off(self):
        job, spec = self.begin()
        for host in ("beta", "gamma"):
            self.assertEqual(self.drain(job, host=host)[0], 0)
        for host in ("beta", "gamma"):
            self.drain_and_wait(job, host)
            self.assertEqual(self.roles_on(host), [])
        status = job.status()
        for kind in ("ps_shard", "keeper"):
            where = {role["store"]["host"] for role in self.roles(status, kind).values()}
            self.assertLessEqual(where, {"alpha", "delta"}, kind)
        for host in ("beta", "gamma"):
            self.switch_off(host)
        wait_until(lambda: len(job.events("host-left")) == 2, "it is told that they have gone")
        self.expect_undisturbed(job, spec)


class a_copy_that_was_given_up(drains):
    """PS shards 1 and 2 are on beta and delta, the copy of 1 is on delta and that of 2 on beta."""

    host_count = 4

    def test_is_the_best_store_when_that_of_its_ps_shard_is_lost_before_another_is_whole(self):
        job, spec = self.begin(restart=ANY_RESTARTS)
        places = self.places(job)
        self.assertEqual([places[role, index] for role, index in (("ps_shard", 1), ("keeper", 1))], ["beta", "delta"])
        block = job.run_dir / "ps_shard-1"  # no folder: the keeper on alpha can fill nothing
        block.write_text("")
        committed = newest(self.roles(job.status(), "keeper")[1])
        self.assertEqual(self.drain(job, host="delta")[0], 0)
        wait_until(lambda: self.places(job)[("keeper", 1)] == "alpha", "the copy is given up")
        self.switch_off("beta")
        wait_until(lambda: self.places(job)[("ps_shard", 1)] == "delta", "the PS shard begins from what was given up")
        self.assertEqual(len([one for one in job.events("copy-whole") if one["index"] == 1]), 1, "no other copy was whole")
        block.unlink()
        self.drain_and_wait(job, "delta")
        report = self.expect_same_bits(job, spec, may_redo=True)
        self.expect_committed_kept(report, [committed])


class two_hosts_of_a_job_without_a_log(two_hosts):
    log = "snapshots"


class one_of_two_hosts(drains):
    """There is no host for copies while it is drained."""

    host_count, ps_shards = 2, 2
    WORDS = "no copies while beta is drained"

    def wait_for_copies(self, job, hosts):
        job.wait_for(lambda status: [self.roles(status, "keeper")[shard].get("store", {}).get("host") for shard in (0, 1)] == hosts,
                     f"the copies are on {hosts}")
        self.wait_until_all_whole(job)

    def test_is_emptied_without_copies_which_are_whole_again_when_that_is_undone(self):
        job, spec = self.begin()
        self.assertEqual({"ps_shard", "keeper", "worker"}, set(self.roles_there(job)))
        code, told, complaint = self.drain(job, "--wait")
        self.assertEqual(code, 0, complaint)
        for line in told.splitlines():
            self.assertIn(self.WORDS, line)
        self.assertEqual(self.roles_on(self.name), [])
        self.assertEqual(self.state_of(job), "drained")
        self.assertIn(self.WORDS, job.ask("status")[1])
        for event in ("host-draining", "host-drained"):
            self.assertIn(self.WORDS, job.events(event)[0]["text"])
        status = job.status()
        self.assertEqual({role["store"]["host"] for role in self.roles(status, "ps_shard").values()}, {"alpha"})
        self.assertEqual([host.get("without_copies") for host in status["hosts"]], [None, True])
        self.assertEqual(self.drain(job, "--undo")[0], 0)
        self.wait_for_copies(job, ["beta", "beta"])
        self.assertNotIn("no copies", job.ask("status")[1])
        self.assertEqual(self.expect_undisturbed(job, spec)["steps_redone"], 0)

    def test_gets_a_ps_shard_back_when_all_copies_are_whole(self):
        job, spec = self.begin()
        self.drain_and_wait(job)
        self.assertEqual(self.drain(job, "--undo")[0], 0)
        self.wait_for_copies(job, ["beta", "beta"])
        wait_until(lambda: self.places(job)["ps_shard", 0] == "beta", "a PS shard moves to its copy")
        self.wait_for_copies(job, ["alpha", "beta"])
        moves = [one for one in job.events("role-placed") if one["role"] == "ps_shard" and "has too many" in one["reason"]]
        self.assertEqual([(one["index"], one["host"]) for one in moves], [(0, "beta")])
        self.assertEqual(self.expect_undisturbed(job, spec)["steps_redone"], 0)

    def test_may_be_switched_off_and_is_started_again_with_an_empty_disk_when_that_is_undone(self):
        job, spec = self.begin()
        self.drain_and_wait(job)
        self.switch_off(self.name)
        wait_until(lambda: job.events("host-left"), "it is told that the host has gone")
        self.hosts.folder_of(self.name).mkdir()
        self.hosts.set_link(self.name, "up")
        self.assertEqual(self.drain(job, "--undo")[0], 0)
        self.wait_for_copies(job, ["beta", "beta"])
        self.expect_undisturbed(job, spec)

    def test_is_refused_where_copies_were_asked_for(self):
        spec = self.small_job(epochs=EPOCHS, ps_shards=self.ps_shards, restart=NO_RESTARTS)
        spec["durability"] = {"log": self.log, "replicas": 2}
        job = self.start(spec)
        self.addCleanup(job.__exit__)
        job.wait_until_all_run()
        code, told, complaint = self.drain(job)
        self.assertEqual((code, told), (BAD_INPUT, ""), complaint)
        for word in ("the job has host alpha alone", "dlrun token", "durability.replicas=auto", "durability.replicas=1"):
            self.assertIn(word, complaint)
        self.assertEqual(job.events("host-draining"), [])
        self.pauses.end()
        job.expect_complete()


class one_of_two_hosts_of_a_job_without_a_log(one_of_two_hosts):
    log = "snapshots"


class the_wait(drains):
    def test_ends_by_ctrl_c_and_leaves_the_drain_going(self):
        job, spec = self.begin()
        words = [*job.within, job.program, "drain", str(job.run_dir), self.name, "--wait"]
        waiting = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: job.events("host-draining"), "it is being drained")
        waiting.send_signal(signal.SIGINT)
        waiting.wait()
        wait_until(lambda: self.state_of(job) == "drained", "it is drained all the same")
        self.drain_and_wait(job)  # which it is already
        self.expect_undisturbed(job, spec)

    def test_says_so_when_it_is_undone_meanwhile(self):
        until_held(self.expect_undoing_told)

    def expect_undoing_told(self):
        self.hosts.forget_runs()
        job, spec = self.begin()
        words = [*job.within, job.program, "drain", str(job.run_dir), self.name, "--wait"]
        with job:
            with job.held_from_step(STEP, alive=True):  # no worker leaves: what it keeps is not committed
                waiting = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                wait_until(lambda: job.events("host-draining"), "it is being drained")
                self.assertEqual(self.drain(job, "--undo")[0], 0)
                _, complaint = waiting.communicate()
            self.assertEqual(waiting.returncode, 1)
            self.assertIn("is in use again", complaint)
            self.expect_undisturbed(job, spec)


class a_root_that_comes_back(drains):
    """It had kept which hosts are to be empty."""

    def begin_and_drain(self):
        return self.begin(restart=ANY_RESTARTS, orphan_grace_s=GRACE_S)

    def kill_root(self, job):
        job.root.kill()
        job.root.wait()
        wait_until(lambda: not self.hosts.processes(self.hosts.names[0]), "nothing runs on the root's host")

    def resume(self, job):
        job.resume(options=["--hosts", str(self.list)])

    def test_goes_on_with_a_drain(self):
        job, spec = self.begin_and_drain()
        with job.held_from_step(STEP):  # no worker leaves: what it keeps is not committed
            self.assertEqual(self.drain(job)[0], 0)
            self.assertEqual(self.state_of(job), "draining")
            self.kill_root(job)
        self.resume(job)
        wait_until(lambda: job.events("host-drained"), "it is drained")
        self.assertEqual(self.roles_on(self.name), [])
        self.expect_same_bits(job, spec, may_redo=True)

    def test_waits_for_no_host_that_was_drained_and_is_off(self):
        job, spec = self.begin_and_drain()
        self.drain_and_wait(job)
        self.kill_root(job)
        self.hosts.kill_all(self.name)
        self.resume(job)
        job.wait_for(all_run, "it goes on without that host")
        self.assertEqual(self.state_of(job), "drained")
        self.assertEqual(self.hosts.processes(self.name), [], "nobody starts its agent")
        self.assertIn("beta is drained", job.ask("explain")[1])
        self.assertEqual(self.drain(job, "--undo")[0], 0)
        wait_until(lambda: self.state_of(job) == "there", "it is used again")
        self.expect_same_bits(job, spec, may_redo=True)


class the_coordinator(drains):
    def test_may_die_meanwhile(self):
        job, spec = self.begin(restart=ANY_RESTARTS)
        self.assertEqual(self.drain(job)[0], 0)
        job.kill("coordinator")
        self.drain_and_wait(job)
        report = self.expect_same_bits(job, spec)
        self.assertEqual({one["role"] for one in report["recoveries"]}, {"coordinator"})


class a_coordinator_that_moves(on_several_hosts):
    host_count = losses.JOB_HOSTS

    def test_moves_off_the_host(self):
        etcd = self.enter_or_skip(losses.etcd_on(self.hosts, self.bench.folder), no_etcd)
        spec = self.small_job(epochs=EPOCHS, restart=ANY_RESTARTS, ps_shards=1)
        spec["cluster"]["journal"] = etcd.journal()
        job = self.start(spec)
        self.addCleanup(job.__exit__)
        job.wait_until_all_run()
        host = losses.coordinator_host(job)
        code, _, complaint = job.ask("drain", host, "--wait")
        self.assertEqual(code, 0, complaint)
        self.assertNotEqual(losses.coordinator_host(job), host)
        self.pauses.end()
        losses.expect_no_recovery(job, self.hosts, job.expect_complete())


class is_refused(drains):
    def expect_refused(self, answer, *words):
        code, told, complaint = answer
        self.assertEqual((code, told), (BAD_INPUT, ""), complaint)
        for word in words:
            self.assertIn(word, complaint)

    def test_what_cannot_be_and_says_why_and_the_way_out(self):
        job, spec = self.begin()
        self.expect_refused(self.drain(job, host="delta"), "there is no host delta", "alpha, beta, gamma")
        self.expect_refused(self.drain(job, host="alpha"), "is the root's", "'dlrun stop'")
        self.expect_refused(self.drain(job, "--undo"), "is not being drained")
        for word in (b"drain", b"undrain"):  # as `dlrun drain` does not ask
            self.assertIn("there is no host \ufffd", status_of(job.run_dir, word + b" \xff"))
        self.assertEqual(self.drain(job)[0], 0)
        self.expect_refused(self.drain(job), "already", "--undo")
        self.drain_and_wait(job)
        self.expect_undisturbed(job, spec)
        self.expect_refused(self.drain(job), "is over", "nothing left")

    def test_a_host_with_the_only_store_of_a_ps_shard_and_others_are_emptied(self):
        job = self.start(spec := without_copies(self.small_job(epochs=EPOCHS, restart=NO_RESTARTS)))
        self.addCleanup(job.__exit__)
        job.wait_until_all_run()
        self.expect_refused(self.drain(job), "has the only store of ps_shard 1", "durability.replicas=auto")
        self.assertEqual(job.events("host-draining"), [])
        self.drain_and_wait(job, host="gamma")
        self.expect_undisturbed(job, spec)

    def test_of_a_job_on_one_host_and_of_no_run(self):
        with self.bench.start(self.small_job(epochs=EPOCHS)) as job:
            job.wait_until_all_run()
            self.expect_refused(self.drain(job), "runs on one host", "--hosts")
            self.pauses.end()
            job.expect_complete()
        words = [self.program, "drain", str(self.bench.folder / "nowhere"), "beta"]
        done = subprocess.run(words, capture_output=True, text=True)
        self.expect_refused((done.returncode, done.stdout, done.stderr), "there is no run folder")


if __name__ == "__main__":
    main()
