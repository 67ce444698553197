"""One job on several hosts, each a network namespace with a folder of its own: the same bits as on one, whatever is lost."""

import json
import os
import shutil
import signal
import time

import cut_connections
import small_data
from bench_case import main
from dlrun_job import all_run, has_workers, pid_of, until_held, wait_until
from hosts_case import PS_SHARDS, WORKERS, explained, on_several_hosts, without_copies
from net_hosts import state_of

STEP = 20
LIFETIME_S = 5
ENDLESS = 100000
BAD_INPUT, INTERRUPTED = 2, 130
ROLES = 1 + WORKERS + 2 * PS_SHARDS  # the coordinator, and a keeper for each PS shard


class trains_on_them(on_several_hosts):
    def expect_explained(self, job):
        """Each role has a line with its host and a reason."""
        code, told, complaint = job.ask("explain")
        self.assertEqual(code, 0, complaint)
        lines = told.splitlines()[1:]
        shown = ROLES + 1 + 2 * PS_SHARDS  # each PS shard has a store, too, and a copy of it
        self.assertTrue(all("may be lost" in line or "would be lost" in line for line in lines[shown:]), told)
        self.assertGreater(len(lines), shown, told)
        for line, one in zip(lines, explained(job).values()):
            self.assertTrue(line.startswith(f"{one['role']} {one['index']} "), line)
            self.assertIn(f" {one['host']} ", line)
            self.assertTrue(one["reason"] and line.endswith(one["reason"]), line)

    def test_with_the_bits_of_one_host_and_roles_on_each(self):
        spec = self.small_job()
        with self.start(spec) as job:
            with job.held_from_step(1, all_run):
                self.expect_explained(job)
                for name in self.hosts.names[1:]:
                    self.assertTrue(self.roles_on(name), f"nothing runs on {name}")
            self.expect_same_bits(job, spec)
        placed = {(event["role"], event["index"]): event["host"] for event in job.events("role-placed")}
        self.assertEqual(len(placed), ROLES)
        self.assertEqual({role: one["host"] for role, one in explained(job).items()}, placed)
        self.assertEqual(len(job.events("host-joined")), 2)


class says_whom_it_waits_for(on_several_hosts):
    def test_with_its_host_when_no_step_is_made(self):
        spec = self.small_job(epochs=ENDLESS, workers=1)
        with self.start(spec) as job:
            status = job.wait_for(lambda status: status["step"] > 0, "it trains")
            pid, = [role["pid"] for role in status["roles"] if role["role"] == "worker"]
            host = explained(job)["worker", 0]["host"]
            job.send_signal(pid, signal.SIGSTOP)
            wait_until(lambda: job.events("stalled"), "it says whom it waits for")
            job.send_signal(pid, signal.SIGCONT)
            wait_until(lambda: job.events("stall-over"), "steps are made again")
            self.assertEqual(job.ask("stop")[0], 0)
            job.wait_end()
        told = job.events("stalled")[0]
        self.assertEqual((told["role"], told["index"], told["host"], told["reason"]), ("worker", 0, host, "silent"))
        self.assertGreaterEqual(told["after_ms"], 1000)
        self.expect_nobody_left()


class trains_over_a_slow_link(on_several_hosts):
    host_count = 2
    records = 32

    def test_though_a_version_takes_longer_than_two_seconds_on_its_way(self):
        spec = small_data.make_spec("mlp_dropout", self.data, workers=1, ps_shards=1)
        spec["model"]["layers"][1] = {"linear": {"out_features": 2000}}  # 1.2 MB
        self.hosts.write_file(self.list, alpha={"cpus": 1}, beta={"cpus": 8})
        self.hosts.limit("alpha", "4mbit")
        with self.start(spec) as job:
            self.assertTrue(job.wait_for(self.workers_elsewhere, "its worker is on the other host"))
            report = self.expect_same_bits(job, spec)
        self.assertEqual(report["steps"], 1)


class gives_its_model(on_several_hosts):
    def setUp(self):
        super().setUp()
        self.to = ("--output", str(self.bench.folder / "model.safetensors"), "--json")

    def expect_exported(self, job, digest):
        code, told, complaint = job.ask("export", *self.to)
        self.assertEqual(code, 0, complaint)
        self.assertEqual(json.loads(told)["parameters_sha256"], digest)

    def test_when_it_is_complete_though_the_hosts_are_gone(self):
        with self.start(without_copies(self.small_job())) as job:
            self.pauses.end()
            digest = job.expect_complete()["parameters_sha256"]
        [collected] = job.events("stores-collected")
        self.assertIn("ps_shard 1 from host beta", collected["text"])
        shutil.rmtree(self.hosts.folder_of("beta"))
        self.expect_exported(job, digest)

    def test_when_it_is_stopped_and_the_stores_are_copied(self):
        with self.start(without_copies(self.small_job())) as job:
            with job.held_from_step(STEP):
                self.assertEqual(job.ask("stop")[0], 0)
            job.wait_end()
        self.assertEqual(job.events("stores-collected"), [], "it goes on where its stores are")
        code, _, complaint = job.ask("export", *self.to)
        self.assertEqual(code, 2, complaint)
        for word in ("beta", str(self.hosts.folder_of("beta")), "ps_shard-1", "dlrun explain"):
            self.assertIn(word, complaint)
        [store] = self.hosts.folder.glob("*/run/ps_shard-1")
        shutil.copytree(store, job.run_dir / store.name)
        self.assertEqual(job.ask("export", *self.to)[0], 0)


class has_another_number_of_workers(on_several_hosts):
    def test_as_often_as_somebody_wants_and_the_bits_stay(self):
        spec = self.small_job()
        with self.start(spec) as job:
            present, step = WORKERS, 1
            for workers in (1, WORKERS, 2, 1, 3):
                with job.held_from_step(step, lambda status, there=present: has_workers(status, there)) as status:
                    code, _, complaint = job.ask("scale", "--workers", str(workers))
                    self.assertEqual(code, 0, complaint)
                present, step = workers, status["step"] + 1
            report = self.expect_same_bits(job, spec)
        self.assertEqual(report["recoveries"], [])


class survives(on_several_hosts):
    def test_the_end_of_each_worker_on_another_host(self):
        spec = self.small_job()
        with self.start(spec) as job:
            with job.held_from_step(STEP, all_run) as status:
                workers = self.workers_elsewhere(status)
                self.assertTrue(workers)
                for pid in workers:
                    os.kill(pid, signal.SIGKILL)
            report = self.expect_same_bits(job, spec)
        self.assertGreaterEqual(len(report["recoveries"]), len(workers))

    def test_the_end_of_a_ps_shard_on_another_host_in_mode_snapshots(self):
        """The agent there holds what it had made."""
        spec = self.small_job()
        spec["durability"] = {"log": "snapshots"}
        with self.start(spec) as job:
            with job.held_from_step(STEP, all_run) as status:
                self.assertNotEqual(explained(job)["ps_shard", 1]["host"], self.hosts.names[0])
                os.kill(pid_of(status, "ps_shard", 1), signal.SIGKILL)
            report = self.expect_same_bits(job, spec)
        self.assertEqual([(one["role"], one["index"]) for one in report["recoveries"]], [("ps_shard", 1)])

    def test_the_end_of_the_agent_of_a_host(self):
        spec = self.small_job()
        with self.start(spec) as job:
            with job.held_from_step(STEP):
                os.kill(self.hosts.agent_of("gamma"), signal.SIGKILL)
                wait_until(lambda: len(job.events("host-joined")) == 3, "gamma was lost and came back")
            self.expect_same_bits(job, spec, may_redo=True)
        self.assertEqual(len(job.events("host-lost")), 1)

    def test_the_loss_of_a_host_with_its_disk_and_with_the_only_store_of_a_ps_shard(self):
        spec = without_copies(self.small_job(restart={"intensity": 1, "period_s": 60}))  # one, and more than one role is lost
        with self.start(spec) as job:
            with job.held_from_step(STEP, all_run):
                before = explained(job)
                self.hosts.lose("beta")
            self.expect_same_bits(job, spec, may_redo=True)
        [lost] = job.events("host-lost")
        self.assertIn("host beta", lost["text"])
        self.expect_moved_from("beta", lost["reason"], before, explained(job))
        self.assertGreater(len(job.events("role-exited")), 1)

    def expect_moved_from(self, lost, reason, before, after):
        """All that were on a host that is lost say so; the others are where they were."""
        moved = {role for role, one in before.items() if one["host"] == lost}
        self.assertIn("ps_shard", {kind for kind, _ in moved})
        for role, one in after.items():
            if role not in moved:
                self.assertEqual(one, before[role])
                continue
            self.assertIn(one["host"], set(self.hosts.names) - {lost})
            self.assertIn(f"{lost} is lost", one["reason"])
            self.assertEqual(one["moved_from"], {"host": lost, "reason": f"host {lost} is given up: {reason}"})

    def test_a_host_that_is_cut_off_for_good_ends_all_that_it_runs(self):
        spec = self.small_job()
        with self.start(spec) as job:
            with job.held_from_step(STEP):
                self.hosts.set_link("gamma", "down")
            self.expect_same_bits(job, spec, may_redo=True)


class renews_certificates(on_several_hosts):
    """Each process of the other hosts gets a new one every 2.5 s."""

    def setUp(self):
        super().setUp()
        self.hosts.write_file(self.list, {"certificate_lifetime_s": LIFETIME_S})

    def logs(self):
        return [log for name in self.hosts.names[1:] for log in (self.hosts.folder_of(name) / "run" / "logs").glob("*.log")]

    def said(self, what):
        """How often each process has said it, by the name of its log."""
        return {log: log.read_text().count(what) for log in self.logs()}

    def renewed_since(self, before, times):
        now = self.said("certificate-renewed")
        return bool(now) and all(now[log] >= before.get(log, 0) + times for log in now)

    def test_while_the_job_runs_and_new_connections_begin_with_them(self):
        spec = self.unhurried(self.small_job())
        with self.start(spec) as job:
            job.wait_until_all_run()
            # Those of the start are over for all.
            with job.held_from_step(STEP, lambda _: self.renewed_since({}, 3)) as status:
                killed = self.workers_elsewhere(status)
                self.assertTrue(killed)
                for pid in killed:
                    os.kill(pid, signal.SIGKILL)
            report = self.expect_same_bits(job, spec)
        self.assertEqual(report["rewinds"], [])
        self.assertEqual(len(report["recoveries"]), len(killed))
        self.assertEqual(job.events("host-lost"), [])

    def test_also_over_a_connection_that_had_to_be_made_anew(self):
        until_held(self.expect_renewed_over_new_connections)

    def expect_renewed_over_new_connections(self):
        self.hosts.forget_runs()
        spec = self.unhurried(self.small_job())
        with self.start(spec) as job:
            with job.held_from_step(STEP, all_run, alive=True) as status:
                ports = cut_connections.ports_of(job.root.pid)
                roles = [pid for name in self.hosts.names[1:] for pid in self.roles_on(name)]
                self.assertLessEqual(set(self.workers_elsewhere(status)), set(roles))
                found = sum(self.said("agent-found").values())
                for pid in roles:
                    self.assertEqual(cut_connections.cut_connections(pid, ports), 1)
                wait_until(lambda: sum(self.said("agent-found").values()) == found + len(roles),
                           "each role has found the agent again")
                before = self.said("certificate-renewed")
            wait_until(lambda: self.renewed_since(before, 2), "each has a new certificate, over the new connection")
            report = self.expect_same_bits(job, spec)
        self.assertEqual(report["recoveries"], [])
        self.assertEqual(job.events("host-lost"), [])


class waits_for_a_host_that_does_not_come(on_several_hosts):
    """Its start command hangs, as ssh to a host that is switched off."""

    def setUp(self):
        super().setUp()
        content = json.loads(self.list.read_text())
        content["start"] = ["sh", "-c", f'[ "$0" != beta ] || exec sleep 1000; exec ip netns exec {self.hosts.prefix}$0 "$@"', "{host}"]
        self.list.write_text(json.dumps(content))

    def test_and_says_so_and_answers_and_can_be_stopped(self):
        with self.start(self.small_job()) as job:
            job.wait_for(lambda status: state_of(status, "beta") == "starting", "it is asked while it waits")
            job.wait_for_output("no word from the agents of these hosts: beta")
            self.assertIn("beta (starting)", job.ask("status")[1])
            self.assertIn(": waiting for hosts: beta\n", job.ask("status")[1])
            status = job.status()
            self.assertEqual((status["status"], status["waits_for"]), ("waiting", "hosts: beta"))
            self.assertIn("no role has had a place yet", job.ask("explain")[1])
            for words in (["drain", "gamma"], ["scale", "--workers", "2"]):
                code, _, complaint = job.ask(*words)
                self.assertEqual(code, BAD_INPUT)
                self.assertIn("it waits for its hosts", complaint)
            self.assertEqual(job.ask("stop")[:2], (0, "stopping\n"))
            self.assertEqual(job.wait_end(), INTERRUPTED, job.output())
            self.assertFalse(job.run_dir.exists())
        self.expect_nobody_left()


class is_refused(on_several_hosts):
    def expect_refused(self, job, *words):
        self.assertEqual(job.wait_end(), BAD_INPUT, job.output())
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
        with self.start(self.small_job(), ["data.share=off"], self.rewrite(lambda content: content.update(start=start))) as job:
            self.expect_refused(job, "host beta", "not that of host alpha", self.data["records"], "(block 0 of ")

    def test_a_host_whose_folder_holds_something_else(self):
        (self.hosts.folder_of("gamma") / "run").mkdir()
        (self.hosts.folder_of("gamma") / "run" / "thesis.tex").touch()
        with self.start(self.small_job()) as job:
            self.expect_refused(job, "host gamma", str(self.hosts.folder_of("gamma") / "run"))

    def test_two_hosts_with_one_folder(self):
        changed = self.rewrite(lambda content: content["hosts"][2].update(folder=content["hosts"][1]["folder"]))
        with self.start(self.small_job(), hosts=changed) as job:
            self.expect_refused(job, "host beta", "host gamma", f"uses the folder '{self.hosts.folder_of('beta') / 'run'}' too",
                                "each host needs its own")

    def start_beta_by(self, words):
        """A start command that first does this on beta."""
        script = f'[ "$0" != beta ] || {{ {words}; }}; exec ip netns exec {self.hosts.prefix}$0 "$@"'
        return self.rewrite(lambda content: content.update(start=["sh", "-c", script, "{host}"]))

    def test_a_host_where_a_process_may_open_too_few_files(self):
        with self.start(self.small_job(), hosts=self.start_beta_by("ulimit -n 60")) as job:
            self.expect_refused(job, "host beta: a process may have 60 files open here", "raise the limit (ulimit -n ")

    def test_a_host_whose_start_command_ends_with_what_is_no_text(self):
        with self.start(self.small_job(), hosts=self.start_beta_by(r"printf '\033[2J\377'; exit 7")) as job:
            self.expect_refused(job, "the agent of host beta exited with code 7: \\x1b[2J\\xff")

    def test_a_host_whose_start_command_prints_without_end_at_once_when_the_wait_is_interrupted(self):
        with self.start(self.small_job(), hosts=self.start_beta_by("exec yes")) as job:
            log = job.run_dir / "logs" / "host-beta.log"
            wait_until(lambda: log.exists() and b"bytes are left out" in log.read_bytes(), "its log is shortened")
            began = time.monotonic()
            job.root.send_signal(signal.SIGINT)
            self.assertEqual(job.wait_end(), INTERRUPTED, job.output())
            self.assertLess(time.monotonic() - began, 10)
        self.expect_nobody_left()

    def test_a_host_on_which_the_program_is_missing(self):
        changed = self.rewrite(lambda content: content.update(program="/nowhere/dlrun"))
        with self.start(self.small_job(), hosts=changed) as job:
            self.expect_refused(job, "/nowhere/dlrun")

    def test_a_host_that_has_another_address(self):
        changed = self.rewrite(lambda content: content["hosts"][1].update(address="10.78.0.77"))
        with self.start(self.small_job(), hosts=changed) as job:
            self.expect_refused(job, "host beta", "10.78.0.77", "10.78.0.2")

    def test_a_host_that_the_others_would_look_for_on_themselves(self):
        changed = self.rewrite(lambda content: content["hosts"][1].update(address="127.0.0.7"))
        with self.start(self.small_job(), hosts=changed) as job:
            self.expect_refused(job, "host beta", "127.0.0.7", "no other host reaches", "/etc/hosts")

    def test_roles_that_share_a_process(self):
        with self.start(self.small_job(placement="threads")) as job:
            self.expect_refused(job, "cluster.placement")


if __name__ == "__main__":
    main()
