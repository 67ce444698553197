// Power goes at a random moment of random work, again and again on the same folder. A failing seed
// is printed.
#include "persistence/folder_journal.hpp"
#include "persistence/shard_store.hpp"
#include "tests/persistence/store_fixture.hpp"

#include <optional>

namespace dlrun::persistence {
namespace {

constexpr std::uint64_t seeds = 30;
constexpr int cuts_each = 4;

/// What a store was told and acknowledged, and the one operation that was under way.
struct expected_state {
  std::vector<std::uint64_t> timeline_of; // step -> timeline
  std::uint64_t acknowledged = 0;         // log end
  std::uint64_t synced = 0;
  std::uint64_t floor = 0;
  std::map<std::uint64_t, std::uint64_t> snapshots; // version -> timeline
  std::vector<history_entry> history;

  std::uint64_t timeline() const { return history.empty() ? 0 : history.back().timeline.value; }

  void append(std::uint64_t end) {
    timeline_of.resize(end, timeline());
    acknowledged = end;
  }
  void rewind(const std::vector<history_entry>& entries, std::uint64_t to) {
    history = entries;
    timeline_of.resize(to);
    acknowledged = to;
    synced = std::min(synced, to);
    std::erase_if(snapshots, [&](const auto& snapshot) { return snapshot.first > to; });
  }
  void drop(std::uint64_t below) {
    floor = below;
    std::erase_if(snapshots, [&](const auto& snapshot) { return snapshot.first < below; });
  }
};

class power_cut : public test::store_test {
protected:
  shard_store_options options_with(sync_mode sync, std::uint64_t opener) const {
    auto made = options(opener);
    made.sync = sync;
    made.boot = "boot " + std::to_string(opener); // that of whoever comes after a cut is another one
    return made;
  }

  /// Does something random. `after` is what holds if it happens, `state` what holds if not. False
  /// when it failed.
  bool do_something(shard_store& store, sync_mode sync, std::mt19937_64& random) {
    after = state;
    const auto choice = random() % 20;
    if (choice < 12) {
      after.append(state.acknowledged + 1 + random() % 3);
      if (!append(store, state.acknowledged, after.acknowledged, state.timeline())) return false;
      if (sync == sync_mode::power) after.synced = after.acknowledged;
    } else if (choice < 14) {
      if (!store.sync()) return false;
      after.synced = state.acknowledged;
    } else if (choice < 16) {
      if (state.snapshots.contains(state.acknowledged) || state.acknowledged < state.floor) return true;
      after.snapshots[state.acknowledged] = state.timeline();
      if (!snapshot(store, state.acknowledged, state.timeline())) return false;
      after.synced = state.acknowledged;
    } else if (choice < 18) {
      const auto to = state.floor + random() % (state.acknowledged - state.floor + 1);
      auto entries = state.history;
      entries.push_back({{state.timeline() + 1}, {to}, random() % 100, {}});
      after.rewind(entries, to);
      if (!store.rewind(entries, {to})) return false;
    } else {
      if (state.snapshots.empty()) return true;
      const auto newest = state.snapshots.rbegin()->first;
      after.drop(newest);
      if (!store.drop_below({newest})) return false;
    }
    state = after;
    return true;
  }

  /// What is there is what was there before or after the operation that power interrupted.
  void expect_nothing_synced_is_lost(const shard_store& store) {
    const auto& found = store.found();
    const bool happened = found.history != state.history;
    const auto& now = happened ? after : state;
    ASSERT_EQ(found.history, now.history);
    ASSERT_GE(store.next_step().value, now.synced) << "synced steps are lost";
    ASSERT_LE(found.log_end.value, std::max(state.acknowledged, after.acknowledged));
    if (found.log_first < found.log_end) {
      ASSERT_LE(found.log_first.value, std::max(state.floor, after.floor));
    }
    const auto& written = after.timeline_of.size() > now.timeline_of.size() && !happened ? after : now;
    for (auto step = found.log_first.value; step < found.log_end.value; ++step)
      ASSERT_TRUE(holds(store, step, written.timeline_of.at(step)));
    for (const auto& [version, timeline] : now.snapshots)
      if (after.snapshots.contains(version)) {
        ASSERT_TRUE(has_snapshot(store, version, timeline)) << version;
      }
    for (const auto& info : found.snapshots) {
      ASSERT_TRUE(state.snapshots.contains(info.version.value) ||
                  after.snapshots.contains(info.version.value));
      ASSERT_TRUE(has_snapshot(store, info.version.value, info.timeline.value));
    }
    adopt(store, written);
  }

  /// From here on, what was found is what is known.
  void adopt(const shard_store& store, const expected_state& written) {
    expected_state known;
    known.history = store.history();
    known.acknowledged = store.next_step().value;
    known.synced = store.synced_end().value;
    known.timeline_of = written.timeline_of;
    known.timeline_of.resize(known.acknowledged, known.timeline());
    for (const auto& info : store.snapshots()) known.snapshots[info.version.value] = info.timeline.value;
    const auto first = store.restorable().back().first.value;
    known.floor = store.found().log_first.value > 0 || first > 0 ? first : 0;
    state = after = known;
  }

  void run(std::uint64_t seed, sync_mode sync) {
    std::mt19937_64 random(seed);
    files = std::make_shared<test::faulty_file_system>(seed);
    state = after = {};
    std::uint64_t opener = 1;
    for (int cut = 0; cut < cuts_each; ++cut) {
      files->cut_power_after(1 + random() % 250);
      std::uint64_t identity = 0;
      if (auto store = shard_store::open(options_with(sync, opener++))) {
        identity = (*store)->identity();
        while (do_something(**store, sync, random)) {
        }
      }
      ASSERT_TRUE(files->power_is_cut()) << "something failed before";
      files->restore_power();
      auto store = shard_store::open(options_with(sync, opener++));
      ASSERT_TRUE(store) << store.error().message;
      // In mode `power` only the payload of an append that was not acknowledged may be damaged:
      // that costs the identity too, which is one too many, and never one too few.
      const auto& why = (*store)->found().why_new_identity;
      const bool is_other = (*store)->identity() != identity;
      ASSERT_TRUE(identity == 0 || is_other || sync == sync_mode::power) << "R24";
      ASSERT_TRUE(identity == 0 || !is_other || sync == sync_mode::process || why == "it was damaged") << why;
      expect_nothing_synced_is_lost(**store);
      if (HasFatalFailure()) return;
    }
    std::filesystem::remove_all(directory());
  }

  expected_state state;
  expected_state after;
};

TEST_F(power_cut, loses_nothing_that_was_synced_in_mode_process) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    run(seed, sync_mode::process);
    if (HasFatalFailure()) return;
  }
}

TEST_F(power_cut, loses_nothing_that_was_acknowledged_in_mode_power) {
  for (std::uint64_t seed = 1001; seed <= 1000 + seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    run(seed, sync_mode::power);
    if (HasFatalFailure()) return;
  }
}

TEST_F(power_cut, a_rewind_has_happened_or_has_not) {
  int happened = 0;
  for (std::uint64_t moment = 1; moment <= 12; ++moment)
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      SCOPED_TRACE(testing::Message() << "change " << moment << " seed " << seed);
      files = std::make_shared<test::faulty_file_system>(seed);
      const history_entry entry{{1}, {4}, 9, {{{4}, {1}}}};
      {
        const auto store = shard_store::open(options()).value();
        ASSERT_TRUE(append_each(*store, 0, 10));
        ASSERT_TRUE(snapshot(*store, 3));
        ASSERT_TRUE(snapshot(*store, 8));
        files->cut_power_after(moment);
        (void)store->rewind(std::span(&entry, 1), {4});
      }
      files->restore_power();
      auto store = shard_store::open(options(2)).value();
      const bool did = !store->history().empty();
      happened += did ? 1 : 0;
      EXPECT_EQ(store->next_step(), step_id{did ? 4U : 10U});
      EXPECT_EQ(store->snapshots().size(), did ? 1U : 2U);
      EXPECT_TRUE(holds_all(*store, 0, did ? 4 : 10));
      store.reset();
      std::filesystem::remove_all(directory());
    }
  EXPECT_GT(happened, 10);
  EXPECT_LT(happened, 72);
}

/// What a journal acknowledged, and that with the write under way.
struct expected_entries {
  std::map<std::string, std::string> before;
  std::map<std::string, std::string> after;
};

std::vector<journal_write> random_changes(std::mt19937_64& random,
                                          std::map<std::string, std::string>& entries) {
  std::vector<journal_write> changes;
  for (auto count = 1 + random() % 4; count > 0; --count) {
    const auto key = std::to_string(random() % 12);
    changes.push_back({key, std::nullopt});
    entries.erase(key);
    if (random() % 4 == 0) continue;
    changes.back().value = std::string(random() % 3000, static_cast<char>('a' + random() % 26));
    entries[key] = *changes.back().value;
  }
  return changes;
}

/// Writes until something fails, and says what.
std::string write_until_failure(const journal_options& options, std::mt19937_64& random,
                                expected_entries& expected) {
  const auto writer = folder_journal::open(options);
  if (!writer) return writer.error().message;
  while (true) {
    const auto changes = random_changes(random, expected.after);
    if (const auto written = (*writer)->write(changes); !written) return written.error().message;
    expected.before = expected.after;
  }
}

TEST_F(power_cut, a_journal_keeps_every_acknowledged_write_and_never_half_of_one) {
  const auto where = (folder.path() / "journal").string();
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    files = std::make_shared<test::faulty_file_system>(seed);
    expected_entries expected;
    for (std::uint64_t owner = 1; owner <= 6; owner += 2) {
      files->cut_power_after(1 + random() % 60);
      const auto failure = write_until_failure({where, {owner}, files}, random, expected);
      ASSERT_TRUE(files->power_is_cut()) << failure;
      files->restore_power();
      const auto reader = folder_journal::open({where, {owner + 1}, files});
      ASSERT_TRUE(reader) << reader.error().message;
      const auto& found = (*reader)->contents();
      ASSERT_TRUE(found == expected.before || found == expected.after);
      expected = {found, found};
    }
    std::filesystem::remove_all(where);
  }
}

} // namespace
} // namespace dlrun::persistence
