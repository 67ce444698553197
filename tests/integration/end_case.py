"""Base of tests of the end of a job on several hosts: its root is stopped by somebody between the end in the journal and its own."""

import contextlib
import hashlib
import os
import signal

from dlrun_job import BEGUN_AT_MOST, all_run, completed_early, job_over, wait_until
from hosts_case import on_several_hosts, without_copies
from service_manager import serviced_job

COMPLETED, FAILED, BAD_USAGE, INTERRUPTED = 0, 1, 2, 130
NEAR_THE_END = 220  # of 252 steps
GRACE_S = 60
LARGE = 600  # bytes of a packet: beats and small messages are smaller, what stores and logs come in is not


class ends_on_several_hosts(on_several_hosts):
    def small_job(self, **options):
        return without_copies(super().small_job(**options))

    def begin(self, spec=None, kind=serviced_job):
        """A job that ends soon. @returns it and its specification"""
        spec = spec or self.small_job(orphan_grace_s=GRACE_S)
        job = self.hosts.start(self.bench, spec, self.list, kind=kind)
        self.addCleanup(job.__exit__)
        return job, spec

    @contextlib.contextmanager
    def ending(self, job, meanwhile=lambda holder: None):
        """Within, the job is complete in its journal, and the root is stopped, which is ending its roles and has not asked for stores:
        a worker that is stopped makes that take two seconds. `meanwhile(host of PS shard 1)` happens before the root is stopped. Where
        this process had to wait for longer, the job is begun again."""
        for begun in range(1, BEGUN_AT_MOST + 1):
            try:
                self.stop_at_the_end(job, meanwhile)
                break
            except job_over as over:
                self.hosts.heal(self.hosts.names[0])
                self.go_on(job)
                if job.wait_end() != COMPLETED:
                    raise
                if begun == BEGUN_AT_MOST:
                    raise completed_early(str(over)) from over
                self.pauses.write()
                job.begin_again()
        yield self.places["ps_shard", 1]
        self.go_on(job)

    def stop_at_the_end(self, job, meanwhile):
        with job.held_from_step(NEAR_THE_END, all_run) as status:
            self.places = {(event["role"], event["index"]): event["host"] for event in job.events("role-placed")}
            self.agent_of_holder = self.hosts.agent_of(self.places["ps_shard", 1])
            os.kill(self.workers_elsewhere(status)[0], signal.SIGSTOP)
        self.pauses.end()
        job.wait_for(lambda now: now["status"] == "stopping", "the job is complete in its journal", poll_s=0.002)
        meanwhile(self.places["ps_shard", 1])
        if not job.send_signal(job.root.pid, signal.SIGSTOP) or job.events("stores-collected"):
            raise job_over(f"the root could not be stopped before it had the stores\n{job.output()}")

    @staticmethod
    def go_on(job):
        """The root, unless it was killed."""
        job.send_signal(job.root.pid, signal.SIGCONT)

    @contextlib.contextmanager
    def collecting(self, job):
        """The same, and nothing runs any more: the root asks for the store of PS shard 1, and waits for it, some seconds."""
        with self.ending(job, self.hold_back) as holder:
            self.go_on(job)
            wait_until(lambda: not [pid for name in self.hosts.names[1:] for pid in self.roles_on(name)], "all roles have ended",
                       poll_s=0.01)
            yield holder
            self.hosts.heal(self.hosts.names[0])

    def hold_back(self, name, what=f"ip length > {LARGE}"):
        """Nothing of that kind that comes from this host reaches the root any more; others are held back no more."""
        self.hosts.drop(self.hosts.names[0], f"ip saddr {self.hosts.address(name)} {what}")

    def kill_root(self, job):
        """@returns what its report was"""
        job.root.kill()
        job.root.wait()
        report = (job.run_dir / "report.json").read_bytes()
        self.assertFalse(job.events("stores-collected"))
        return report

    def expect_export(self, job, digest):
        code, told, complaint = job.ask("export", "--output", str(self.bench.folder / "model.safetensors"), "--json")
        self.assertEqual(code, COMPLETED, complaint)
        self.assertIn(digest, told)
        return hashlib.sha256((self.bench.folder / "model.safetensors").read_bytes()).hexdigest()

    def expect_not_whole(self, job, holder, *words):
        """Whoever wants the model is told what is missing, where it is, and what to do."""
        for verb in ("export", "evaluate"):
            code, _, complaint = job.ask(verb)
            self.assertEqual(code, BAD_USAGE, complaint)
            self.expect_told(complaint.splitlines()[-1], holder, *words)

    def expect_told(self, line, holder, *words):
        for word in (f"PS shard 1 (last on host {holder})", f"folder '{self.hosts.folder_of(holder)}", "copy ps_shard-1",
                     "dlrun resume", "--hosts", *words):
            self.assertIn(word, line)

    def expect_whole(self, job, spec, report, code=COMPLETED):
        """The root has come to its end, and trained nothing."""
        self.assertEqual(job.wait_end(), code, job.output())
        self.assertEqual((job.run_dir / "report.json").read_bytes(), report)
        self.assertFalse((job.run_dir / "root.secrets").exists())
        digest = self.undisturbed(spec)["parameters_sha256"]
        self.assertEqual(job.report()["parameters_sha256"], digest)
        self.expect_nobody_left()
        self.expect_export(job, digest)
        called, _, _ = job.call()
        self.assertEqual(called, COMPLETED, "it says that the run is complete")
