"""The probes of a container, as a kubelet plays them: requests over HTTP within the network of its pod, by the numbers of its manifest."""

import contextlib
import http.client
import threading
import time

SPEEDS = {"startupProbe": 5, "livenessProbe": 1, "readinessProbe": 1}  # by which periods and patience are divided
TIMEOUT_LEAST_S = 2  # however fast: machines of tests are busy
OF_KUBELET = {"User-Agent": "kube-probe/1.33", "Accept": "*/*", "Connection": "close"}


class played_probes:
    """Of one start of the container of a pod, until that has ended. What a probe comes to counts when it came as often as its threshold
    wants, one time after the other.
    @param running: the process that ends with it"""

    def __init__(self, pod, running):
        self.pod, self.running, self.container = pod, running, pod.only_container()
        self.speeds = pod.cluster.probe_speeds
        self.asked = dict.fromkeys(SPEEDS, 0)
        threading.Thread(target=self.play, daemon=True).start()

    def play(self):
        """The others begin when the start has succeeded."""
        for is_up in self.results("startupProbe"):
            if not is_up:
                return self.end_container(self.container["startupProbe"])
            break
        threading.Thread(target=self.play_liveness, daemon=True).start()
        for is_ready in self.results("readinessProbe"):
            self.pod.tell_ready(self, is_ready)

    def play_liveness(self):
        for is_alive in self.results("livenessProbe"):
            if not is_alive:
                return self.end_container(self.container["livenessProbe"])

    def end_container(self, probe):
        speed = self.speeds["livenessProbe"]
        self.pod.end_container(self.running, probe.get("terminationGracePeriodSeconds", self.pod.spec["terminationGracePeriodSeconds"]) / speed)

    def results(self, kind):
        """At each change, and first of all. One that is not in the manifest succeeds."""
        probe = self.container.get(kind)
        if probe is None:
            yield True
            return
        told = before = None
        in_a_row = 0
        while self.running.poll() is None:
            began = time.monotonic()
            if not self.pod.is_cut_off:  # else its kubelet is gone too
                seen = self.ask(kind, probe)
                in_a_row, before = in_a_row + 1 if seen == before else 1, seen
                wanted = probe.get("successThreshold", 1) if seen else probe["failureThreshold"]
                if seen != told and in_a_row >= wanted:
                    told = seen
                    yield seen
            time.sleep(max(0.0, began + probe["periodSeconds"] / self.speeds[kind] - time.monotonic()))  # of a kubelet

    def ask(self, kind, probe):
        """@returns whether it succeeds"""
        timeout_s = max(min(TIMEOUT_LEAST_S, probe["timeoutSeconds"]), probe["timeoutSeconds"] / self.speeds[kind])
        try:
            status, _ = self.pod.get(probe["httpGet"]["port"], probe["httpGet"]["path"], timeout_s)
        except (OSError, http.client.HTTPException):
            return False
        self.asked[kind] += 1
        return 200 <= status < 400


def get(address, port, path, timeout_s):
    """@returns status and all that is told"""
    with contextlib.closing(http.client.HTTPConnection(address, port, timeout=timeout_s)) as line:
        line.request("GET", path, headers=OF_KUBELET)
        answer = line.getresponse()
        return answer.status, answer.read()
