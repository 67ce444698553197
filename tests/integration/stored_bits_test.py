"""Small jobs give the parameters that they gave in earlier builds.

A change of bits is no fault by itself, but it must be meant: runs of an earlier build cannot be resumed by one that computes
other bits, and users compare results. When this test fails after a change that is meant to change bits, say so in the
CHANGELOG and write down the new ones:

    tests/integration/stored_bits_test.py build/release/bin/dlrun --update

Jobs of dlrun's own loops alone have one value everywhere. The others compute with oneDNN, whose code depends on the processor:
they have a value for each (instruction set, sizes of caches) on which they were run, and are left out, which is said, on any
other.
"""

import copy
import json
import pathlib
import struct
import sys

import small_data
from bench_case import bench_case, main

STORED = pathlib.Path(__file__).with_name("stored_bits.json")
EVERYWHERE = "everywhere"
UPDATE = "--update" in sys.argv


def caches():
    """Those for data, from the smallest on, e.g. "48K, 1024K, 32768K"."""
    found = sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"))
    return ", ".join((one / "size").read_text().strip() for one in found if (one / "type").read_text().strip() != "Instruction")


class stored_bits(bench_case):
    def jobs(self):
        """Pairs of a name and (specification, whether oneDNN computes a part of it)."""
        for model in small_data.MODELS:
            yield model, (self.spec(model, epochs=2), True)
        yield "adamw, clipped", (small_data.add_coupled_updates(self.spec("mlp_dropout", epochs=2)), True)
        table = self.table()
        yield "embedding", (table, False)
        rates = copy.deepcopy(table)
        rates["train"]["optimizer"] = {"adagrad": {"lr": 0.1}}
        yield "embedding, adagrad", (rates, False)

    def table(self):
        """Rows of an embedding as the scores of ten classes: nothing is multiplied but by the optimizer."""
        numbers, classes = self.bench.folder / "numbers.npy", self.bench.folder / "classes.npy"
        rows = (float(7 * i % 50) for i in range(self.records))
        numbers.write_bytes(small_data.npy((self.records, 1), b"".join(struct.pack("<f", row) for row in rows)))
        classes.write_bytes(small_data.npy((self.records,), bytes((3 * i + i // 7) % 10 for i in range(self.records)), "|u1"))
        spec = self.spec("mlp_dropout", epochs=2)
        spec["name"] = "embedding"
        spec["data"]["train"] = {"format": "npy", "records": str(numbers), "labels": str(classes)}
        spec["model"] = {"input": [1], "layers": [{"embedding": {"num_embeddings": 50, "embedding_dim": 10}}, "flatten"]}
        return spec

    def test_they_are_those_of_earlier_builds(self):
        stored = json.loads(STORED.read_text())
        for name, (spec, is_special) in self.jobs():
            with self.subTest(name):
                report = self.bench.complete(spec)
                place = f"{report['host']['isa']}, {caches()}" if is_special else EVERYWHERE
                known = stored.setdefault(name, {})
                if UPDATE:
                    known[place] = report["parameters_sha256"]
                elif place in known:
                    self.assertEqual(report["parameters_sha256"], known[place], f"{name} on {place}: other bits; see {__file__}")
                else:
                    print(f"{name}: nothing is stored for {place}", flush=True)
        if UPDATE:
            STORED.write_text(json.dumps(stored, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    if UPDATE:
        sys.argv.remove("--update")
    main()
