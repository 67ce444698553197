"""A job with `cluster.device: cuda` on pods, whose nodes have GPUs: stand-ins, which NVIDIA's container runtime is played to bring along."""

import os
import pathlib
import sys
import unittest.mock

from bench_case import main
from dlrun_job import wait_until
from node_fit import GPU, gpus_of, node_kind
from pod_nodes import NODES
from pods_case import HOSTS, NAME, on_pods

MODULES = pathlib.Path(sys.argv.pop(2))  # where the build has its modules for tests
STAND_IN = MODULES / "libdlrun_cuda_stand_in.so"
TAINT = (GPU, "present", "NoSchedule")
EPOCHS = 4


class on_nodes_with_gpus(on_pods):
    records = 611  # the stand-in is slow
    memory = "8Gi"
    gpus_of_nodes = (1, 1, 1, 0)

    def setUp(self):
        self.enterContext(unittest.mock.patch.dict(os.environ, {"DLRUN_CUDA_MODULE": str(STAND_IN)}))  # of the job on one host
        super().setUp()
        self.cluster.gpu_module = STAND_IN
        self.become(self.gpus_of_nodes)

    def become(self, gpus):
        self.cluster.nodes.become({node: node_kind(taints=[TAINT] if count else [], gpus=count) for node, count in enumerate(gpus)})

    def cuda_job(self, workers=HOSTS, **options):
        spec = self.unhurried_spec()
        spec["train"]["epochs"] = EPOCHS
        spec["cluster"] |= {"device": "cuda", "workers": workers} | options
        return spec

    def expect_complete(self, spec):
        report = super().expect_complete(spec)
        self.assertIn("stand-in", report["host"]["device"])
        return report

    def hosts_with_workers(self):
        return {event["host"] for event in self.events("role-placed") if event["role"] == "worker"}


class computes_on_gpus(on_nodes_with_gpus):
    def test_of_the_pods_of_hosts_alone_and_neither_a_pod_nor_the_control_pod_that_goes_changes_a_bit(self):
        spec = self.cuda_job()
        self.start(spec, "--gpus", "1", "--control-cpus", "0")
        step = self.wait_until_trains()["step"]
        self.assertEqual((gpus_of(self.control.spec), [gpus_of(one.spec) for one in self.hosts_pods]), (0, [1, 1]))
        self.assertEqual(self.control.node, self.gpus_of_nodes.index(0), "it does not bear the taint of the others")
        self.assertEqual(len({one.node for one in self.hosts_pods}), HOSTS)
        self.hosts_pods[1].delete()
        wait_until(lambda: len(self.events("host-joined")) == HOSTS + 1, "its successor joins")
        step = self.wait_until_trains(beyond=step)["step"]
        self.control.kill_container()
        self.wait_until_trains(beyond=step)
        self.expect_complete(spec)
        self.assertEqual(self.hosts_with_workers(), {f"{NAME}-hosts-{index}" for index in range(HOSTS)})

    def test_of_the_control_pod_too_by_a_job_that_does_not_say_on_what_it_computes(self):
        spec = self.cuda_job(workers=HOSTS + 1)
        self.become((1, 1, 1, 1))
        asked = spec | {"cluster": {key: value for key, value in spec["cluster"].items() if key != "device"}}
        self.cluster.apply(self.manifests(asked, "--gpus", "1", said="dlrun: cluster.device: auto is cuda: pods have GPUs (--gpus 1)\n"))
        [self.control] = self.cluster.start(NAME)
        wait_until(lambda: len(self.pods_of_hosts()) == HOSTS, "the pods of hosts are there")
        self.wait_until_trains()
        self.assertEqual(gpus_of(self.control.spec), 1)
        self.expect_complete(spec)
        self.assertIn("control", self.hosts_with_workers())

    def test_once_there_is_a_pod_with_some_again_where_all_are_gone_at_once(self):
        spec = self.cuda_job()
        self.start(spec, "--gpus", "1", "--control-gpus", "0")
        step = self.wait_until_trains()["step"]
        self.become((0,) * NODES)  # those that are there keep theirs
        for one in self.hosts_pods:
            self.api.space.end(one.object)
        wait_until(lambda: [one for one in self.events("role-waits") if one["role"] == "worker"], "a worker waits for a host")
        self.become(self.gpus_of_nodes)
        wait_until(lambda: len(self.events("host-joined")) >= 2 * HOSTS, "others join")
        self.wait_until_trains(beyond=step)
        self.expect_complete(spec)
        self.assertNotIn("control", self.hosts_with_workers())


class waits_for_gpus(on_nodes_with_gpus):
    gpus_of_nodes = (1, 0, 0, 0)

    def test_with_the_words_of_the_scheduler_and_trains_meanwhile_with_those_that_are_there(self):
        spec = self.cuda_job()
        spec["durability"]["log"] = "auto"
        self.cluster.apply(self.manifests(spec, "--gpus", "1", "--control-gpus", "0", "--hosts-min", "2", "--pending-patience", "1"))
        [self.control] = self.cluster.start(NAME)
        wait_until(lambda: self.status().get("status") == "running", "it trains with one pod of a host")
        waiting = [made for made in self.cluster.nodes.waiting if made["spec"]["hostname"].startswith(NAME)]
        self.assertEqual(len(waiting), 1)
        words = f"0/{NODES} nodes are available: {NODES} Insufficient {GPU}."
        wait_until(lambda: words in self.control.said(), "the log says why")
        self.assertIn(words, str(self.status()))
        self.assertIn("could not be tried, on records of zeros: no worker uses GPUs of this host", self.control.said())
        self.become((1, 1, 0, 0))
        self.wait_until_trains()
        self.expect_complete(spec)


if __name__ == "__main__":
    main()
