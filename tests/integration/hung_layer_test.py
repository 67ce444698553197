"""A second Ctrl-C ends a command whose own process computes in a layer that does not return (`cluster.placement: threads`)."""

import contextlib
import pathlib
import signal
import subprocess

import paused_runs
import small_data
from bench_case import bench_case, main
from dlrun_job import all_run, wait_until

INTERRUPTED = 130
PAUSE_MS = 1_000_003  # no other poll() takes as long
AGAIN_S = 0.6  # between two signals that are two wishes
SENT_AGAIN_MAX = 100


def is_hung(pid):
    """Whether a thread of it is in the layer."""
    try:
        calls = [(task / "syscall").read_text().split() for task in pathlib.Path(f"/proc/{pid}/task").iterdir()]
    except (FileNotFoundError, ProcessLookupError):  # a thread that ends
        return False
    return any(hex(PAUSE_MS) in words for words in calls)


class second_signal(bench_case):
    def setUp(self):
        super().setUp()
        self.pauses = self.enterContext(paused_runs.pauses(self.bench.folder, 0))
        self.job_spec = paused_runs.with_pauses(self.spec(workers=2, epochs=1000))
        self.job_spec["cluster"]["placement"] = "threads"

    def expect_ended_by_signals(self, process, output):
        """As by a Ctrl-C that is held down: the second one would be enough, but that one a little later is the same wish, also to a
        process that a busy machine did not let take the first one up; and later ones put nothing off."""
        process.send_signal(signal.SIGINT)
        with self.assertRaises(subprocess.TimeoutExpired, msg=output()):
            process.wait(AGAIN_S)
        for _ in range(SENT_AGAIN_MAX):
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(AGAIN_S)
                break
        self.assertEqual(process.wait(1), INTERRUPTED, output())
        self.assertIn("a second signal ended", output())

    def test_while_it_checks_the_model(self):
        self.pauses.set_all(PAUSE_MS / 1000)
        file = small_data.write_spec(self.bench.folder / "job.yaml", self.job_spec)
        said = self.bench.folder / "said"
        with open(said, "w") as told:
            process = subprocess.Popen([self.program, "train", str(file), "--run-dir", str(self.bench.folder / "run")], stdout=told, stderr=told)
        self.addCleanup(process.kill)
        wait_until(lambda: is_hung(process.pid), "it is in the layer")
        self.expect_ended_by_signals(process, said.read_text)

    def test_while_it_trains(self):
        with self.bench.start(self.job_spec) as job:
            job.wait_for(all_run, "it trains")
            self.pauses.set_all(PAUSE_MS / 1000)
            wait_until(lambda: is_hung(job.root.pid), "it is in the layer")
            self.expect_ended_by_signals(job.root, job.output)

    def test_when_the_job_has_ended_but_for_the_layer(self):
        """Its report is written; the process waits for the threads of its workers."""
        with self.bench.start(self.job_spec) as job:
            job.wait_for(all_run, "it trains")
            self.pauses.set_all(PAUSE_MS / 1000)
            wait_until(lambda: is_hung(job.root.pid), "it is in the layer")
            job.root.send_signal(signal.SIGTERM)
            wait_until((job.run_dir / "report.json").exists, "the job has ended")
            self.expect_ended_by_signals(job.root, job.output)


if __name__ == "__main__":
    main()
