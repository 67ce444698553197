"""The executable specification: seeds with all rules kept are clean, and a rule that is broken is found."""

import collections
import subprocess
import sys
import unittest

import planted_bugs
import run_seeds
from actor import violation
from arithmetic import arithmetic, insert
from keeper import have
from simulation import MODES, simulation
from stores import cut, record, store

SEEDS = 400


class stand_in:
    """As much of a simulation as a store needs."""
    job, first_revision, snapshots_only, power = arithmetic(1, 1, 4, False), None, False, True


def with_log(steps, synced):
    kept = store(stand_in, 0, 1)
    for step in range(steps):
        kept.log[step] = None
    kept.appended, kept.synced = steps, synced
    return kept


class a_seed(unittest.TestCase):
    def test_runs_the_same_way_again(self):
        for mode in MODES:
            with self.subTest(mode=mode):
                first, second = simulation(3, mode=mode), simulation(3, mode=mode)
                first.run()
                second.run()
                self.assertEqual((first.now, first.event_number, first.count), (second.now, second.event_number, second.count))

    def test_is_clean_with_all_rules_kept(self):
        for seed in range(SEEDS):
            problem, one = run_seeds.run_seed(seed, "mixed")
            self.assertIsNone(problem, f"run_seeds.py --seed {seed} --seeds 1 --trace")
            self.assertTrue(one.done)

    def test_that_failed_once_is_clean(self):
        for seed, mode in ((25101, "undo"),  # a shard that applies a step of which nothing is left, far from the other
                           (179001, "undo"),  # a journal lost when one copy has not heard of the newest timeline
                           (199966, "undo")):  # a worker that keeps much for a shard whose copies have not spoken yet
            problem, _ = run_seeds.run_seed(seed, mode)
            self.assertIsNone(problem, f"run_seeds.py --seed {seed} --seeds 1 --mode {mode} --trace")

    def test_goes_through_what_copies_are_for(self):
        happened = collections.Counter()
        for seed in range(40):
            happened.update(run_seeds.run_seed(seed, "churn")[1].count)
        for kind in ("added", "removed", "promoted", "rewinds", "die", "boot"):
            self.assertGreater(happened[kind], 0, kind)


class a_broken_rule(unittest.TestCase):
    def test_is_found_and_the_same_seed_is_clean_with_the_rule_kept(self):
        for name, bug in planted_bugs.PLANTED.items():
            with self.subTest(bug=name):
                found = bug.find(name)
                self.assertTrue(bug.is_found(found), f"{found} instead of {bug.finds}")
                self.assertIsNone(bug.find(None))

    def test_of_copies_is_planted_for_each_rule(self):
        rules = {bug.rule for bug in planted_bugs.PLANTED.values()}
        self.assertLessEqual({f"R{number}" for number in range(21, 31)}, rules)


class scripted(unittest.TestCase):
    """What random schedules show once in tens of thousands of seeds: the primary of shard 0, and one copy under identity 7."""

    def setting(self, bug):
        one = simulation(1, bug, hosts=2, changes={"snapshots_only": False, "power": False})
        while not one.running.get(("P", 0)) or not all(one.running.get(("K", number)) for number in (0, 1)):
            one.handle_next()
        primary = one.running[("P", 0)][0]
        kept = primary.store
        kept.log = {step: record(step, 0, 0, 0) for step in range(4)}
        kept.appended = kept.synced = 4
        return one, primary, (1 - primary.host, 7)

    @staticmethod
    def copy_said(primary, versions, floor, change=1):
        primary.copies.said[7] = have((1, 1), primary.timeline, set(versions), {min(versions)}, 0, change, max(versions),
                                      {0, *versions}, floor)


class a_counted_copy_whose_log_begins_above_its_primarys(scripted):
    def lacking(self, bug, floor):
        _, primary, member = self.setting(bug)
        primary.copies.in_sync = (2, (*primary.copies.in_sync[1], member))
        self.copy_said(primary, (2, 3), floor)
        return primary.copies.lacking(7), primary.copies.lost

    def test_is_sent_what_follows_its_end(self):
        items, lost = self.lacking(None, floor=2)
        self.assertEqual((items, lost), ([("record", 3, record(3, 0, 0, 0))], set()))

    def test_has_lost_data_if_it_heard_no_floor_up_there(self):
        self.assertEqual(self.lacking(None, floor=1), ([], {7}))

    def test_shows_from_oldest(self):
        with self.assertRaisesRegex(violation, "R24: a counted copy .* cannot append"):
            self.lacking("from_oldest", floor=2)


class a_journal_that_is_lost(scripted):
    def store_taken(self, bug):
        """The member on host 0 told of version 5, and a store that is being filled from it, later, of version 6."""
        one, _, _ = self.setting(bug)
        coordinator, in_sync = one.running["C"][0], (4, ((0, 11),))
        one.job.shards = 1
        coordinator.journal.sets, coordinator.born = {}, one.now - 2 * one.timeout
        coordinator.inventories = {0: {0: (11, 3, 0, 5, in_sync)}, 1: {0: (12, 3, 0, 6, in_sync)}}
        self.assertTrue(coordinator.recover())
        return coordinator.journal.sets[0]

    def test_begins_with_a_member(self):
        self.assertEqual(self.store_taken(None), (1004, ((0, 11),)))

    def test_shows_any_store(self):
        self.assertEqual(self.store_taken("any_store"), (1004, ((1, 12),)))


class a_candidate_that_is_to_begin_anew(scripted):
    def filled_when_the_floor_has_risen(self, bug):
        _, primary, member = self.setting(bug)
        primary.copies.candidates = (member,)
        self.copy_said(primary, (2, 3, 4), floor=2)
        self.assertEqual(primary.copies.lacking(7)[0][:3], ("begin", 1, 0))
        primary.drop_below(2)
        return primary, primary.copies.filled(7)

    def test_is_not_asked_for_while_it_would_obey(self):
        primary, filled = self.filled_when_the_floor_has_risen(None)
        self.assertFalse(filled)
        self.assertEqual(primary.copies.lacking(7)[0][:2], ("begin", 1))
        self.copy_said(primary, (2, 3, 4), floor=2, change=2)
        self.assertTrue(primary.copies.filled(7))

    def test_shows_begun_late(self):
        self.assertTrue(self.filled_when_the_floor_has_risen("begun_late")[1])


class a_copy_that_heard_a_higher_floor_than_its_new_primary(scripted):
    def snapshots_after(self, bug):
        one, primary, (host, identity) = self.setting(bug)
        kept = one.hosts[host].stores[0] = store(one, 0, identity)
        kept.snapshots, kept.floor, kept.appended, kept.synced = {3: 17}, 3, 3, 3
        keeper = one.running[("K", host)][0]
        keeper.on_copy(primary, 0, primary.incarnation, identity, False, keeper.incarnation, (1, ()), kept.timeline, kept.history, 1,
                       [("snapshot", 2, 16)])
        end = one.now + one.snapshot_time
        while one.now < end:
            one.handle_next()
        return set(kept.snapshots)

    def test_takes_what_that_sends(self):
        self.assertEqual(self.snapshots_after(None), {2, 3})

    def test_shows_own_word(self):
        self.assertEqual(self.snapshots_after("own_word"), {3})


class a_store(unittest.TestCase):
    def test_is_asked_only_for_what_survives_a_power_cut(self):
        kept = with_log(4, 2)
        self.assertEqual(kept.restorable(), {0, 1, 2, 3, 4})
        self.assertEqual(kept.durable(), {0, 1, 2})
        kept.power_cut()
        self.assertEqual(kept.restorable(), {0, 1, 2})

    def test_keeps_what_leads_to_its_floor(self):
        kept = with_log(4, 4)
        kept.drop_below(2)
        self.assertEqual(kept.durable(), {0, 1, 2, 3, 4})
        kept.snapshots[2] = None
        kept.drop_below(2)
        self.assertEqual(kept.durable(), {0, 2, 3, 4})

    def test_that_goes_back_or_begins_anew_has_the_floor_of_that(self):
        kept = with_log(4, 4)
        kept.begin_anew(3, None)
        self.assertEqual((kept.floor, kept.durable()), (3, {0, 3}))
        kept.truncate(1)
        self.assertEqual((kept.floor, kept.durable()), (1, {0}))

    def test_counts_on_a_newer_timeline_for_what_that_leaves_of_it(self):
        history = {0: (0, None), 1: (3, None), 2: (1, None)}
        self.assertEqual(cut({0, 1, 2, 3, 4}, 0, 1, history), {0, 1, 2, 3})
        self.assertEqual(cut({0, 1, 2, 3, 4}, 0, 2, history), {0, 1})
        self.assertEqual(cut({0, 1, 2}, 2, 1, history), {0})


class a_reduction(unittest.TestCase):
    def test_has_the_same_value_whoever_computed_what(self):
        job = arithmetic(1, 6, 1, False)
        whole = job.gradient(0, 0, (0, 6), 17, frozenset())
        held = {}
        for node in ((4, 5), (0, 2), (5, 6), (2, 3), (2, 4)):
            insert(held, node, job.gradient(0, 0, node, 17, frozenset()), job.tree)
        self.assertEqual(held, {(0, 6): whole})


class the_command(unittest.TestCase):
    def run_command(self, *options):
        return subprocess.run([sys.executable, "-B", run_seeds.__file__, *options], capture_output=True, text=True)

    def test_ends_with_1_and_names_a_seed_that_fails(self):
        result = self.run_command("--bug", "commit_own_log", "--mode", "default", "--seeds", "20")
        self.assertEqual(result.returncode, 1)
        self.assertIn("seed ", result.stdout)

    def test_runs_in_several_processes(self):
        result = self.run_command("--seeds", "6", "--processes", "2")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("6 seeds from 0", result.stdout)

    def test_refuses_numbers_that_make_no_sense(self):
        for options in (("--seeds", "0"), ("--seed", "-1"), ("--processes", "0"), ("--hosts", "6")):
            self.assertEqual(self.run_command(*options).returncode, 2, options)


if __name__ == "__main__":
    unittest.main()
