"""What befalls the control pod of a job, and Kubernetes itself: see faults_of_pods."""

import time

from faults_of_pods import struck
from waiting import wait_until

OF_CONTROL = ("leader", "control_deleted", "control_node_gone", "suspended")
OF_API = ("api_away", "compacted", "etcd_restored")
AWAY_S = (1, 6)


class control_struck(struck):
    def leader(self):
        control = wait_until(self.control_pod, "the control pod is there")
        ends = len(control.exit_codes)
        control.kill_container()
        return lambda: len(control.exit_codes) > ends

    def control_deleted(self):
        control = wait_until(self.control_pod, "the control pod is there")
        self.beside(control.delete)
        return lambda: self.control_pod() not in (None, control)

    def control_node_gone(self):
        """Somebody deletes the node thereupon: Kubernetes does nothing before, but where control pods may overlap."""
        control = wait_until(self.control_pod, "the control pod is there")
        node = control.node
        self.nodes.lose(node)
        if self.etcd:
            self.nodes.evict(node)
        else:
            self.nodes.replace(node)
        return lambda: self.control_pod() not in (None, control)

    def suspended(self):
        """The Job, and released when nothing of the control pod runs any more."""
        control = wait_until(self.control_pod, "the control pod is there")
        self.suspend()
        wait_until(lambda: control.phase != "Running", "the control pod ends")
        self.suspend(False)
        return lambda: self.control_pod() not in (None, control)


class api_struck(struck):
    def api_away(self):
        """A container ends meanwhile, and is started again nevertheless."""
        one = self.victim()  # after a suspension it is the API server that brings one
        joined, goes_on = self.joined(one), self.goes_on()
        self.api.stop()
        back_at = time.monotonic() + self.source.uniform(*AWAY_S)
        one.kill_container()
        return lambda: time.monotonic() >= back_at and joined() and goes_on()

    def compacted(self):
        """It is to list the pods. By then each host has one."""
        asked = len(self.api.asked)
        self.api.compact()
        return lambda: "list pods" in self.api.asked[asked:] and len(self.pods_told()) == self.pod_hosts + self.ps_hosts

    def etcd_restored(self):
        """From a backup of before a pod was replaced: it is back, and nothing of it runs; nobody knows the one that has its place. The
        control pod hears nothing of this before it lists the pods, and makes a third one."""
        one = self.victim()
        self.api.save()
        replaced = self.deleted(one)
        wait_until(replaced, f"{one.name} is replaced")
        joined = self.joined(one)
        with self.cluster.lock:
            asked = len(self.api.asked)
            self.api.restore()
            self.nodes.look_again()
        wait_until(joined, f"the host of {one.name} is back")
        wait_until(lambda: {"create pods", "list pods"} & set(self.api.asked[asked:]), "the control pod misses the one that it knows")
        return self.compacted()
