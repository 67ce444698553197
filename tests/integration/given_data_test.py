"""Hosts that have not got the data of a job, or other data, are given it, with the bits of one host; or are refused."""

import os
import pathlib
import random
import signal
import subprocess

import small_data
from bench_case import main
from dlrun_job import option, wait_until
from hosts_case import on_several_hosts

STEP = 20
LARGE_RECORDS = 40000  # of 144 bytes: a few seconds over a slow line
SLOW, GIVEN_BYTES = "16mbit", 2_000_000  # more than a run of blocks, less than all


class gives_data(on_several_hosts):
    records = 2003

    def setUp(self):
        super().setUp()
        self.files = self.bench.folder / "data"  # which a host may be without
        self.files.mkdir()
        self.train = small_data.write_images(self.files, "train", self.records)
        self.test = small_data.write_images(self.files, "test", 100, seed=2)

    def job_of(self, **options):
        spec = self.small_job(**options)
        spec["data"] = {"train": self.train, "validation": self.test}
        return spec

    def sizes(self, *parts):
        """Bytes of the arrays of these parts of the data."""
        heads = {"records": 16, "labels": 8}
        return sum(os.path.getsize(part[kind]) - head for part in parts for kind, head in heads.items())

    def changed(self, path, place):
        """A file that differs from that one in a byte of its array."""
        content = bytearray(pathlib.Path(path).read_bytes())
        content[16 + place] ^= 1
        other = self.bench.folder / "changed"
        other.write_bytes(content)
        return other

    def without_data(self):
        """What a shell does so that its host has none of it."""
        return f"mount -t tmpfs none {self.files}"

    def with_one_byte_changed(self, place):
        return f'mount --bind {self.changed(self.train["records"], place)} {self.train["records"]}'

    def write_list(self, **scripts):
        """The list of hosts, each of which does its own first."""
        cases = " ".join(f"{name}) {script};;" for name, script in scripts.items())
        start = ["unshare", "-m", "sh", "-c", f'case "$0" in {cases} esac; exec ip netns exec {self.hosts.prefix}$0 "$@"', "{host}"]
        self.hosts.write_file(self.list, {"start": start})

    def fetched(self, job):
        """What was given, by host."""
        return {event["host"]: event for event in job.events("data-fetched")}


class are_given_it(gives_data):
    def test_where_one_has_none_of_it_and_one_a_file_with_another_byte(self):
        spec = self.job_of()
        self.write_list(beta=self.without_data(), gamma=self.with_one_byte_changed(144 * 1000))
        with self.start(spec) as job:
            self.expect_same_bits(job, spec)
        fetched = self.fetched(job)
        self.assertEqual(set(fetched), {"beta", "gamma"})
        self.assertEqual(fetched["beta"]["values"]["bytes"], self.sizes(self.train, self.test))
        self.assertRegex(fetched["beta"]["text"], "by host (alpha|gamma)")  # gamma too, once it has its block
        self.assertIn(self.train["records"], fetched["beta"]["reason"])
        self.assertEqual(fetched["gamma"]["values"]["bytes"], 4096)
        self.assertIn("(block 35 of 71)", fetched["gamma"]["reason"])
        self.assertGreaterEqual(fetched["beta"]["values"]["seconds"], 0)

    def test_again_when_the_run_is_resumed_and_when_an_agent_is_started_again(self):
        spec = self.job_of()
        self.write_list(beta=self.without_data())
        with self.start(spec) as job:
            with job.held_from_step(STEP):
                job.root.send_signal(signal.SIGINT)
            job.wait_end()
            self.expect_nobody_left()
            job.resume(options=["--hosts", str(self.list)])
            with job.held_from_step(2 * STEP):
                os.kill(self.hosts.agent_of("beta"), signal.SIGKILL)
                wait_until(lambda: len(job.events("data-fetched")) == 3, "beta was lost and given the data again")
            self.expect_same_bits(job, spec, may_redo=True)
        self.assertEqual({event["values"]["bytes"] for event in job.events("data-fetched")}, {self.sizes(self.train, self.test)})

    def test_tables_that_were_learnt_from(self):
        """Vocabulary, classes and means are the root's: no host looks at the file to learn."""
        source, table = random.Random(5), self.files / "table.csv"
        rows = [(source.uniform(0, 9), source.choice("abc"), source.choice(("yes", "no"))) for _ in range(500)]
        table.write_text("size,kind,good\n" + "".join(f"{size:.3f},{kind},{good}\n" for size, kind, good in rows))
        spec = self.small_job()
        spec["model"] = {"input": [4], "layers": [{"linear": {"out_features": 2}}]}
        columns = [{"column": "size", "standardize": True}, {"column": "kind", "type": "categorical", "encoding": "one_hot"}]
        spec["data"] = {"train": {"format": "csv", "records": str(table), "csv": {"target": "good", "columns": columns}},
                        "validation": {"split": 0.1}}
        spec["cluster"]["ps_shards"] = 1
        self.write_list(beta=self.without_data(), gamma=self.without_data())
        with self.start(spec) as job:
            self.expect_same_bits(job, spec)
        self.assertEqual(set(self.fetched(job)), {"beta", "gamma"})


class goes_on_with_another_giver(gives_data):
    def test_when_one_is_killed_on_the_way_and_what_has_come_stays(self):
        images = random.Random(9).randbytes(LARGE_RECORDS * small_data.SIDE**2)
        small_data.write_idx(self.files / "test-images", [LARGE_RECORDS, small_data.SIDE, small_data.SIDE], images)
        small_data.write_idx(self.files / "test-labels", [LARGE_RECORDS], bytes(i % 10 for i in range(LARGE_RECORDS)))
        spec = self.job_of()
        self.write_list(gamma=self.without_data())
        with self.start(spec) as job:
            log = job.run_dir / "logs" / "host-gamma.log"
            with job.held_from_step(STEP):
                self.hosts.limit("beta", SLOW)
                asked = log.read_text().count("host beta is asked")
                os.kill(self.hosts.agent_of("gamma"), signal.SIGKILL)
                wait_until(lambda: log.read_text().count("host beta is asked") > asked, "gamma came again and asks beta")
                beta = self.hosts.agent_of("beta")
                before = self.sent(beta)
                wait_until(lambda: self.sent(beta) >= before + GIVEN_BYTES, "beta gives")
                os.kill(beta, signal.SIGKILL)
                self.hosts.limit("beta", "1gbit")
                wait_until(lambda: len(job.events("data-fetched")) == 2, "gamma has all again")
            self.expect_same_bits(job, spec, may_redo=True)
        event = job.events("data-fetched")[1]
        self.assertEqual((event["host"], event["values"]["bytes"]), ("gamma", self.sizes(self.train, self.test)))
        for host in ("alpha", "beta"):
            self.assertIn(f"by host {host}", event["text"])

    def sent(self, pid):
        """Bytes that the host of a process has sent to others."""
        for line in pathlib.Path(f"/proc/{pid}/net/dev").read_text().splitlines():
            name, _, counts = line.partition(":")
            if name.strip() == "lan":
                return int(counts.split()[8])
        raise AssertionError("it has no such interface")


class are_refused(gives_data):
    def expect_refused(self, overrides, *words):
        with self.start(self.job_of(), overrides) as job:
            self.assertEqual(job.wait_end(), 2, job.output())
        for word in words:
            self.assertIn(word, job.output().splitlines()[-1])
        self.expect_nobody_left()
        self.assertFalse(job.run_dir.exists())
        for name in self.hosts.names[1:]:
            self.assertFalse((self.hosts.folder_of(name) / "run").exists(), f"something is left on {name}")

    def test_where_it_may_not_be_given_with_file_and_block(self):
        self.write_list(beta=self.with_one_byte_changed(144 * 1000))
        self.expect_refused(["data.share=off"], "host beta", "not that of host alpha", self.train["records"],
                            "records 995 to 1023", "(block 35 of 71)", "data.share")

    def test_where_it_has_no_room_in_memory(self):
        """What is mapped on the root's host takes none there."""
        self.write_list(beta=self.without_data())
        self.expect_refused(["data.memory_limit=100KB"], "host beta", self.train["records"], "data.memory_limit", "copy the file")


class doctor(gives_data):
    def examine(self, overrides=()):
        job = small_data.write_spec(self.bench.folder / "job.yaml", self.job_of())
        words = [*self.hosts.within(), self.program, "doctor", str(job), "--hosts", str(self.list), "--run-dir",
                 str(self.bench.folder / "run"), *option("--set", overrides)]
        return subprocess.run(words, capture_output=True, text=True, timeout=120)

    def test_says_which_hosts_would_be_given_how_much(self):
        self.write_list(beta=self.without_data(), gamma=self.with_one_byte_changed(0))
        done = self.examine()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        lines = done.stdout.splitlines()
        self.assertIn("ok     alpha: data", lines)
        told = {line.split()[1]: line for line in lines if ": data: " in line}
        self.assertIn(f"{self.sizes(self.train, self.test)} bytes are fetched from host alpha", told["beta:"])
        self.assertIn("4096 bytes are fetched from host alpha", told["gamma:"])
        self.assertIn("(block 0 of 71)", told["gamma:"])

    def test_finds_wrong_what_may_not_be_given(self):
        self.write_list(beta=self.without_data())
        done = self.examine(["data.share=off"])
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        [line] = [line for line in done.stdout.splitlines() if line.startswith("wrong")]
        self.assertIn("beta: data: ", line)
        self.assertIn(self.train["records"], line)


if __name__ == "__main__":
    main()
