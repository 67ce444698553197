"""Controllers of Kubernetes behind an API server that is played: of disruption budgets, of nodes, of taints.

They look at all objects again and again. Their clock may be held, and moved on, by a test.
"""

import threading
import time

from api_evictions import look_at_budget
from api_taints import look_at_node, taint_manager

PASS_S = 0.05


class played_controllers:
    """@param api whose objects they look at: when somebody calls look(), or on their own thread while this is entered"""

    def __init__(self, api):
        self.api, self.taints = api, taint_manager()
        self.held_at, self.ahead_s = None, 0
        self.seen = None  # the version up to which all was looked at
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()

    def run(self):
        while not self.is_over.wait(PASS_S):
            with self.api.lock:
                if self.taints.ends or self.api.history.version != self.seen:
                    self.look()

    def look(self):
        """Once. Without an API server nothing happens."""
        with self.api.lock:
            if self.api.is_stopped:
                return
            self.seen = self.api.history.version
            spaces, nodes = list(self.api.spaces.values()), self.api.unspaced.of("Node")
            for node in nodes:
                look_at_node(self.api.unspaced, spaces, node)
            self.taints.look_at(nodes, spaces, self.now())
            for space in spaces:
                for budget in space.of("PodDisruptionBudget"):
                    look_at_budget(space, budget)

    # ---- their clock

    def now(self):
        return (time.monotonic() if self.held_at is None else self.held_at) + self.ahead_s

    def hold_clock(self):
        self.held_at = time.monotonic()

    def pass_time(self, seconds):
        """As if so long had gone by; and they look."""
        with self.api.lock:
            self.ahead_s += seconds
            self.look()
