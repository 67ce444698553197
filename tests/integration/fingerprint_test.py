"""A run goes on where the bits are those that it began with, or not at all, unless its specification lets it."""

import hashlib
import json
import re
import subprocess

import protobuf_wire
from bench_case import main
from changed_runs import BAD_USAGE, changed_runs, set_options
from hosts_case import on_several_hosts

RELAXED = "cluster.determinism=relaxed"
FINGERPRINT, DECODERS = 7, 8  # of RunRecord


def own_isa(program):
    version = subprocess.run([program, "version", "--json"], capture_output=True, text=True, check=True)
    return json.loads(version.stdout)["isa"]


def lesser_isa(program):
    """An instruction set that every processor has which has that of this one."""
    return "avx" if own_isa(program) == "avx2" else "avx2"


def other_isa(program):
    """The words that run a command as on a processor with another instruction set."""
    return ["env", f"ONEDNN_MAX_CPU_ISA={lesser_isa(program).upper()}"]


class resumed_elsewhere(changed_runs):
    def setUp(self):
        super().setUp()
        self.whole = self.durable_spec("every_step")
        self.job = self.killed_run(self.whole, self.steps_of(self.whole) // 3)

    def rewrite_record(self, change):
        """What `change` makes of the record, with the digest that belongs to it."""
        file = self.job.run_dir / "run.record"
        head, _, content = file.read_bytes().partition(b"\n")
        changed = change(content)
        self.assertNotEqual(changed, content)
        file.write_bytes(head.rpartition(b" ")[0] + b" " + hashlib.sha256(changed).hexdigest().encode() + b"\n" + changed)

    def fingerprint(self):
        content = (self.job.run_dir / "run.record").read_bytes().partition(b"\n")[2]
        parts = [protobuf_wire.fields(part) for part in protobuf_wire.fields(content).get(FINGERPRINT, [])]
        return {part[1][0].decode(): part[2][0].decode() for part in parts}

    def expect_same_end(self, deterministic=True):
        report = self.job.expect_complete(may_redo=True)
        self.assertEqual(report["deterministic"], deterministic)
        return report

    def test_on_the_same_processor_it_has_the_same_bits_and_says_so(self):
        self.assertEqual(list(self.fingerprint()),
                         ["dlrun", "compiler", "oneDNN", "processor", "caches", "instruction set", "threads of a worker"])
        self.job.resume()
        self.assertEqual(self.expect_same_end()["parameters_sha256"], self.undisturbed(self.whole)["parameters_sha256"])

    def test_on_another_one_it_is_refused_naming_what_differs_unless_it_may(self):
        self.job.within = other_isa(self.program)
        began_with = self.fingerprint()
        self.expect_refused(self.job, [], "instruction set", began_with["instruction set"], f"--set {RELAXED}")
        self.job.resume([RELAXED])
        self.job.kill_everything_at_step(self.steps_of(self.whole) // 2)
        self.assertEqual(self.fingerprint(), began_with, "it is what the run began with")
        self.expect_refused(self.job, set_options("cluster.determinism=strict"), "cluster.determinism", "another folder")
        self.job.within = []
        self.job.resume()
        self.expect_same_end(deterministic=False)

    def named_run(self, isa):
        """Killed half way, as the one of setUp; its instruction set is named."""
        spec = self.durable_spec("every_step")
        spec["cluster"]["cpu_level"] = isa
        return self.killed_run(spec, self.steps_of(spec) // 3), spec

    def test_there_it_has_the_same_bits_where_an_instruction_set_was_named_that_both_have(self):
        job, spec = self.named_run(lesser_isa(self.program))
        self.expect_refused(job, set_options("cluster.cpu_level=auto"), "cluster.cpu_level")
        job.within = other_isa(self.program)
        job.resume()
        report = job.expect_complete(may_redo=True)
        self.assertTrue(report["deterministic"])
        self.assertEqual(report["parameters_sha256"], self.undisturbed(spec)["parameters_sha256"])

    def test_without_the_instruction_set_that_was_named_it_is_refused(self):
        job, _ = self.named_run(own_isa(self.program))
        job.within = other_isa(self.program)
        self.expect_refused(job, [], f"cluster.cpu_level: {own_isa(self.program)}", f"computes with {lesser_isa(self.program)}")

    def test_with_caches_of_other_sizes_too(self):
        self.rewrite_record(lambda content: re.sub(rb"L2 \d", b"L2 x", content))
        self.expect_refused(self.job, [], "caches", "L2 x")

    def test_one_that_has_no_fingerprint_is_believed_and_gets_one(self):
        now = self.fingerprint()
        self.rewrite_record(lambda content: protobuf_wire.without(content, (FINGERPRINT, DECODERS)))
        self.assertEqual(self.fingerprint(), {})
        self.job.resume()
        self.expect_same_end()
        self.assertEqual(self.fingerprint(), now)


class with_a_host_of_another_kind(on_several_hosts):
    host_count = 2

    def start_beside_another_kind(self, *overrides):
        script = f'name=$0; [ "$name" != beta ] || set -- {" ".join(other_isa(self.program))} "$@"; ' \
                 f'exec ip netns exec {self.hosts.prefix}"$name" "$@"'
        self.hosts.write_file(self.list, {"start": ["sh", "-c", script, "{host}"]})
        return self.start(self.small_job(), overrides)

    def test_nothing_begins(self):
        with self.start_beside_another_kind() as job:
            self.assertEqual(job.wait_end(), BAD_USAGE, job.output())
            for word in ("host beta", "instruction set", "cluster.determinism"):
                self.assertIn(word, job.output().splitlines()[-1])
            self.assertFalse(job.run_dir.exists())
        self.expect_nobody_left()

    def test_unless_the_instruction_set_is_named_that_both_have(self):
        level = f"cluster.cpu_level={lesser_isa(self.program)}"
        with self.start_beside_another_kind(level) as job:
            self.pauses.end()
            report = job.expect_complete()
        self.assertTrue(report["deterministic"])
        spec = self.small_job(cpu_level=lesser_isa(self.program))
        self.assertEqual(report["parameters_sha256"], self.undisturbed(spec)["parameters_sha256"])

    def test_unless_the_bits_need_not_be_the_same(self):
        with self.start_beside_another_kind(RELAXED) as job:
            self.pauses.end()
            report = job.expect_complete()
        self.assertFalse(report["deterministic"])
        self.assertEqual(report["recoveries"], [])


if __name__ == "__main__":
    main()
