"""How long steps pause, by the log of a PS shard that is beside its run folder: it grows by a record a step."""

import pathlib
import threading
import time

LOOK_S = 0.001


class log_watch:
    """When the log of a PS shard grew, seen from outside."""

    def __init__(self, run_dir):
        self.folder, self.moments, self.over = pathlib.Path(run_dir) / "ps_shard-0", [], threading.Event()
        self.thread = threading.Thread(target=self.follow)
        self.thread.start()

    def size(self):
        return sum(file.stat().st_size for file in self.folder.rglob("*.log"))

    def follow(self):
        before = None
        while not self.over.wait(LOOK_S):
            try:
                size = self.size()
            except FileNotFoundError:
                continue
            if size != before:
                self.moments.append(time.monotonic())
            before = size

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.over.set()
        self.thread.join()

    def gaps(self, begin, end):
        """From record to record, in ms, of those that end in this time."""
        within = [moment for moment in self.moments if moment <= end]
        return [(after - before) * 1000 for before, after in zip(within, within[1:]) if after >= begin]
