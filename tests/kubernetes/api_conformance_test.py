"""The API server that is played does what dlrun relies on; and each case of api_conformance finds a server that does not."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]

import api_asker
import api_cases
import api_evictions
import api_objects
import fake_api
import lone_server
import played_controllers
import played_nodes
from api_objects import api_history, api_space, refusal
from api_taints import taint_manager
from bench_case import write_counts
from waiting import wait_until

IMAGE = "with-a-shell"  # no image is fetched
IMPATIENT_S = 0.5
FOUND = (api_asker.wrong, OSError, KeyError)


class is_played(unittest.TestCase):
    def conform(self, *options):
        with tempfile.TemporaryDirectory(prefix="dlrun-") as folder:
            server = subprocess.Popen([str(HERE / "fake_api_server"), folder, *options], stdout=subprocess.DEVNULL)
            try:
                wait_until(lambda: (pathlib.Path(folder) / "server").exists(), "it listens")
                where = (pathlib.Path(folder) / "server").read_text()
                done = subprocess.run([str(HERE / "api_conformance"), "--server", where, "--token-file", f"{folder}/token", "--ca", f"{folder}/ca.crt",
                                       "--image", IMAGE], capture_output=True, text=True)
            finally:
                server.send_signal(signal.SIGTERM)
                code = server.wait()
        self.assertEqual((done.returncode, done.stderr, code), (0, "", 0), done.stdout + done.stderr)
        count = len(api_cases.CASES) + len(api_cases.RUNNING) + len(api_cases.FAULTS)
        self.assertEqual(done.stdout.splitlines()[-1], f"{count} cases held, 0 did not, 0 left out")

    def test_as_real_servers_are(self):
        self.conform()

    def test_and_may_say_410_in_a_stream(self):
        self.conform("--expires-in-stream")


# ---- servers that are wrong: for each case how one would be

def changed(of, name, change):
    """@param change what is done in place of that method: gets the method, and what it is called with"""
    method = getattr(of, name)
    return mock.patch.object(of, name, lambda *words, **more: change(method, *words, **more))


def nothing(of, name):
    return mock.patch.object(of, name, lambda *_, **__: None)


def refuses(of, name):
    def refuse(*_, **__):
        raise refusal(400, "no", "BadRequest")
    return mock.patch.object(of, name, refuse)


def validate_pods_alone(method, self, kind, name, made):
    if kind == "Pod":
        method(self, kind, name, made)


def number_only(_, self, one):
    self.version += 1
    one["metadata"]["resourceVersion"] = str(self.version)


def uid_by_name(method, self, one):
    one["metadata"].setdefault("uid", f"uid-{one['metadata']['name']}")
    method(self, one)


def replace(method, self, kind, made):
    self.objects.pop((kind, made["metadata"].get("name")), None)
    return method(self, kind, made)


def patch_blindly(method, self, kind, name, content_type, body):
    return method(self, kind, name, content_type, body.replace(b'"resourceVersion"', b'"other"'))


def patch_any(method, self, kind, name, _, body):
    return method(self, kind, name, api_objects.MERGE_PATCH, body)


def patch_in_vain(_, self, kind, name, *__):
    return self.there(kind, name)


def without_events(method, self, kind, made):
    if kind == "Event":
        raise refusal(403, "no", "Forbidden")
    return method(self, kind, made)


def delete_any(method, self, kind, name, options):
    return method(self, kind, name, {key: value for key, value in options.items() if key != "preconditions"})


def remove_held(method, self, gone, kind="Pod"):
    gone["metadata"].pop("finalizers", None)
    method(self, gone, kind)


def list_of_now(_, self, kind, all_there, query):
    first, limit = int(query.get("continue", 0)), int(query.get("limit", 500))
    rest = {"continue": str(first + limit)} if first + limit < len(all_there) else {}
    return {"metadata": {"resourceVersion": str(self.version)} | rest, "items": all_there[first:first + limit]}


def without_changes(method, changes, *wanted):
    return method([one for one in changes if one[1] != "MODIFIED"], *wanted)


def watch_from_before(method, self, since, *words):
    return method(self, since - 5, *words)


def watch_from_now(method, self, _, *words):
    return method(self, self.version, *words)


def create_ever(method, self, kind, made):
    self.is_ending = False
    return method(self, kind, made)


def end_at_once(method, self, going, kind="Pod", _=None):
    method(self, going, kind, 0)


def delete_without_a_word(_, space, pod, reason, message, options=()):
    space.delete("Pod", pod["metadata"]["name"], dict(options))


def disrupt_in_earnest(method, space, pod, reason, message, options=()):
    method(space, pod, reason, message, {key: value for key, value in dict(options).items() if key != "dryRun"})


def count_gone_ones(method, space, budget):
    """Those that go, as if they were there."""
    method(space, budget)
    status = budget["status"]
    status["disruptionsAllowed"] = max(0, sum(map(api_evictions.is_ready, space.of("Pod"))) - status.get("desiredHealthy", 0))


def one_for_none(method, spec, pods):
    return method({"minAvailable": 0, **spec}, pods)


class tokens_of_all(dict):
    def __contains__(self, token):
        return True

    def __getitem__(self, token):
        return lone_server.ADMIN


def faults_of(server):
    """Case -> a context in which it must fail."""
    choose_all = mock.patch.object(api_objects, "selected", lambda query: lambda labels: True)
    no_jobs = nothing(played_nodes.played_nodes, "look_at_job")
    no_ends = nothing(played_nodes.played_nodes, "end_of_container")
    no_admission = nothing(api_space, "admit_pod")
    no_garbage = nothing(api_space, "collect_garbage")
    no_budgets = nothing(api_evictions, "ask_budgets")
    return {
        "object_is_made": changed(api_history, "give_version", number_only),
        "name_is_taken_once": changed(api_space, "create", replace),
        "name_is_taken_again_when_it_is_free": changed(api_history, "give_version", uid_by_name),
        "nonsense_is_refused": changed(api_space, "validate", validate_pods_alone),
        "missing_is_missing": refuses(api_space, "there"),
        "patch_merges": mock.patch.object(api_objects, "merged", lambda into, patch: {**into, **patch}),
        "patch_of_an_older_version_is_refused": changed(api_space, "patch", patch_blindly),
        "patch_of_no_known_kind_is_refused": changed(api_space, "patch", patch_any),
        "pod_cannot_become_another": changed(api_space, "patch", patch_in_vain),
        "events_are_taken": changed(api_space, "create", without_events),
        "deletion_names_a_uid": changed(api_space, "delete", delete_any),
        "deletion_waits_for_whoever_holds_it": changed(api_space, "remove", remove_held),
        "garbage_follows_its_owner": no_garbage,
        "garbage_is_what_has_no_owner": no_garbage,
        "pages_are_of_one_moment": changed(api_history, "list", list_of_now),
        "lists_choose_by_labels": choose_all,
        "watch_tells_all_since_a_list": changed(api_objects, "chosen_events", without_changes),
        "watch_goes_on_from_an_event": changed(api_history, "watch", watch_from_before),
        "watch_chooses_by_labels": choose_all,
        "watch_ends_when_it_is_to_and_says_how_far_it_is": mock.patch.object(api_objects, "BOOKMARK_BEFORE_END_S", -60),
        "watch_from_too_long_ago_is_refused": changed(api_history, "watch", watch_from_now),
        "stranger_is_refused": mock.patch.object(server, "tokens", tokens_of_all()),
        "account_may_what_its_role_says": mock.patch.object(lone_server.fake_api, "may", lambda *_: True),
        "budget_counts_pods_that_are_ready": nothing(played_controllers, "look_at_budget"),
        "budget_without_a_number_lets_none_go": changed(api_evictions, "wanted_of", one_for_none),
        "eviction_waits_for_its_budget": no_budgets,
        "budget_gives_each_disruption_once": changed(played_controllers, "look_at_budget", count_gone_ones),
        "pods_that_are_not_ready_go_where_the_budget_says_so": changed(api_evictions, "lets_unready_go", lambda *_: False),
        "evicted_pod_says_why_before_it_goes": changed(api_evictions, "disrupt", delete_without_a_word),
        "eviction_names_a_uid": nothing(api_space, "check_preconditions"),
        "eviction_may_be_tried": changed(api_evictions, "disrupt", disrupt_in_earnest),
        "budget_cannot_count_what_has_no_scale": changed(api_evictions, "expected_scale", lambda _, pods: len(pods)),
        "pod_of_two_budgets_is_not_evicted": no_budgets,
        "eviction_is_a_right_of_its_own": changed(fake_api, "with_part", lambda _, resource, part: resource),
        "taint_drives_out_who_does_not_bear_it": nothing(taint_manager, "look_at"),
        "node_that_is_not_ready_is_tainted": nothing(played_controllers, "look_at_node"),
        "quota_is_kept": no_admission,
        "limits_are_kept": no_admission,
        "namespace_that_ends_takes_nothing": changed(api_space, "create", create_ever),
        "job_has_the_pods_it_wants": no_jobs,
        "job_takes_its_pods_along": no_jobs,
        "job_says_how_it_ended": changed(api_space, "patch", patch_in_vain),
        "running_pod_ends_in_order": changed(api_space, "end", end_at_once),
        "container_is_started_again_in_its_pod_until_its_job_fails": no_ends,
        "job_is_complete_when_its_pod_ends_well": no_ends,
        "busy_server_says_when": changed(lone_server.fake_api, "refuse", lambda method, self, pattern, refused, times: method(self, pattern, refused, 1)),
        "compaction_ends_lists_and_watches": nothing(api_history, "compact"),
        "watch_that_is_under_way_hears_of_a_compaction": nothing(api_history, "compact"),
        "watch_hears_nothing_of_a_restored_server": nothing(lone_server.fake_api, "restore"),
        "streams_are_cut_and_silent": nothing(api_history, "silence"),
        "token_is_refused_once": changed(lone_server.fake_api, "refuse", lambda method, self, pattern, refused, times: method(self, pattern, refused, 2)),
    }


class finds(unittest.TestCase):
    def expect_found(self, name, case):
        with tempfile.TemporaryDirectory(prefix="dlrun-") as folder:
            made, where = lone_server.make_server(pathlib.Path(folder))
            with made:
                server = api_asker.asker(where, (pathlib.Path(folder) / "token").read_text(), f"{folder}/ca.crt")
                server.name_space = api_cases.make_namespace(server, "wrong")
                with mock.patch.object(api_asker, "PATIENCE_S", IMPATIENT_S), faults_of(made)[name]:
                    self.assertRaises(FOUND, case, api_cases.scene(server, IMAGE))

    def test_a_server_that_is_wrong_by_each_case(self):
        cases = {one.__name__: one for one in (*api_cases.CASES, *api_cases.RUNNING, *api_cases.FAULTS)}
        for name, case in cases.items():
            with self.subTest(name):
                self.expect_found(name, case)


if __name__ == "__main__":
    ran = unittest.main(verbosity=2, exit=False).result
    write_counts(ran, os.environ.get("GTEST_OUTPUT", ""))
    sys.exit(0 if ran.wasSuccessful() else 1)
