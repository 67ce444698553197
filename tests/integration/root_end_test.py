"""However `dlrun train` ends, nothing of it is left; when it is asked to end, it ends in order and says so."""

import os
import signal

from bench_case import bench_case, main

ENDLESS = 100000
INTERRUPTED = 130
GONE_WITHIN_S = 2


class root_killed(bench_case):
    def start(self):
        return self.bench.start(self.spec(epochs=ENDLESS, workers=3))

    def test_nothing_is_left_two_seconds_after_sigkill(self):
        with self.start() as job:
            job.wait_until_all_run()
            job.root.kill()
            job.expect_nothing_left(GONE_WITHIN_S)

    def test_nothing_is_left_also_when_a_worker_and_a_ps_shard_are_stopped(self):
        with self.start() as job:
            job.wait_until_all_run()
            job.kill("worker", 1, signal.SIGSTOP)
            job.kill("ps_shard", 0, signal.SIGSTOP)
            job.root.kill()
            job.expect_nothing_left(GONE_WITHIN_S)

    def test_nothing_is_left_when_it_dies_while_it_starts(self):
        with self.start() as job:
            job.wait_for(lambda status: len(status["roles"]) > 1, "it has begun to start roles")
            job.root.kill()
            job.expect_nothing_left(GONE_WITHIN_S)

    def test_the_status_of_a_killed_run_says_that_it_is_over(self):
        with self.start() as job:
            job.wait_until_all_run()
            job.root.kill()
            job.root.wait()
            code, _, complaint = job.ask("status")
            self.assertNotEqual(code, 0)
            self.assertIn("is over", complaint)


    def test_the_status_of_a_run_whose_socket_was_removed_says_so_and_names_the_root(self):
        with self.start() as job:
            job.wait_until_all_run()
            (job.run_dir / "control.sock").unlink()
            for verb in ("status", "stop"):
                code, _, complaint = job.ask(verb)
                self.assertNotEqual(code, 0)
                self.assertIn(f"goes on in process {job.root.pid}", complaint)
                self.assertIn("SIGTERM", complaint)
            job.root.send_signal(signal.SIGTERM)
            self.assertEqual(job.wait_end(), INTERRUPTED)
            job.expect_nothing_left(GONE_WITHIN_S)


class stop_in_order(bench_case):
    def expect_order(self, order):
        """Workers, then PS shards, then the coordinator, then the root."""
        ranks = {"worker": 0, "ps_shard": 1, "coordinator": 2, "agent": 3}
        seen = [ranks[name.split()[0]] for name in order]
        self.assertEqual(seen, sorted(seen), order)
        self.assertEqual(len(order), 3 + 2 + 1 + 1)

    def expect_ordered_end(self, stop):
        with self.bench.start(self.spec(epochs=ENDLESS, workers=3)) as job:
            status = job.wait_until_all_run()
            order = job.watch_exits(status, lambda: stop(job))
            self.assertEqual(job.wait_end(), INTERRUPTED, job.output())
            job.expect_nothing_left(GONE_WITHIN_S)
            self.expect_order(order)
            report = job.report()
            self.assertEqual(report["status"], "interrupted")
            self.assertNotEqual(report["reason"], "")
            self.assertGreater(report["steps"], 0)
            self.assertEqual(report["samples_duplicated"], 0)
            self.assertEqual(job.troubles(), [])
            return report

    def test_sigint_to_the_root(self):
        self.expect_ordered_end(lambda job: job.root.send_signal(signal.SIGINT))

    def test_sigint_to_the_whole_process_group_as_a_terminal_sends_it(self):
        self.expect_ordered_end(lambda job: os.killpg(job.root.pid, signal.SIGINT))

    def test_sigterm_to_the_root(self):
        self.expect_ordered_end(lambda job: job.root.send_signal(signal.SIGTERM))

    def test_two_signals_at_the_same_moment_are_one_wish(self):
        def tell(job):  # as timeout(1) does, but two of one kind may come as one
            job.root.send_signal(signal.SIGTERM)
            job.root.send_signal(signal.SIGINT)

        self.expect_ordered_end(tell)

    def test_dlrun_stop(self):
        report = self.expect_ordered_end(lambda job: self.assertEqual(job.ask("stop")[0], 0))
        self.assertIn("dlrun stop", report["reason"])

    def test_a_second_sigint_ends_everything_at_once(self):
        with self.bench.start(self.spec(epochs=ENDLESS)) as job:
            job.wait_until_all_run()
            job.kill("worker", 0, signal.SIGSTOP)  # the ordered end would wait for it
            job.root.send_signal(signal.SIGINT)
            job.wait_for(lambda status: status["status"] == "stopping", "it stops")
            job.interrupt_again()
            self.assertEqual(job.wait_end(), INTERRUPTED)
            self.assertIn("a second signal ended it at once", job.output())
            job.expect_nothing_left(GONE_WITHIN_S)

    def test_a_stopped_worker_does_not_hold_up_the_end(self):
        with self.bench.start(self.spec(epochs=ENDLESS)) as job:
            job.wait_until_all_run()
            job.kill("worker", 0, signal.SIGSTOP)
            job.root.send_signal(signal.SIGINT)
            self.assertEqual(job.wait_end(patience_s=15), INTERRUPTED)
            job.expect_nothing_left(GONE_WITHIN_S)


if __name__ == "__main__":
    main()
