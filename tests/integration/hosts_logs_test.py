"""The logs of a job on several hosts, read on the root's: while it runs, followed to its end, and when the hosts are gone."""

import json
import os
import shutil
import signal
import subprocess

from bench_case import main
from dlrun_job import all_run, wait_until
from hosts_case import on_several_hosts

BAD_USAGE, DIED = 2, 1
STEP = 20


class hosted_logs(on_several_hosts):
    def logs(self, job, *options):
        """The lines of `dlrun logs`, each as its object, and what is said on stderr."""
        code, told, complaint = job.ask("logs", "--json", *options)
        self.assertEqual(code, 0, complaint)
        return [json.loads(line) for line in told.splitlines()], complaint

    def places(self, job):
        """(role, index) -> host, of those that were placed."""
        return {(event["role"], event["index"]): event["host"] for event in job.events("role-placed")}

    def on(self, name, job):
        """The workers and PS shards that are there now."""
        return [role for role, host in self.places(job).items() if host == name]

    def log_on(self, name, role):
        return self.hosts.folder_of(name) / "run" / "logs" / f"{role[0]}-{role[1]}.log"

    def expect_all_told(self, job, lines):
        """Each role has lines, of the host where it ran; those of the root's name none."""
        told = {(line["role"], line["index"], line.get("host", self.hosts.names[0])) for line in lines}
        for (kind, index), host in self.places(job).items():
            self.assertIn((kind, index, host), told)

    def texts(self, lines, name):
        return [(line["role"], line["index"], line["time"], line["text"]) for line in lines if line.get("host") == name]


class shows_the_logs_of_all_hosts(hosted_logs):
    def test_while_it_runs_and_when_their_folders_are_gone(self):
        spec = self.small_job()
        with self.start(spec) as job:
            with job.held_from_step(STEP, all_run):
                lines, complaint = self.logs(job)
                self.expect_all_told(job, lines)
                self.assertEqual(complaint, "")
                self.expect_one_role_alone(job)
            self.expect_same_bits(job, spec)
        self.assertEqual(job.events("logs-stay"), [])
        whole = {name: [self.log_on(name, role).read_text() for role in self.on(name, job)] for name in self.hosts.names[1:]}
        for name in self.hosts.names[1:]:
            shutil.rmtree(self.hosts.folder_of(name))
        lines, complaint = self.logs(job)
        self.expect_all_told(job, lines)
        self.assertEqual(complaint, "")
        for name, files in whole.items():
            copies = job.run_dir / "logs" / "hosts" / name
            self.assertEqual([(copies / f"{kind}-{index}.log").read_text() for kind, index in self.on(name, job)], files)
        self.assertEqual(list(job.run_dir.rglob("*.part")), [])

    def expect_one_role_alone(self, job):
        role = self.on("beta", job)[0]
        code, told, complaint = job.ask("logs", "--role", f"{role[0]}-{role[1]}")
        self.assertEqual((code, complaint), (0, ""))
        lines = told.splitlines()
        self.assertTrue(lines)
        for line in lines:
            self.assertIn(f" {role[0]}-{role[1]}@beta inc=", line)


class follows_the_logs_of_all_hosts(hosted_logs):
    def test_to_the_end_of_the_job_and_misses_no_line(self):
        spec = self.small_job()
        with self.start(spec) as job:
            job.wait_until_all_run()
            output = self.bench.folder / "followed"
            with open(output, "wb") as to:
                follower = subprocess.Popen([*job.within, job.program, "logs", str(job.run_dir), "--json", "--follow"], stdout=to,
                                            stderr=subprocess.PIPE)
            self.addCleanup(follower.kill)
            wait_until(lambda: '"host":"beta"' in output.read_text(), "it shows lines of another host")
            self.expect_same_bits(job, spec)
            _, complaint = follower.communicate(timeout=60)
        self.assertEqual((follower.returncode, complaint), (0, b""))
        followed = [json.loads(line) for line in output.read_text().splitlines()]
        lines, _ = self.logs(job)
        for name in self.hosts.names[1:]:
            roles = {role for role, host in self.places(job).items() if host == name}
            wanted = [text for text in self.texts(lines, name) if text[:2] in roles]
            self.assertEqual(sorted(text for text in self.texts(followed, name) if text[:2] in roles), sorted(wanted))


class tells_what_is_missing(hosted_logs):
    def expect_missing(self, complaint, name, roles, why):
        self.assertIn(f"host {name}", complaint)
        self.assertIn(why, complaint)
        self.assertIn(f"'{self.hosts.folder_of(name) / 'run' / 'logs'}'", complaint)
        for kind, index in roles:
            self.assertIn(f"{kind} {index}", complaint)

    def test_of_a_host_that_is_lost_while_the_job_runs_and_at_its_end(self):
        spec = self.small_job()
        # Its agent is not started again: what was there stays lost.
        start = ["sh", "-c", 'test ! -e "$0"/lost-"$1" || exit 1; name=$1; shift; exec ip netns exec "$PREFIX$name" "$@"',
                 str(self.bench.folder), "{host}"]
        start[2] = start[2].replace("$PREFIX", self.hosts.prefix)
        self.hosts.write_file(self.list, {"start": start})
        with self.start(spec) as job:
            with job.held_from_step(STEP, all_run):
                lost = self.on("beta", job)
                (self.bench.folder / "lost-beta").touch()
                self.hosts.lose("beta")
                wait_until(lambda: job.events("host-lost"), "it is noticed")
                lines, complaint = self.logs(job)
                self.assertEqual(self.texts(lines, "beta"), [])
                self.assertTrue(self.texts(lines, "gamma"))
                self.expect_missing(complaint, "beta", lost, "away")
                self.assertNotIn("host gamma", complaint)
            self.expect_same_bits(job, spec, may_redo=True)
        [event] = job.events("logs-stay")
        self.assertEqual(event["host"], "beta")
        self.assertIn(str(self.hosts.folder_of("beta") / "run" / "logs"), event["text"])
        self.expect_missing(self.logs(job)[1], "beta", lost, "away")

    def test_when_the_root_was_killed(self):
        with self.start(self.small_job()) as job:
            with job.held_from_step(STEP, all_run):
                os.kill(job.root.pid, signal.SIGKILL)
                self.hosts.kill_all(*self.hosts.names)
            job.wait_end()
            lines, complaint = self.logs(job)
        self.assertTrue(lines, "those of the root's host are there")
        for name in self.hosts.names[1:]:
            self.expect_missing(complaint, name, self.on(name, job), "does not answer")

    def test_and_nothing_when_the_run_goes_on_without_that_host(self):
        spec = self.small_job()
        with self.start(spec) as job:
            with job.held_from_step(STEP):
                job.root.send_signal(signal.SIGINT)
            job.wait_end()
            self.expect_nobody_left()
            job.resume(options=["--hosts", str(self.hosts.write_file(self.bench.folder / "less.yaml", count=2))])
            job.wait_until_all_run()
            lines, complaint = self.logs(job)
            self.assertEqual(complaint, "", "its logs were copied when the job was stopped")
            self.assertTrue(self.texts(lines, "gamma"))
            self.expect_same_bits(job, spec, may_redo=True)


class is_asked(hosted_logs):
    host_count = 2

    def dlrun(self, within, *words):
        answer = subprocess.run([*within, self.program, *words], capture_output=True, text=True)
        return answer.returncode, answer.stdout, answer.stderr

    def test_from_every_network_namespace_of_its_host(self):
        with self.start(self.small_job()) as job:
            with job.held_from_step(STEP, all_run):
                for within in (self.hosts.within("alpha"), self.hosts.within("beta"), []):
                    code, told, complaint = self.dlrun(within, "status", str(job.run_dir), "--json")
                    self.assertEqual(code, 0, complaint)
                    self.assertEqual(json.loads(told)["status"], "running")
                self.assertEqual(self.dlrun([], "stop", str(job.run_dir))[0], 0)
            job.wait_end()

    def test_but_not_from_another_host_that_sees_its_folder(self):
        with self.start(self.small_job()) as job:
            with job.held_from_step(STEP, all_run):
                seen = self.bench.folder / "seen"  # as over a network: files, and no socket that anybody listens at
                shutil.copytree(job.run_dir, seen, ignore=shutil.ignore_patterns("control.sock", "run.lock"))
                place = json.loads((seen / "agent.json").read_text())
                (seen / "agent.json").write_text(json.dumps({**place, "host": "far-away", "boot": "another"}))
                for verb in (["status"], ["stop"], ["attach"], ["events", "--follow"], ["logs", "--follow"],
                             ["scale", "--workers", "1"]):
                    code, _, complaint = self.dlrun([], verb[0], str(seen), *verb[1:])
                    self.assertEqual(code, BAD_USAGE, (verb, complaint))
                    self.assertIn("belongs to host far-away", complaint)
                self.assertEqual(self.dlrun([], "logs", str(seen))[0], 0, "the files are there")
            job.root.kill()
            job.wait_end()
            self.assertEqual(self.dlrun([], "status", str(job.run_dir))[0], DIED)


if __name__ == "__main__":
    main()
