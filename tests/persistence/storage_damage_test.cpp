// Files of a whole store and of a journal, cut off and flipped at many places: an older state that
// is whole, or an error that says what and where; never other bytes, and never in silence where it
// can be known.
#include "persistence/folder_journal.hpp"
#include "persistence/shard_store.hpp"
#include "tests/persistence/damage.hpp"
#include "tests/persistence/store_fixture.hpp"

#include <filesystem>

namespace dlrun::persistence {
namespace {

namespace fs = std::filesystem;

constexpr int places = 100;

std::vector<fs::path> files_with(const fs::path& folder, const std::string& extension) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == extension && entry.file_size() > 0) found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

class storage_damage : public test::store_test {
protected:
  static constexpr std::uint64_t steps = 24;
  static inline const history_entry entry{{1}, {14}, 2, {{{15}, {1}}}};

  /// Steps 0 to 13 on timeline 0, a rewind, then on to `steps`; snapshots 6 and 20.
  void make_store(bool with_tables) {
    {
      const auto store = shard_store::open(options(1)).value();
      ASSERT_TRUE(append_each(*store, 0, 8));
      ASSERT_TRUE(snapshot(*store, 6));
      ASSERT_TRUE(append(*store, 8, 16));
      ASSERT_TRUE(store->rewind(std::span(&entry, 1), {14}));
      ASSERT_TRUE(append_each(*store, 14, steps, 1));
      ASSERT_TRUE(snapshot(*store, 20, 1));
    }
    if (with_tables) shard_store::open(options(1)).value().reset(); // recovery writes tables
    fs::copy(directory(), whole(), fs::copy_options::recursive);
  }
  fs::path whole() const { return folder.path() / "whole"; }
  void repair() const {
    fs::remove_all(directory());
    fs::copy(whole(), directory(), fs::copy_options::recursive);
  }

  /// Opens what was damaged. Whatever is there must be what was written.
  void expect_old_state_or_error(bool silence_allowed) {
    auto store = shard_store::open(options(2));
    if (!store) {
      EXPECT_EQ(store.error().code, error_code::storage_damaged) << store.error().message;
      EXPECT_NE(store.error().message.find(directory()), std::string::npos) << store.error().message;
      return;
    }
    const auto& found = (*store)->found();
    ASSERT_TRUE(found.history.empty() || found.history == std::vector{entry});
    const bool rewound = !found.history.empty();
    ASSERT_LE(found.log_end.value, rewound ? steps : 16U);
    bool something_lost = found.log_end.value < steps || found.log_first.value > 0 || !rewound;
    for (auto step = found.log_first.value; step < found.log_end.value; ++step)
      ASSERT_TRUE(holds(**store, step, rewound && step >= 14 ? 1 : 0));
    something_lost |= found.snapshots.size() < 2;
    for (const auto& info : found.snapshots) {
      const auto held = has_snapshot(**store, info.version.value, info.timeline.value);
      if (!held) {
        ASSERT_EQ((*store)->open_snapshot(info.version).has_value(), true) << held.message();
      }
      something_lost |= !held;
    }
    if (something_lost && !silence_allowed && found.snapshots.size() < 2) {
      EXPECT_FALSE(found.damaged.empty());
    }
    if (found.log_end.value < steps && !silence_allowed) {
      EXPECT_FALSE(found.damaged.empty());
    }
    // It goes on from there, and what is written now is found later.
    const auto next = (*store)->next_step().value;
    ASSERT_TRUE(append(**store, next, next + 2, rewound ? 1 : 0));
    store->reset();
    store = shard_store::open(options(3));
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_EQ((*store)->found().log_end.value, next + 2);
    EXPECT_TRUE(holds_all(**store, next, next + 2, rewound ? 1 : 0));
  }

  void damage_each(const std::string& extension, std::uint64_t seed) {
    const auto targets = files_with(whole(), extension);
    ASSERT_FALSE(targets.empty());
    for (const auto& target : targets) {
      const auto content = test::content_of(target);
      const auto borders =
          extension == ".log" ? test::log_record_borders(content) : std::vector<std::uint64_t>{0};
      const auto count = places / static_cast<int>(targets.size()) + 1;
      for (const auto& harm : test::damages(content.size(), borders, count, seed++)) {
        SCOPED_TRACE(target.filename().string() + " " + harm.describe());
        repair();
        harm.apply_to(directory() / fs::relative(target, whole()));
        // Where a log ends at the border of a record nothing shows that there was more.
        const bool at_border = harm.truncate && std::ranges::find(borders, harm.offset) != borders.end();
        expect_old_state_or_error(at_border && extension == ".log");
        if (HasFatalFailure()) return;
      }
    }
  }
};

TEST_F(storage_damage, of_rocksdbs_log_gives_an_older_state_or_an_error) {
  make_store(false);
  damage_each(".log", 21);
}

TEST_F(storage_damage, of_segments_gives_an_older_state) {
  make_store(false);
  damage_each(".seg", 22);
}

TEST_F(storage_damage, of_snapshots_is_noticed_when_they_are_read_and_the_one_before_is_used) {
  make_store(false);
  for (const auto& target : files_with(whole(), ".snap")) {
    const auto version = version_id{target.filename().string().starts_with("6-") ? 6U : 20U};
    for (const auto& harm : test::damages(fs::file_size(target), {0}, places / 2, 23)) {
      SCOPED_TRACE(target.filename().string() + " " + harm.describe());
      repair();
      harm.apply_to(directory() / fs::relative(target, whole()));
      const auto store = shard_store::open(options(2)).value();
      EXPECT_FALSE(has_snapshot(*store, version.value, version.value == 6 ? 0 : 1));
      ASSERT_TRUE(store->discard_snapshot(version));
      EXPECT_EQ(store->next_step(), step_id{steps}) << "the other snapshot and the log are still there";
      ASSERT_TRUE(version.value == 6 ? has_snapshot(*store, 20, 1) : has_snapshot(*store, 6));
    }
  }
}

TEST_F(storage_damage, of_rocksdbs_tables_gives_an_error_or_nothing_is_lost) {
  make_store(true);
  damage_each(".sst", 24);
}

TEST_F(storage_damage, of_rocksdbs_manifest_and_current_gives_an_older_state_or_an_error) {
  make_store(true);
  for (const auto& entry_of : fs::directory_iterator(whole() / "log")) {
    const auto name = entry_of.path().filename().string();
    if (!name.starts_with("MANIFEST") && name != "CURRENT") continue;
    for (const auto& harm : test::damages(entry_of.file_size(), {0}, places / 2, 25)) {
      SCOPED_TRACE(name + " " + harm.describe());
      repair();
      harm.apply_to(fs::path(directory()) / "log" / name);
      expect_old_state_or_error(false);
      if (HasFatalFailure()) return;
    }
  }
}

/// RocksDB takes a record that says that it is longer than the file for one that was cut off.
TEST_F(storage_damage, of_what_frames_rocksdbs_manifest_is_refused_bit_by_bit) {
  make_store(true);
  const auto log = fs::path(directory()) / "log";
  const auto current = test::content_of(log / "CURRENT");
  const auto manifest = log / current.substr(0, current.size() - 1);
  const auto content = test::content_of(manifest);
  const auto expect_refused = [&](const fs::path& file, std::uint64_t at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      const test::damage harm{false, at, static_cast<std::uint8_t>(1U << bit)};
      harm.apply_to(file);
      const auto store = shard_store::open(options(2));
      ASSERT_FALSE(store) << file.filename() << " " << harm.describe();
      EXPECT_EQ(store.error().code, error_code::storage_damaged) << store.error().message;
      EXPECT_NE(store.error().message.find(file.filename()), std::string::npos) << store.error().message;
      harm.apply_to(file);
    }
  };
  for (const auto border : test::log_record_borders(content))
    for (std::uint64_t at = border; at < border + 7; ++at) expect_refused(manifest, at);
  ASSERT_TRUE(shard_store::open(options(2))) << "nothing has changed";
}

/// An older MANIFEST may still be there.
TEST_F(storage_damage, of_rocksdbs_current_is_refused_bit_by_bit) {
  make_store(true);
  const auto log = fs::path(directory()) / "log";
  const auto current = test::content_of(log / "CURRENT");
  const auto manifest = current.substr(0, current.size() - 1);
  for (std::uint64_t at = 0; at < current.size(); ++at)
    for (unsigned bit = 0; bit < 8; ++bit) {
      const test::damage harm{false, at, static_cast<std::uint8_t>(1U << bit)};
      harm.apply_to(log / "CURRENT");
      auto other = test::content_of(log / "CURRENT");
      if (!other.empty() && other.back() == '\n') other.pop_back();
      const bool is_older = other.starts_with("MANIFEST-") && other < manifest;
      if (is_older) fs::copy_file(log / manifest, log / other);
      const auto store = shard_store::open(options(2));
      EXPECT_FALSE(store) << harm.describe();
      if (is_older) fs::remove(log / other);
      harm.apply_to(log / "CURRENT");
    }
}

TEST_F(storage_damage, that_takes_whole_files_is_told) {
  make_store(true);
  for (const auto& entry_of : fs::recursive_directory_iterator(whole())) {
    const auto name = fs::relative(entry_of.path(), whole()).string();
    if (entry_of.is_directory() || name.find("LOCK") != std::string::npos ||
        name.find("IDENTITY") != std::string::npos || name.find("OPTIONS") != std::string::npos ||
        entry_of.file_size() == 0)
      continue;
    SCOPED_TRACE(name);
    repair();
    fs::remove(fs::path(directory()) / name);
    expect_old_state_or_error(false);
    if (HasFatalFailure()) return;
  }
}

class journal_damage : public ::testing::Test {
protected:
  static constexpr int writes = 12;

  static std::string value_of(int i) { return "value " + std::to_string(i) + std::string(i * 37 % 200, 'v'); }

  void make_journal() {
    const auto made = folder_journal::open({directory, {1}, files}).value();
    for (int i = 0; i < writes; ++i) {
      const journal_write change{"key " + std::to_string(i), value_of(i)};
      ASSERT_TRUE(made->write(std::span(&change, 1)));
    }
  }
  void repair() const {
    fs::remove_all(directory);
    fs::copy(whole, directory, fs::copy_options::recursive);
  }
  /// The first writes, as many as there are, each with what was written.
  static void expect_first_writes(const std::map<std::string, std::string>& entries) {
    for (int i = 0; i < static_cast<int>(entries.size()); ++i) {
      const auto found = entries.find("key " + std::to_string(i));
      ASSERT_NE(found, entries.end());
      ASSERT_EQ(found->second, value_of(i));
    }
  }

  test::temporary_folder folder;
  std::string directory = (folder.path() / "journal").string();
  fs::path whole = folder.path() / "whole";
  std::shared_ptr<test::faulty_file_system> files = std::make_shared<test::faulty_file_system>(1);
};

TEST_F(journal_damage, loses_at_most_a_torn_write_and_is_an_error_otherwise) {
  make_journal();
  fs::copy(directory, whole, fs::copy_options::recursive);
  const auto log = files_with(whole, ".log").front();
  const auto content = test::content_of(log);
  const auto borders = test::log_record_borders(content);
  for (const auto& harm : test::damages(content.size(), borders, places, 31)) {
    SCOPED_TRACE(harm.describe());
    repair();
    harm.apply_to(fs::path(directory) / "log" / log.filename());
    const auto looked = folder_journal::read(directory, files);
    const auto opened = folder_journal::open({directory, {2}, files});
    ASSERT_EQ(looked.has_value(), opened.has_value());
    if (!harm.truncate) {
      ASSERT_FALSE(opened) << "an acknowledged write was damaged";
      EXPECT_EQ(opened.error().code, error_code::storage_damaged);
      EXPECT_NE(opened.error().message.find(log.filename()), std::string::npos) << opened.error().message;
    } else if (opened) {
      ASSERT_EQ((*opened)->contents(), looked->entries);
      expect_first_writes((*opened)->contents());
    }
  }
}

TEST_F(journal_damage, of_any_other_file_is_an_error_or_changes_nothing) {
  make_journal();
  folder_journal::open({directory, {2}, files}).value().reset(); // recovery writes tables
  fs::copy(directory, whole, fs::copy_options::recursive);
  for (const auto& entry : fs::recursive_directory_iterator(whole)) {
    const auto name = fs::relative(entry.path(), whole).string();
    if (entry.is_directory() || entry.file_size() == 0 || name.ends_with(".log")) continue;
    for (const auto& harm : test::damages(entry.file_size(), {0}, 25, 32)) {
      SCOPED_TRACE(name + " " + harm.describe());
      repair();
      harm.apply_to(fs::path(directory) / name);
      const auto opened = folder_journal::open({directory, {3}, files});
      if (!opened) {
        EXPECT_EQ(opened.error().code, error_code::storage_damaged) << opened.error().message;
        continue;
      }
      ASSERT_EQ((*opened)->contents().size(), static_cast<std::size_t>(writes));
      expect_first_writes((*opened)->contents());
    }
  }
}

} // namespace
} // namespace dlrun::persistence
