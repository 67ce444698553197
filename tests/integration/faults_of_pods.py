"""What Kubernetes and its nodes do to the pods of hosts of a job, and to their containers.

A method for each kind does it, and gives what tells that it had its effect.
"""

import contextlib
import os
import signal
import threading

from api_objects import refusal
from dlrun_job import output_of
from pod_jobs import job_on_pods
from pod_nodes import NODES
from waiting import wait_until

OF_CONTAINERS = ("killed", "failed", "oom", "oom_twice", "looping", "role", "clock_ahead", "clock_behind")
OF_PODS = ("deleted", "evicted", "no_room", "cut_before_join", "pending", "image")
OF_NODES = ("drained", "node_gone", "policy")
QUOTA = refusal(403, 'pods "x" is forbidden: exceeded quota: few, requested: pods=1, used: pods=3, limited: pods=3', "Forbidden")
HOUR_S = 3600


class struck(job_on_pods):
    """A job on its pods to which something is done. Whoever is one has `source`, whose draws are the seed's, `hosts` and `nodes`."""

    def __init__(self):
        self.struck, self.threads = [], []  # since the job trained on all its pods

    def victim(self):
        """A pod of a host that runs, and to which nothing was done just now."""
        def find():
            there = [one for one in self.pods_of_hosts() if one.main_process() and one not in self.struck and not one.is_deleted]
            return there or None

        found = self.source.choice(wait_until(find, "a pod of a host runs"))
        self.struck.append(found)
        return found

    def joined(self, *pods):
        """@returns what tells whether all their hosts have joined again"""
        before = {one.host_name: self.times_joined(one.host_name) for one in pods}
        return lambda: all(self.times_joined(host) > times for host, times in before.items())

    def times_joined(self, host):
        return sum(event["host"] == host for event in self.events("host-joined"))

    def beside(self, call, *words):
        thread = threading.Thread(target=call, args=words, daemon=True)
        thread.start()
        self.threads.append(thread)

    def goes_on(self):
        step = self.status().get("step", 0)
        return lambda: self.status().get("step", 0) > step


class containers_struck(struck):
    def killed(self, *how):
        one = self.victim()
        sign = self.joined(one)
        one.kill_container(*how)
        return sign

    def failed(self):
        return self.killed("Error", 134)

    def oom(self):
        return self.killed("OOMKilled")

    def oom_twice(self):
        one = self.victim()
        sign = self.joined(one)
        restarts = one.restarts
        one.kill_container("OOMKilled")
        wait_until(lambda: one.restarts > restarts, f"{one.name} is started again")
        sign_of_more = self.joined(one)
        one.kill_container("OOMKilled")
        return lambda: sign() and sign_of_more()

    def looping(self):
        """Its container ends whenever it is started, until another pod comes."""
        one, made = self.victim(), self.made_pods()
        sign = self.joined(one)
        self.beside(self.keep_ending, one, made)
        return sign

    def keep_ending(self, one, made):
        def is_replaced():
            process = one.main_process()
            if process and one.phase == "Running":
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            return one.is_deleted or one.phase != "Running" or any(name.startswith(one.host_name) for name in self.made_pods() - made)

        wait_until(is_replaced, f"{one.name} is replaced")

    def role(self):
        """The process of a role in a pod of a host."""
        one, goes_on = self.victim(), self.goes_on()
        roles = [pid for pid in self.hosts.processes(one.host) if any(f"/{role}-" in file for file in output_of(pid) for role in ("worker", "ps_shard", "keeper"))]
        if roles:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.source.choice(roles), signal.SIGKILL)
        return goes_on

    def clock_ahead(self, seconds=HOUR_S):
        """The wall clock is another one from when it is started again."""
        one = self.victim()
        sign = self.joined(one)
        one.clock_ahead_s = seconds
        one.kill_container()
        wait_until(one.has_other_clock, f"{one.name} is started again")
        return sign

    def clock_behind(self):
        return self.clock_ahead(-HOUR_S)


class pods_struck(struck):
    def deleted(self, one=None):
        one = one or self.victim()
        sign = self.joined(one)
        self.beside(one.delete)
        return sign

    def evicted(self):
        one = self.victim()
        sign = self.joined(one)
        self.beside(one.evict)
        return sign

    def no_room(self):
        """A quota lets no pod be made for a while."""
        self.api.refuse("create pods", QUOTA, times=2)
        return self.deleted()

    def cut_before_join(self):
        """A network policy cuts off the pod that comes in place of one, from when it begins."""
        one, goes_on = self.victim(), []
        self.cluster.unreachable.add(one.host_name)
        self.deleted(one)

        def trains_without_it():
            if not goes_on and self.cut_off_pods():
                goes_on.append(self.goes_on())
            return goes_on and goes_on[0]()

        return trains_without_it

    def cut_off_pods(self):
        """Those that run, of hosts that have not joined there."""
        return [one for one in self.pods_of_hosts() if one.host_name in self.cluster.unreachable and one.host in self.cluster.parted
                and one.main_process()]

    def pending(self):
        """No node takes the next pod, for a while."""
        one = self.victim()  # before: it may be one that is yet to be placed
        self.nodes.cordon(*range(NODES))
        self.deleted(one)
        return self.waits_while_it_trains()

    def image(self):
        """The next pod has no image, for a while: others of that image ran."""
        one = self.victim()
        self.nodes.spoil_image()
        self.deleted(one)
        return self.waits_while_it_trains()

    def waits_while_it_trains(self):
        goes_on = self.goes_on()
        return lambda: self.nodes.waiting and goes_on()


class nodes_struck(struck):
    def node_to_strike(self):
        """One with a pod of a host, and without the control pod. @returns it, and its pods"""
        def find():
            control = self.control_pod()
            return control and sorted({one.node for one in stay()} - {control.node})

        def stay():  # a pod that was deleted may still run: another one is its host by now
            return [one for one in self.pods_of_hosts() if not one.is_deleted and "deletionTimestamp" not in one.object["metadata"]]

        node = self.source.choice(wait_until(find, "a pod of a host is on a node without the control pod"))
        going = [one for one in stay() if one.node == node]
        self.struck += going
        return node, going

    def drained(self):
        node, going = self.node_to_strike()
        sign = self.joined(*going)
        self.beside(self.nodes.drain, node)
        return sign

    def node_gone(self):
        node, going = self.node_to_strike()
        sign = self.joined(*going)
        self.nodes.lose(node)
        return sign

    def policy(self):
        """A network policy cuts the pod off."""
        one = self.victim()
        sign = self.joined(one)
        self.cluster.part(one.host)
        return sign
