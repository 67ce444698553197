"""Hosts that come by themselves, again and again, with a key: `dlrun agent --join --key-file`, in network namespaces."""

import base64
import os
import secrets
import signal

from bench_case import main
from dlrun_job import wait_until
from join_case import BAD_USAGE, COMPLETED, FAILED, INTERRUPTED, STEP, lets_hosts_join


class joins_by_a_key(lets_hosts_join):
    hosts_min = 2

    def setUp(self):
        super().setUp()
        self.key = self.bench.folder / "key"
        self.key.write_text(secrets.token_hex(32) + "\n")
        self.key.chmod(0o600)
        self.write_list(hosts_min=self.hosts_min, key_file="key")  # beside the list

    def keyed(self, name="beta", *options):
        return self.agent(name, options=("--key-file", str(self.key), *options))

    def wait_until_there(self, job, name="beta"):
        wait_until(lambda: self.state_of(job, name) == "there", f"{name} is there")

    def test_that_waits_for_a_root_is_killed_comes_again_and_ends_with_the_job(self):
        spec = self.unhurried(self.small_job(workers=2))
        first = self.keyed()
        wait_until(lambda: f"waits for the root at {self.join_at}: " in first.said(), "it waits")
        with self.start(spec) as job:
            self.assertNotIn("dlrun token", job.output())
            self.wait_until_there(job)
            job.wait_until_all_run()
            self.hosts.kill_all("beta")
            first.process.wait()
            again = self.keyed()  # at once, before the loss is noticed, perhaps
            wait_until(lambda: len(job.events("host-joined")) == 2, "it joins again")
            self.expect_same_bits(job, spec, may_redo=True)
            self.assertEqual(again.wait(), COMPLETED, again.said())
        self.assertEqual(first.said().count("waits for the root"), 1)
        self.assertEqual(job.events("host-refused"), [])

    def test_that_is_asked_to_leave_says_that_it_may_come_again_and_does(self):
        with self.endless() as job:
            one = self.keyed()
            self.wait_until_there(job)
            os.kill(self.hosts.agent_of("beta"), signal.SIGTERM)
            self.assertEqual(one.wait(), INTERRUPTED, one.said())
            self.assertIn("it may join again", one.said().splitlines()[-1].replace("the host", "it"))
            self.keyed()
            self.wait_until_there(job)

    def test_that_is_ended_while_the_job_goes_on_does_not_say_that_it_is_over(self):
        with self.endless() as job:
            one = self.keyed()
            self.wait_until_there(job)
            os.kill(self.hosts.agent_of("beta"), signal.SIGUSR1)
            self.assertEqual(one.wait(), INTERRUPTED, one.said())
            self.assertIn("asked to end; the host may join again", one.said().splitlines()[-1])

    def test_whose_root_stops_the_job_says_that_it_may_go_on_and_waits_for_it_when_it_is_called_again(self):
        spec = self.unhurried(self.small_job(workers=2))
        with self.start(spec) as job:
            one = self.keyed()
            self.wait_until_there(job)
            job.wait_until_all_run()
            self.assertEqual(job.ask("stop")[0], COMPLETED)
            self.assertEqual(job.wait_end(), INTERRUPTED)
            self.assertEqual(one.wait(), INTERRUPTED, one.said())
            again = self.keyed()
            wait_until(lambda: "waits for the root" in again.said(), "it waits")
            job.resume(options=["--hosts", str(self.list)])
            self.expect_same_bits(job, spec, may_redo=True)
            self.assertEqual(again.wait(), COMPLETED, again.said())

    def test_whose_root_is_gone_for_longer_than_the_grace_ends_with_a_failure_and_may_join_the_next_one(self):
        spec = self.small_job(workers=2, orphan_grace_s=2)
        with self.start(spec) as job:
            one = self.keyed()
            self.wait_until_there(job)
            with job.held_from_step(STEP):
                job.root.kill()
                job.root.wait()
            self.assertEqual(one.wait(), FAILED, one.said())
            self.assertTrue(one.said().splitlines()[-1].endswith("; it may join again"), one.said())
            again = self.keyed()
            job.resume(options=["--hosts", str(self.list)])
            self.expect_same_bits(job, spec, may_redo=True)
            self.assertEqual(again.wait(), COMPLETED, again.said())

    def test_that_nobody_answers_ends_when_its_time_is_over_or_it_is_asked_to(self):
        late = self.keyed("beta", "--wait-s", "1")
        self.assertEqual(late.wait(), FAILED, late.said())
        self.assertIn(f"cannot connect to {self.join_at}", late.said().splitlines()[-1])
        asked = self.keyed()
        wait_until(lambda: "waits for the root" in asked.said(), "it waits")
        asked.process.send_signal(signal.SIGTERM)
        self.assertEqual(asked.wait(), INTERRUPTED, asked.said())
        self.assertIn("was asked to end", asked.said().splitlines()[-1])

    def test_with_a_token_waits_for_as_long_as_it_is_told_to(self):
        token = f"dlrun-token-1:{base64.b64encode(bytes(64)).decode()}"
        one = self.agent("beta", token, options=("--token-file", "-", "--wait-s", "60"))
        wait_until(lambda: "waits for the root" in one.said(), "it waits")
        with self.endless():
            self.expect_refused(one, "not the root that the token is of")

    def test_is_refused_with_a_key_that_is_none_or_no_secret(self):
        other = self.bench.folder / "other"
        for content, mode, words in ((secrets.token_hex(31), 0o600, "64 hexadecimal digits"), (secrets.token_hex(32), 0o644, "chmod 600"),
                                     (None, 0, "cannot be read")):
            if content:
                other.write_text(content)
                other.chmod(mode)
            else:
                other.unlink()
            with self.subTest(words):
                self.expect_refused(self.agent("beta", options=("--key-file", str(other))), str(other), words)
                self.write_list(hosts_min=self.hosts_min, key_file=str(other))
                with self.start(self.small_job()) as job:
                    self.assertEqual(job.wait_end(), BAD_USAGE, job.output())
                    for word in ("join.key_file", str(other), words):
                        self.assertIn(word, job.output().splitlines()[-1])
                    self.assertFalse(job.run_dir.exists())


if __name__ == "__main__":
    main()
