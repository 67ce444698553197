"""Jobs on pods with two control pods: one leads, the other one waits (R43)."""

import os
import signal

import json_lines
from bench_case import main
from dlrun_job import output_of, wait_until
from pods_case import COMPLETED, HOSTS, INTERRUPTED, NAME
from pods_journal_case import with_an_etcd
from small_cluster import read_manifests
from waiting import expectation_failed

FAILED = 1
WAITS, LEADS = "this one waits", "roles-adopted"
LEADER = "dlrun/leader"
ROLES = ("/worker-", "/ps_shard-")


class with_a_standby(with_an_etcd):
    host_count = 12

    def start(self, spec, *options):
        self.cluster.apply(self.manifests(spec, "--standby", *options))
        self.cluster.start(NAME)
        wait_until(lambda: len(self.pods_of_hosts()) == HOSTS, "the pods of hosts are there")
        self.hosts_pods = self.pods_of_hosts()
        wait_until(lambda: LEADER in self.annotations(), "the Job says who leads")
        self.control, self.standby = self.control_pod(), self.standby_pod()

    def standby_pod(self):
        """Once it waits."""
        return wait_until(lambda: next((one for one in self.cluster.pods_of(NAME) if one.name != self.annotations()[LEADER] and WAITS in one.said()),
                                       None), "the other one waits")

    def train(self, *options):
        """@returns the job, and a step that it has come to with both control pods"""
        spec = self.spec()
        self.start(spec, *options)
        step = self.wait_until_trains()["step"]
        self.roles = self.roles_of_hosts()
        return spec, step

    def roles_of_hosts(self):
        """Processes of the pods of hosts that may not be started again; the copies of PS shards that ran in the control pod may."""
        found = {}
        for one in self.hosts_pods:
            roles = [pid for pid in self.hosts.processes(one.host) if any(role in file for role in ROLES for file in output_of(pid))]
            found[one.name] = {one.main_process(), *roles}
        return found

    def told_by_control_pods(self):
        """The events of each."""
        files = [one.volume("run") / NAME / "events.jsonl" for one in self.control_pods()]
        return [one.read_text() for one in files if one.exists()]

    def leads(self, pod):
        """Whether the Job says so, and it has taken over what runs on the hosts."""
        return self.annotations()[LEADER] == pod.name and self.events(LEADS)

    def wait_until_leads(self, is_meant, who):
        """@returns the control pod that does"""
        try:
            return wait_until(lambda: next((one for one in self.control_pods() if is_meant(one) and self.leads(one)), None), f"{who} leads")
        except expectation_failed as why:
            told = [f"{one.name}, ended with {one.exit_codes}:\n{one.said()}" for one in self.control_pods()]
            raise expectation_failed("\n".join((f"{why}; {self.annotations()[LEADER]} does", *told))) from why

    def expect_led_by(self, pod, spec, step):
        """To the end. No pod of a host is another one, and no process that ran there has ended."""
        self.wait_until_leads(lambda one: one is pod, pod.name)
        self.wait_until_trains(beyond=step)
        for name, before in self.roles.items():
            self.assertLessEqual(before, self.roles_of_hosts()[name], "\n".join((name, *self.told_by_control_pods())))
        self.assertNotEqual(self.standby_pod(), pod, "and another one waits")
        self.expect_all_end(spec)

    def expect_all_end(self, spec):
        """With the model in its claim, and whoever waited does not train."""
        others = [one for one in self.cluster.pods_of(NAME) if one.name != self.annotations()[LEADER]]
        self.expect_end(spec)
        self.assertEqual(self.cluster.condition(NAME), "Complete")
        self.assertEqual(self.annotations()["dlrun/exit-code"], "0")
        self.assertEqual(len(self.made_pods()), HOSTS)
        self.assertTrue(others)
        for one in others:
            self.expect_ended_pod(one, COMPLETED)
            self.assertEqual(json_lines.problems_in(one.log.read_text()), [], "what it printed is for a collector of logs")
            if one is not self.control:  # which has led before
                self.expect_not_led(one)

    def expect_ended_pod(self, pod, code):
        wait_until(lambda: pod.exit_codes, f"{pod.name} ends")
        self.assertEqual(pod.exit_codes[-1], code, pod.said())

    def expect_not_led(self, pod):
        """It has started nothing."""
        self.assertFalse((pod.volume("run") / NAME / "events.jsonl").exists(), pod.said())


class leads(with_a_standby):
    def test_when_the_pod_of_the_other_one_is_deleted(self):
        """The standby, or the pod that Kubernetes makes at once in its place, if that was faster."""
        spec, step = self.train()
        self.control.delete()
        self.assertEqual(self.control.exit_codes, [INTERRUPTED], self.control.said())
        self.expect_led_by(self.wait_until_leads(lambda one: one is not self.control, "another one"), spec, step)

    def test_or_the_pod_that_takes_its_place_while_it_stands_still_itself(self):
        """It finds that another one was faster, and waits on."""
        spec, step = self.train()
        first = [self.control, self.standby]
        stopped = self.standby.main_process()
        os.kill(stopped, signal.SIGSTOP)
        self.control.delete()
        leader = self.wait_until_leads(lambda one: one not in first, "a new one")
        os.kill(stopped, signal.SIGCONT)
        self.expect_led_by(leader, spec, step)
        self.assertEqual(self.standby.exit_codes, [COMPLETED], self.standby.said())

    def test_when_the_node_of_the_other_one_is_lost_and_nobody_says_so(self):
        spec, step = self.train()
        self.assertNotEqual(self.control.node, self.standby.node)
        node = self.control.node
        self.cluster.nodes.lose(node)
        wait_until(lambda: self.leads(self.standby), "the standby leads")
        self.cluster.nodes.evict(node)
        self.expect_led_by(self.standby, spec, step)

    def test_while_the_api_server_is_away_and_says_so_later(self):
        spec, step = self.train()
        self.api.stop()
        node = self.control.node
        self.cluster.nodes.lose(node)
        wait_until(lambda: any(LEADS in text for text in self.told_by_control_pods()), "the standby leads")
        self.assertEqual(self.annotations()[LEADER], self.control.name, "nobody could say so")
        self.api.come_back()
        wait_until(lambda: self.leads(self.standby), "the Job says so")
        self.cluster.nodes.evict(node)
        self.expect_led_by(self.standby, spec, step)

    def test_or_the_other_one_again_when_its_container_is_killed_but_never_both(self):
        spec, step = self.train()
        self.control.kill_container()
        wait_until(lambda: self.control.restarts, "its container is started again")
        wait_until(lambda: any(LEADS in text for text in self.told_by_control_pods()), "one of them takes over")
        leader = wait_until(self.control_pod, "one leads")
        self.assertEqual(sum(LEADS in text for text in self.told_by_control_pods()), 1)
        self.expect_led_by(leader, spec, step)

    def test_when_the_other_one_is_cut_off_from_the_etcd_alone_and_the_hosts_follow(self):
        """That one lives, and hosts are linked to it. They tell it, though the etcd cannot, before it starts anything in their place."""
        spec, step = self.train()
        etcd, old = self.hosts.address(self.etcd_host), self.control
        self.hosts.filter(old.host, "add table ip lost", "delete table ip lost",
                          f"table ip lost {{ chain said {{ type filter hook output priority 0; ip daddr {etcd} drop; }}; }}")
        wait_until(lambda: self.leads(self.standby), "the standby leads")
        wait_until(lambda: old.exit_codes, "the other one hears that it was followed")
        self.assertEqual(old.exit_codes[0], FAILED, old.said())
        self.assertIn("another root has taken the run over: host job-hosts-", old.said())
        self.wait_until_trains(beyond=step)
        self.assertFalse([one for one in self.api.asked if one.startswith("delete pods")])
        wait_until(lambda: "no etcd answers" in old.said().partition("follows a later one")[2], "its container waits for the etcd")
        self.hosts.heal(old.host)
        wait_until(lambda: WAITS in old.said(), "and then for the one that leads")
        self.assertEqual(old.exit_codes, [FAILED], old.said())
        self.expect_led_by(self.standby, spec, step)

    def test_when_both_are_lost_the_next_one(self):
        spec, step = self.train()
        gone = [self.control, self.standby]
        for one in gone:
            self.cluster.nodes.lose(one.node)
        for one in gone:
            self.cluster.nodes.evict(one.node)
        leader = self.wait_until_leads(lambda one: one not in gone, "another one")
        hosts = [one for one in self.hosts_pods if not one.is_lost]
        self.assertEqual(hosts, self.hosts_pods, "control pods are on nodes of their own")
        self.expect_led_by(leader, spec, step)


class waits(with_a_standby):
    def test_and_nobody_notices_when_it_is_lost(self):
        spec, step = self.train()
        self.standby.kill_container()
        wait_until(lambda: self.standby.restarts, "its container is started again")
        said = self.standby.said().count(WAITS)
        wait_until(lambda: self.standby.said().count(WAITS) >= max(said, 2), "it waits again")
        self.cluster.nodes.lose(self.standby.node)
        self.cluster.nodes.evict(self.standby.node)
        self.wait_until_trains(beyond=step)
        self.assertEqual(self.annotations()[LEADER], self.control.name)
        self.assertEqual(self.events(LEADS), [])
        self.assertNotEqual(self.standby_pod(), self.standby)
        self.expect_all_end(spec)

    def test_while_nobody_reaches_the_etcd_for_longer_than_a_root_may_be_silent(self):
        """And takes over from nobody as soon as it is back."""
        spec, step = self.train()
        before = len(self.etcd.keys("dlrun/"))
        self.hosts.set_link(self.etcd_host, "down")
        wait_until(lambda: "no etcd answers" in self.standby.said(), "it notices")
        committed = self.wait_until_trains(beyond=step)["step"]
        self.hosts.set_link(self.etcd_host, "up")
        wait_until(lambda: len(self.etcd.keys("dlrun/")) == before, "the etcd answers")
        self.wait_until_trains(beyond=committed)
        self.assertEqual((self.standby.exit_codes, self.events(LEADS)), ([], []), self.standby.said())
        self.expect_all_end(spec)

    def test_and_a_host_that_joins_tries_the_other_one_too(self):
        """The name of the Service is both, the standby first."""
        spec, step = self.train()
        with self.cluster.lock:
            self.cluster.pods.sort(key=lambda one: one is self.control)
            self.cluster.renew_network()
        host = self.hosts_pods[0].host_name
        self.hosts_pods[0].kill_container()
        wait_until(lambda: sum(event["host"] == host for event in self.events("host-joined")) > 1, "it joins again")
        self.wait_until_trains(beyond=step)
        self.expect_all_end(spec)

    def test_where_it_has_no_room_and_holds_no_job_up(self):
        self.cluster.room[NAME] = 1
        spec = self.spec()
        self.cluster.apply(self.manifests(spec, "--standby"))
        self.assertEqual([one is None for one in self.cluster.start(NAME)], [False, True])
        wait_until(lambda: len(self.pods_of_hosts()) == HOSTS, "the pods of hosts are there")
        self.wait_until_trains()
        self.expect_end(spec)
        self.assertEqual(self.cluster.condition(NAME), "Complete")


class ends(with_a_standby):
    def test_with_a_job_that_fails_and_does_not_try_it(self):
        self.train()
        self.use_up_memory_twice(self.hosts_pods[0])
        wait_until(lambda: self.cluster.condition(NAME), "the Job is over")
        self.assertEqual(self.cluster.condition(NAME), "Failed")
        self.assertEqual(self.annotations()["dlrun/exit-code"], str(FAILED))
        wait_until(lambda: not self.cluster.pods_of(NAME) and not self.pods_told(), "no pod is left")
        self.assertEqual(self.control.exit_codes[0], FAILED, self.control.said())
        self.expect_not_led(self.standby)
        self.assertEqual(len(self.control_pods()), 2, "none took their place")

    def test_and_tells_kubernetes_of_an_end_of_which_the_other_one_could_not(self):
        spec, _ = self.train()
        self.api.stop()
        self.pauses.end()
        wait_until(lambda: self.control.exit_codes, "the leader ends")
        self.assertEqual(self.control.exit_codes, [COMPLETED], self.control.said())
        wait_until(lambda: "the job is over" in self.standby.said(), "the standby hears of it")
        self.assertEqual(self.standby.exit_codes, [], self.standby.said())
        self.api.come_back()
        self.expect_all_end(spec)

    def test_while_the_job_is_suspended_and_goes_on_afterwards(self):
        spec, step = self.train()
        pods = [self.control, self.standby]
        self.suspend()
        for one in pods:
            wait_until(lambda one=one: one.exit_codes, f"{one.name} ends")
            self.assertEqual(one.exit_codes, [INTERRUPTED], one.said())
        self.expect_not_led(self.standby)
        self.suspend(False)
        leader = wait_until(lambda: next((one for one in self.control_pods() if one not in pods and self.annotations()[LEADER] == one.name), None),
                            "another one leads")
        self.wait_until_trains(beyond=step)
        self.assertNotEqual(self.standby_pod(), leader)
        self.expect_all_end(spec)

    def test_with_its_job_that_is_deleted(self):
        self.train()
        with self.cluster.lock:
            del self.cluster.objects["Job", NAME]
        pods = self.cluster.pods_of(NAME)
        for one in pods:
            one.delete()
        for one in pods:
            self.assertEqual(one.exit_codes, [INTERRUPTED], one.said())
        self.expect_not_led(self.standby)


class cannot_write_the_model(with_a_standby):
    """Since its claim takes no file any more: the job is trained, and the hosts keep that."""

    def come_to_the_end_without_a_claim(self):
        spec, _ = self.train()
        self.close_claim()
        self.pauses.end()
        wait_until(lambda: "it is tried again in" in self.control.said(), "it is tried again")
        return spec

    def test_for_a_while_and_nobody_else_leads(self):
        spec = self.come_to_the_end_without_a_claim()
        self.open_claim()
        self.expect_all_end(spec)
        self.assertEqual([one["reason"] for one in self.api.events], ["TrainingCompleted"])

    def test_and_the_job_is_suspended_until_somebody_has_mended_that(self):
        spec = self.come_to_the_end_without_a_claim()
        pods = [self.control, self.standby]
        wait_until(lambda: self.cluster.told_condition(NAME) == "Suspended", "the Job is suspended")
        for one in pods:
            wait_until(lambda one=one: one.exit_codes, f"{one.name} ends")
        self.assertEqual(self.standby.exit_codes, [INTERRUPTED], self.standby.said())
        self.expect_not_led(self.standby)
        self.expect_told()
        self.assertEqual(self.pods_of_hosts(), self.hosts_pods, "they stay, with the model")
        self.open_claim()
        self.suspend(False)
        wait_until(lambda: self.annotations()[LEADER] not in {one.name for one in pods}, "another one leads")
        self.expect_end(spec)
        self.assertEqual(self.cluster.condition(NAME), "Complete")
        self.assertEqual(len(self.made_pods()), HOSTS)
        self.assertEqual([one["reason"] for one in self.api.events], ["ModelNotWritten", "TrainingCompleted"])

    def expect_told(self):
        """Once, with what to mend and how the job goes on."""
        told = self.annotations()
        self.assertEqual(told["dlrun/exit-code"], str(FAILED))
        for word in (f"/model/{NAME}.safetensors", "Permission denied", "(claim 'models')", f"kubectl patch job {NAME} -p"):
            self.assertIn(word, told["dlrun/reason"])
        self.assertEqual([one["reason"] for one in self.api.events], ["ModelNotWritten"])


class is_written(with_a_standby):
    def test_as_kubernetes_takes_it(self):
        self.expect_fits_kubernetes(read_manifests(self.manifests(self.spec(), "--standby")).values())


if __name__ == "__main__":
    main()
