"""Copies behind a slow link: they are kept, whoever asked for them, and what they cost is measured and told."""

import small_data
from bench_case import main
from copies_case import copies
from dlrun_job import wait_until

RATE, BYTES_A_SECOND = "20mbit", 2.5e6
WIDTH = 4000  # of the hidden layer: a record of 2.5 MB, which takes a second; a step is computed in a twentieth of that
PATIENCE_S = 120  # two windows of 10 s, or of four steps, on however busy a machine


class a_slow_link(copies):
    """PS shard and workers are on alpha, which sends to beta at RATE once the copy there is whole."""

    host_count = 2

    def wide_job(self):
        spec = self.small_job(epochs=8)
        for layer in spec["model"]["layers"]:
            if "linear" in layer and layer["linear"]["out_features"] == 64:
                layer["linear"]["out_features"] = WIDTH
        spec["cluster"].update({"workers": 2, "ps_shards": 1})
        return spec

    def begin_slowly(self, *overrides):
        """@returns the job, and what is said of its copy in the end"""
        spec = self.wide_job()
        listed = self.hosts.write_file(self.bench.folder / "uneven.yaml", alpha={"cpus": 64}, beta={"cpus": 1})
        job = self.start(spec, overrides, hosts=listed)
        self.addCleanup(job.__exit__)
        self.wait_until_whole(job, ["beta"])
        self.hosts.limit("alpha", RATE)

        def copy_of(status):
            return self.roles(status, "keeper")[0].get("copy", {})

        def is_measured(status):
            # By a window that was slow from its beginning on.
            return copy_of(status).get("slow") and copy_of(status)["bytes_per_second"] < 1.2 * BYTES_A_SECOND

        wait_until(lambda: job.events("copy-slow"), "it is told that the copy is slow", PATIENCE_S)
        return job, spec, listed, copy_of(job.wait_for(is_measured, "all of it is slow", PATIENCE_S))

    def expect_told(self, job, copy):
        event = job.events("copy-slow")[0]
        self.assertEqual((event["role"], event["index"]), ("ps_shard", 0))
        for part in ("the copy of ps_shard 0 costs much", "MB a step", "It is kept", "durability.log: snapshots"):
            self.assertIn(part, event["text"])
        self.assertGreaterEqual(max(event["values"]["waited"], event["values"]["busy"] / 5), 0.1)
        # Two records of the four steps or more that are measured may not have come yet.
        self.assertGreater(copy["bytes_per_step"], 4 * WIDTH * small_data.SIDE**2 / 2)
        _, told, _ = job.ask("status")
        self.assertRegex(told, r"copy of ps_shard 0: \d+ steps behind; .* MB/s.*: that is much")
        for verb in ("status", "explain"):
            _, told, _ = job.ask(verb)
            self.assertIn("any one of these hosts may be lost now without losing a committed step: beta\n", told)
            self.assertIn("with alpha would be lost: the run folder", told)

    def expect_end(self, job, spec):
        """In time, and with the bits of one host, which has no copy."""
        self.hosts.limit("alpha", "10gbit", 1 << 20)
        report = self.expect_same_bits(job, spec, may_redo=True)
        self.assertEqual(report["durability"]["replicas"], 2)
        self.assertGreater(report["durability"]["copies_waited_seconds"], 0)
        self.assertGreater(report["bytes_copied"], 0)
        self.assertEqual(job.events("copy-lost"), [])
        return report

    def test_costs_what_is_told_and_a_resume_says_how_much_that_was(self):
        job, spec, listed, copy = self.begin_slowly()
        self.expect_told(job, copy)
        self.assertEqual(job.ask("stop")[0], 0)
        job.wait_end()
        job.resume(options=["--hosts", str(listed)])
        self.expect_end(job, spec)
        [first, again] = [line for line in job.output().splitlines() if line.startswith("durability.replicas: auto is 2")]
        self.assertIn("(what its link makes of that is measured while it trains)", first)
        self.assertRegex(again, r"; so far steps have waited for copies [1-9]\d* % of the time$")

    def test_is_told_too_if_the_copy_was_asked_for(self):
        job, spec, _, copy = self.begin_slowly("durability.replicas=2")
        self.expect_told(job, copy)
        self.expect_end(job, spec)


if __name__ == "__main__":
    main()
