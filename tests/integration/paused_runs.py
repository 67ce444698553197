"""Jobs whose workers take as long for a slot as a test says, by the layer of pausing_program.cpp."""

import contextlib
import os

import small_data


def make_spec(data, *, steps, slots, workers, records, log="every_step"):
    """So many steps of `slots` slots each, with one record a slot at least."""
    spec = small_data.make_spec("mlp_dropout", data, epochs=1, workers=workers, ps_shards=2, microbatches_per_step=slots)
    size = spec["train"]["microbatch_size"]
    spec["train"]["epochs"] = -(-steps * slots * size // records)
    spec["durability"] = {"log": log}
    return with_pauses(spec)


def with_pauses(spec):
    """A job of any kind, with that layer."""
    spec["model"]["layers"].insert(0, {"custom": {"type": "pause"}})
    return spec


class pauses:
    """How long a slot takes; of jobs that are started within."""

    def __init__(self, folder, pause_s):
        self.file = folder / "pauses"
        self.pause_s = pause_s
        self.slow = {}

    def __enter__(self):
        os.environ["PAUSES"] = str(self.file)
        self.write()
        return self

    def __exit__(self, *_):
        os.environ.pop("PAUSES", None)
        self.end()

    def set_all(self, pause_s):
        self.pause_s = pause_s
        self.write()

    def set(self, pid, factor):
        """From its next slot on a process takes so many times as long."""
        self.slow[pid] = factor
        self.write()

    def write(self):
        new = self.file.with_suffix(".new")
        lines = {0: 1, **self.slow}
        new.write_text("".join(f"{pid} {factor * self.pause_s * 1e3:.0f}\n" for pid, factor in lines.items()))
        new.replace(self.file)

    def end(self):
        """Nobody takes any time from now on."""
        with contextlib.suppress(FileNotFoundError):
            self.file.unlink()


def workers_of(status):
    """Those that run, by number."""
    return {role["index"]: role for role in status["roles"] if role["role"] == "worker" and role["pid"]}


def shares_of(status):
    """How many slots of a step each worker has."""
    return [worker["slots"] for _, worker in sorted(workers_of(status).items())]
