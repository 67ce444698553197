// Archives while a job trains: what is late, and what cannot be removed, does not keep one from
// being made.
#include "runtime/archiver.hpp"

#include "actors/data_dispatcher/course_journal.hpp"
#include "persistence/journal.hpp"
#include "runtime/archive_restoration.hpp"
#include "runtime/run_record.hpp"
#include "tests/job/spec_text.hpp"
#include "tests/runtime/small_archives.hpp"

#include <algorithm>
#include <gmock/gmock.h>

namespace dlrun::runtime {
namespace {

using testing::ElementsAre;

constexpr std::uint64_t part_bytes = 40'000;

/// One PS shard with one snapshot. Counts what it is asked for.
class one_snapshot final : public archive_source {
public:
  explicit one_snapshot(std::string bytes)
      : bytes_{std::move(bytes)} {}

  result<std::vector<stored_snapshots>> list() override {
    return std::vector<stored_snapshots>{{{name, bytes_.size()}}};
  }
  result<void> keep(const std::vector<snapshot_name>&) override { return {}; }
  result<std::string> read(ps_shard_id, const snapshot_name&, std::uint64_t offset) override {
    if (++asked[offset] <= late && offset == part_bytes) return fail(error_code::timed_out, "no answer");
    return bytes_.substr(offset, part_bytes);
  }
  result<journal_entries> journal() override {
    journal_entries entries;
    persistence::apply(data_dispatcher::course_writer{}.to_writes({}), entries);
    return entries;
  }

  static constexpr snapshot_name name{{30}, {0}};
  int late = 0; ///< answers to the second part
  std::map<std::uint64_t, int> asked{};

private:
  std::string bytes_;
};

class archiver_test : public testing::Test, protected test::small_archives {
protected:
  archiver_test() {
    *record.add_revisions() = test::parse(test::minimal_spec).value();
    EXPECT_TRUE(write_record(folder.path(), record));
  }
  /// Until this event comes, or one fails. @param on_archived called as soon as there is one
  void archive_until(
      const std::string& last, std::unique_ptr<one_snapshot> from,
      const std::function<void()>& on_archived = [] {}) {
    std::mutex mutex;
    std::condition_variable changed;
    archiver made{{.run_dir = folder.path(),
                   .folder = archives,
                   .every = std::chrono::milliseconds(10),
                   .tell =
                       [&](const protocol::job_event& event) {
                         if (event.event == "archived") on_archived();
                         const std::lock_guard lock{mutex};
                         events.push_back(event.event);
                         changed.notify_all();
                       }},
                  std::move(from)};
    std::unique_lock lock{mutex};
    const auto is_over = [&] {
      return std::ranges::any_of(events,
                                 [&](const auto& one) { return one == last || one == "archive-failed"; });
    };
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::minutes(2), is_over));
    lock.unlock();
    view = made.view();
  }

  std::vector<std::string> events;
  agent::archive_view view;
};

TEST_F(archiver_test, a_part_whose_answer_is_late_is_asked_for_again_and_the_others_are_kept) {
  auto source = std::make_unique<one_snapshot>(snapshot(30));
  source->late = 2;
  auto& asked = source->asked;
  std::map<std::uint64_t, int> seen;
  archive_until("archived", std::move(source), [&] { seen = asked; });
  EXPECT_THAT(events, ElementsAre("archived"));
  EXPECT_EQ(seen.at(0), 1) << "the copy did not begin anew";
  EXPECT_EQ(seen.at(part_bytes), 3);
  const auto found = find_whole_archive(archives);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->record.version(), 30U);
}

TEST_F(archiver_test, an_older_archive_that_cannot_be_removed_is_told_and_the_new_one_counts) {
  for (const std::uint64_t version : {10, 20}) ASSERT_TRUE(archive(version, snapshot(version)));
  const auto oldest = all().back();
  archive_until("archive-stays", std::make_unique<one_snapshot>(snapshot(30)), [&] {
    std::filesystem::create_directories(oldest.string() + ".part/in the way"); // of its removal
  });
  EXPECT_THAT(events, ElementsAre("archived", "archive-stays"));
  EXPECT_EQ(view.failure, "");
  EXPECT_EQ(view.step, 30U);
}

} // namespace
} // namespace dlrun::runtime
