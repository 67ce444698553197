"""Hosts that come by themselves: `dlrun agent --join` with a token of `dlrun token`, in network namespaces."""

import contextlib
import os
import pathlib
import signal
import socket
import stat
import subprocess

import bare_metal_test
from bench_case import main
from dlrun_job import PATIENCE_S, all_run, status_of, wait_until
from hosts_case import without_copies
from join_case import BAD_USAGE, COMPLETED, ENDLESS, FAILED, GRACE_S, INTERRUPTED, LIFETIME_S, STEP, WORKERS, all_there, lets_hosts_join


class joins(lets_hosts_join):
    def test_two_hosts_get_workers_one_is_lost_and_the_bits_are_those_of_one_host(self):
        spec = self.unhurried(self.small_job(workers=1))
        with self.start(spec) as job:
            used = self.token(job)
            one = self.enrol(job, "beta", used)
            self.expect_refused(self.agent("gamma", used), "was used already", "dlrun token")
            self.expect_left_nothing("gamma")
            self.enrol(job, "gamma")
            job.wait_until_all_run()
            code, _, complaint = job.ask("scale", "--workers", str(WORKERS))
            self.assertEqual(code, COMPLETED, complaint)
            with job.held_from_step(1, all_there) as status:
                for name in self.hosts.names[1:3]:
                    self.assertTrue(self.hosts.workers_on([name], status), f"no worker runs on {name}")
                code, told, _ = job.ask("explain")
                self.assertEqual(code, COMPLETED)
                self.assertIn(" beta ", told)
                self.hosts.lose("beta")
                one.process.wait()
            self.expect_same_bits(job, spec, may_redo=True)
        self.assertEqual([event["host"] for event in job.events("host-joined")], ["beta", "gamma"])
        self.assertEqual([event["host"] for event in job.events("host-enrolled")], ["beta", "gamma"])
        self.assertEqual([event["host"] for event in job.events("host-lost")], ["beta"])
        self.assertIn("was used already", "".join(event["text"] for event in job.events("host-refused")))

    def test_the_agents_end_with_the_job_and_say_so(self):
        spec = self.unhurried(self.small_job(workers=1))
        with self.start(spec) as job:
            one = self.enrol(job, "beta")
            self.expect_same_bits(job, spec)
            self.assertEqual(one.wait(), COMPLETED, one.said())
        self.assertIn("host beta has joined the job", one.said())

    def test_a_host_that_was_lost_may_join_again_with_a_new_token(self):
        spec = self.unhurried(self.small_job(workers=2))
        with self.start(spec) as job:
            first = self.enrol(job, "beta")
            os.kill(self.hosts.agent_of("beta"), signal.SIGKILL)
            first.process.wait()
            wait_until(lambda: self.state_of(job, "beta") == "away", "beta is given up")
            self.enrol(job, "beta")
            self.expect_same_bits(job, spec, may_redo=True)
        self.assertEqual(len(job.events("host-joined")), 2)

    def test_certificates_are_renewed_and_the_door_stays_open(self):
        self.write_list({"certificate_lifetime_s": LIFETIME_S})
        with self.endless() as job:
            self.enrol(job, "beta")
            wait_until(self.has_renewed, "the agent's certificate is renewed")
            self.enrol(job, "gamma")
            self.assertEqual(job.events("host-lost"), [])

    def has_renewed(self):
        return any("certificate-renewed" in log.read_text() for log in self.hosts.folder_of("beta").rglob("host_agent*.log"))


class waits_for_hosts(lets_hosts_join):
    hosts_min = 3

    def test_and_says_so_and_begins_once_they_are_there(self):
        spec = self.small_job()
        with self.start(spec) as job:
            job.wait_for_output("1 of 3 hosts are there; hosts join at " + self.join_at)
            self.assertIn(f"dlrun token {job.run_dir}", job.output())
            status = job.wait_for(lambda status: status["status"] == "waiting", "it waits")
            self.assertEqual([role for role in status["roles"] if role["pid"] and role["role"] == "worker"], [])
            self.assertIn("waiting for more hosts: 1 of 3 hosts are there", job.ask("status")[1])
            self.assertIn("hosts: alpha", job.ask("status")[1])
            self.assertIn("it waits for its hosts", job.ask("scale", "--workers", "2")[2])
            self.assertIn("no role has had a place yet", job.ask("explain")[1])
            self.enrol(job, "beta")
            self.agent("gamma", self.token(job))
            self.expect_same_bits(job, spec)
        placed = {event["host"] for event in job.events("role-placed")}
        self.assertEqual(placed, set(self.hosts.names))

    def test_until_it_is_interrupted_and_leaves_nothing(self):
        for end in ("Ctrl-C", "dlrun stop"):
            with self.subTest(end), self.start(self.small_job()) as job:
                one = self.enrol(job, "beta")
                if end == "Ctrl-C":
                    os.kill(job.root.pid, signal.SIGINT)
                else:
                    self.assertEqual(job.ask("stop")[0], COMPLETED)
                self.assertEqual(job.wait_end(), INTERRUPTED, job.output())
                self.assertFalse(job.run_dir.exists())
                self.assertEqual(one.wait(), COMPLETED, one.said())
                self.expect_left_nothing("beta")

    def test_and_hears_why_one_cannot_begin(self):
        with self.start(self.small_job()) as job:
            (self.hosts.folder_of("beta") / "file").touch()
            one = self.agent("beta", self.token(job), folder=self.hosts.folder_of("beta") / "file")
            self.expect_refused(one, "host beta: cannot make the folder")
            wait_until(lambda: job.events("host-not-joined"), "the root is told")
            self.assertIn("cannot make the folder", job.events("host-not-joined")[0]["text"])
            self.assertEqual(self.state_of(job, "beta"), "away")
            (self.hosts.folder_of("beta") / "file").unlink()
            self.enrol(job, "beta")


class comes_back(lets_hosts_join):
    """With a root that was killed."""

    hosts_min = 3

    def kill_root(self, change=lambda spec: spec):
        """A job on three hosts, two of which joined by themselves, whose root is killed at STEP. @returns it and its specification"""
        spec = change(self.small_job(orphan_grace_s=GRACE_S))
        job = self.start(spec)
        self.addCleanup(job.__exit__)
        self.enrol(job, "beta")
        self.agent("gamma", self.token(job))
        with job.held_from_step(STEP, all_run) as status:
            there = {role["pid"] for role in status["roles"]}
            self.committed = [status["durable_step"]]
            self.kept = {name: set(self.roles_on(name)) & there for name in ("beta", "gamma")}
            job.root.kill()
            job.root.wait()
        self.assertEqual(len([event for event in job.events("role-placed") if event["role"] == "ps_shard" and event["host"] != "alpha"]), 1)
        return job, spec

    def expect_adopted(self, job, *names, times=1):
        """The roles of these hosts run on, for so many roots by now."""
        wait_until(lambda: len(job.events("roles-adopted")) == times, "they are taken over")
        self.assertEqual(job.events("roles-adopted")[-1]["values"]["roles"], len(set.union(*map(self.kept.get, names))))

    def test_and_its_roles_keep_their_processes(self):
        job, spec = self.kill_root()
        for times in (1, 2):
            job.resume(options=["--hosts", str(self.list)])
            with job.held_from_step(2 * STEP, all_run) as status:
                self.assertLessEqual(self.kept["beta"] | self.kept["gamma"], {role["pid"] for role in status["roles"]})
                self.expect_adopted(job, "beta", "gamma", times=times)
                self.committed.append(status["durable_step"])
                job.root.kill()
                job.root.wait()
        job.resume(options=["--hosts", str(self.list)])
        self.expect_adopted(job, "beta", "gamma", times=3)
        self.expect_committed_kept(self.expect_same_bits(job, spec, may_redo=True), self.committed)
        self.assertEqual(job.events("host-lost"), [])
        for one in self.agents:
            self.assertEqual(one.wait(), COMPLETED, one.said())

    def test_and_one_that_is_lost_meanwhile_may_join_again(self):
        job, spec = self.kill_root(self.unhurried)
        self.hosts.kill_all("beta")
        job.resume(options=["--hosts", str(self.list)])
        wait_until(lambda: job.events("host-not-joined"), "it is waited for in vain")
        self.assertIn("has not come back to this root", job.events("host-not-joined")[-1]["text"])
        self.enrol(job, "beta")
        self.pauses.end()
        self.expect_adopted(job, "gamma")
        self.expect_same_bits(job, spec, may_redo=True)
        self.assertEqual(job.events("store-missing"), [])

    def test_but_not_where_its_list_lets_none_join_any_more(self):
        job, spec = self.kill_root(without_copies)  # as on one host
        job.resume(options=["--hosts", str(self.hosts.write_file(self.bench.folder / "alone.yaml", count=1))])
        self.expect_same_bits(job, spec, may_redo=True)
        self.assertEqual(job.events("roles-adopted"), [])
        for one in self.agents:
            self.assertEqual(one.wait(), FAILED)
            self.assertIn("is not one of the job's", one.said())


class leaves(lets_hosts_join):
    def test_in_order_when_its_agent_is_asked_to_and_no_step_is_done_again(self):
        asked = {"beta": signal.SIGTERM, "gamma": signal.SIGINT}
        spec = self.unhurried(self.small_job(workers=1, ps_shards=1))
        with self.start(spec) as job:
            agents = [self.enrol(job, name) for name in asked]
            job.wait_until_all_run()
            self.assertEqual(job.ask("scale", "--workers", str(WORKERS))[0], COMPLETED)
            with job.held_from_step(1, all_there) as status:
                for name, how in asked.items():
                    self.assertTrue(self.hosts.workers_on([name], status), f"no worker runs on {name}")
                    os.kill(self.hosts.agent_of(name), how)
                wait_until(lambda: len(job.events("host-leaves")) == len(asked), "the root hears of it")
            for one in agents:
                self.assertEqual(one.wait(), COMPLETED, one.said())
            report = self.expect_same_bits(job, spec)
        self.assertEqual(report["steps_redone"], 0)
        self.assertEqual({event["host"] for event in job.events("host-left")}, set(asked))
        self.assertEqual(job.events("host-lost"), [])


class joins_by_its_unit(lets_hosts_join):
    def test_as_systemd_starts_it_and_leaves_when_it_is_stopped(self):
        credentials, state = self.bench.folder / "credentials", self.hosts.folder_of("beta")
        credentials.mkdir()
        with self.endless() as job:
            (credentials / "token").write_text(self.token(job))
            (credentials / "token").chmod(0o440)
            words = bare_metal_test.command(self.program, {"DLRUN_JOIN": self.join_at, "CREDENTIALS_DIRECTORY": str(credentials),
                                                           "STATE_DIRECTORY": str(state)})
            agent = subprocess.Popen([*self.hosts.within("beta"), *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            self.addCleanup(agent.wait)
            self.addCleanup(agent.kill)
            name = socket.gethostname()
            wait_until(lambda: self.state_of(job, name) == "there", "the host is there, by its own name")
            self.assertEqual([folder.name[:4] for folder in state.iterdir()], ["run-"])
            agent.send_signal(signal.SIGTERM)
            self.assertEqual(agent.wait(timeout=PATIENCE_S), COMPLETED)
        again = subprocess.run([*self.hosts.within("beta"), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(again.returncode, FAILED)  # nobody listens any more: systemd tries again
        self.assertIn(f"cannot connect to {self.join_at}", again.stderr)


class is_refused(lets_hosts_join):
    def test_a_host_that_comes_a_second_time_or_is_one_too_many(self):
        self.write_list(hosts_max=2)
        with self.endless() as job:
            self.enrol(job, "beta")
            self.expect_refused(self.agent("beta", self.token(job)), "host beta is there")
            self.expect_refused(self.agent("beta", self.token(job), called="delta"), "10.78.0.2 is the address of host beta")
            self.expect_refused(self.agent("gamma", self.token(job), called="alpha"), "the one where the root runs")
            token = self.token(job)
            self.expect_refused(self.agent("gamma", token), "join.hosts_max", "can still be used")
            self.expect_left_nothing("gamma")

    def test_an_address_that_the_host_has_not_and_the_token_can_still_be_used(self):
        with self.endless() as job:
            token = self.token(job)
            one = self.agent("beta", options=("--token-file", "-", "--address", "10.78.0.77"), token=token)
            self.expect_refused(one, "--address 10.78.0.77", "10.78.0.2")
            self.enrol(job, "beta", token)

    def test_a_token_that_has_expired_or_is_none(self):
        with self.endless() as job:
            token = self.token(job, "--valid-s", "1")
            self.expect_refused(self.agent("gamma", "no token\n"), "there is no token of a job in it")
            wait_until(lambda: self.is_expired(job, token), "it expires")

    def is_expired(self, job, token):
        one = self.agent("beta", token, called="alpha")  # which is refused, and leaves the token as it is
        self.assertEqual(one.wait(), BAD_USAGE, one.said())
        return "expired" in one.said()

    def test_options_and_files_that_cannot_be(self):
        folder = self.bench.folder
        (folder / "open").write_text("dlrun-token-1:x")
        (folder / "open").chmod(0o644)
        for words, said in ((["--join", "a:1"], "--token-file"), (["--join", "a:1"], "--key-file"), (["--key-file", "x"], "--join"),
                            (["--join", "a:1", "--token-file", "x", "--key-file", "y"], "--key-file"), (["--wait-s", "1"], "--join"),
                            (["--join", "a:1", "--key-file", "x", "--wait-s", "010"], "010"),
                            (["--join", "a", "--key-file", __file__], "chmod 600"),
                            (["--token-file", "x"], "--join"), (["--name", "x"], "--join"),
                            (["--join", "a:1", "--token-file", str(folder / "none")], "cannot be read"),
                            (["--join", "a:1", "--token-file", str(folder / "open")], "chmod 600")):
            done = subprocess.run([self.program, "agent", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True)
            self.assertEqual(done.returncode, BAD_USAGE, done.stderr)
            self.assertIn(said, done.stderr)

    def test_a_root_that_is_of_another_job(self):
        with self.endless() as job:
            token = self.token(job)
        with self.endless() as job:
            self.token(job)  # it listens
            self.expect_refused(self.agent("beta", token), "not the root that the token is of", "dlrun token")

    def test_a_port_that_another_job_has(self):
        with self.endless() as job:
            self.token(job)  # it listens
            with self.start(self.small_job()) as second:
                self.assertEqual(second.wait_end(), BAD_USAGE, second.output())
                self.assertIn(f"cannot listen at {self.join_at}", second.output().splitlines()[-1])
                self.assertFalse(second.run_dir.exists())

    def test_a_token_of_a_job_that_lets_nobody_in(self):
        alone = self.hosts.write_file(self.bench.folder / "alone.yaml", count=1)
        with self.start(self.small_job(epochs=ENDLESS), hosts=alone) as job:
            wait_until(lambda: status_of(job.run_dir), "the root answers")
            code, _, complaint = job.ask("token")
            self.assertEqual(code, BAD_USAGE)
            self.assertIn("has no 'join:'", complaint)


class makes_tokens(lets_hosts_join):
    def test_in_files_that_nobody_else_may_read_and_in_no_argument(self):
        file = self.bench.folder / "token"
        with self.endless() as job:
            self.token(job)  # it listens
            code, told, said = job.ask("token", "--output", str(file))
            self.assertEqual((code, told), (COMPLETED, ""))
            self.assertIn(f"dlrun agent --join {self.join_at} --token-file FILE", said)
            self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600)
            self.assertRegex(file.read_text(), r"\Adlrun-token-1:[A-Za-z0-9+/=]{88}\n\Z")
            self.assertEqual(job.ask("token", "--output", str(file))[0], BAD_USAGE)  # nothing is overwritten
            self.agent("beta", "", token_file=str(file))
            wait_until(lambda: self.state_of(job, "beta") == "there", "beta is there")
            self.expect_secret_nowhere(file.read_text().strip(), [job.run_dir, self.hosts.folder_of("beta")])

    def expect_secret_nowhere(self, token, folders):
        secret = token.split(":")[1][:40]
        for pid in self.hosts.processes("beta") + self.hosts.processes("alpha"):
            for what in ("cmdline", "environ"):
                with contextlib.suppress(OSError):
                    self.assertNotIn(secret.encode(), pathlib.Path(f"/proc/{pid}/{what}").read_bytes())
        for folder in folders:
            for file in folder.rglob("*"):
                if file.is_file():
                    self.assertNotIn(secret.encode(), file.read_bytes(), file)


if __name__ == "__main__":
    main()
