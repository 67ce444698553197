// What an archive has of the journal, and what a run begins with that goes on from it (R45).
#include "runtime/archive_content.hpp"

#include "actors/data_dispatcher/course_journal.hpp"
#include "persistence/journal.hpp"
#include "proto/journal_records.pb.h"

#include <gmock/gmock.h>

namespace dlrun::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const snapshot_name at_10{{10}, {0}}, at_20{{20}, {0}}, at_25{{25}, {0}}, at_25_again{{25}, {1}};

class archive_content_test : public testing::Test {
protected:
  void evaluate(std::uint64_t version) {
    protocol::evaluated one;
    one.version = {version};
    course.evaluations.push_back(one);
  }
  journal_entries journal() const {
    journal_entries entries;
    persistence::apply(data_dispatcher::course_writer{}.to_writes(course), entries);
    records::JournalRole role;
    role.set_kind(static_cast<std::uint32_t>(protocol::role_kind::ps_shard));
    role.set_last_issued(9);
    entries["role/ps_shard 0"] = role.SerializeAsString();
    role.set_kind(static_cast<std::uint32_t>(protocol::role_kind::coordinator));
    role.set_last_issued(4);
    entries["role/coordinator 0"] = role.SerializeAsString();
    entries["store/000000"] = "of a store that is lost";
    entries["outcome"] = records::JournalOutcome{}.SerializeAsString();
    entries["run/000000000004"] = records::JournalRun{}.SerializeAsString();
    return entries;
  }
  records::ArchiveRecord record_of(const archived_journal& archived) const {
    records::ArchiveRecord record;
    record.set_version(25);
    record.set_coordinator(archived.coordinator);
    record.set_opener(archived.opener);
    for (const auto& [key, value] : archived.entries) (*record.mutable_journal())[key] = value;
    return record;
  }

  data_dispatcher::journaled_course course;
  std::set<version_id> due{{10}, {20}, {30}};
};

TEST_F(archive_content_test, the_newest_version_of_all_is_chosen_and_what_evaluations_need) {
  const stored_snapshots first{{at_10, 1}, {{{15}, {0}}, 1}, {at_20, 1}, {at_25, 1}, {{{28}, {0}}, 1}};
  const stored_snapshots second{{at_10, 1}, {{{15}, {0}}, 1}, {at_20, 1}, {at_25, 1}};
  EXPECT_THAT(choose_archived({first, second}, due), ElementsAre(at_10, at_20, at_25));
  EXPECT_THAT(choose_archived({first, {}}, due), IsEmpty());
  EXPECT_THAT(choose_archived({}, due), IsEmpty());
  EXPECT_THAT(choose_archived({{{at_25, 1}, {at_25_again, 1}}}, due), ElementsAre(at_25_again));
}

TEST_F(archive_content_test, names_of_other_files_are_none) {
  EXPECT_EQ(snapshot_named("25-1.snap"), at_25_again);
  for (const auto* name : {"25-1.snap.tmp", "25-1", "25.snap", "-1-1.snap", "025-1.snap", "", "25-1.snapx"})
    EXPECT_EQ(snapshot_named(name), std::nullopt) << name;
}

TEST_F(archive_content_test, later_results_are_left_out_and_what_is_of_stores_and_starts) {
  for (const std::uint64_t version : {10, 20, 30}) evaluate(version);
  const auto made = archive_journal(journal(), {at_25}, due);
  ASSERT_TRUE(made) << made.error().message;
  const auto kept = data_dispatcher::read_course(made->entries);
  ASSERT_TRUE(kept);
  ASSERT_EQ(kept->evaluations.size(), 2U);
  EXPECT_EQ(kept->evaluations.back().version, version_id{20});
  EXPECT_EQ(made->opener, 9U);
  EXPECT_EQ(made->coordinator, 4U);
  EXPECT_TRUE(made->entries.contains("run/000000000004"));
  for (const auto* key : {"role/ps_shard 0", "store/000000", "outcome"})
    EXPECT_FALSE(made->entries.contains(key)) << key;
}

TEST_F(archive_content_test, no_archive_is_made_without_what_is_to_be_evaluated) {
  evaluate(10);
  const auto lacking = archive_journal(journal(), {at_25}, due);
  ASSERT_FALSE(lacking);
  EXPECT_THAT(lacking.error().message, HasSubstr("version 20 is not evaluated"));
  EXPECT_TRUE(archive_journal(journal(), {at_20, at_25}, due));
}

TEST_F(archive_content_test, no_archive_is_made_of_a_timeline_that_was_left_or_that_nobody_knows) {
  due.clear();
  EXPECT_FALSE(archive_journal(journal(), {at_25_again}, due)) << "not journaled yet";
  course.history.push_back({{1}, {20}, 0, {}});
  EXPECT_FALSE(archive_journal(journal(), {at_25}, due));
  EXPECT_TRUE(archive_journal(journal(), {at_20, at_25_again}, due));
  course.history.back().branch = {25};
  EXPECT_TRUE(archive_journal(journal(), {at_25}, due));
}

TEST_F(archive_content_test, a_run_that_goes_on_is_beyond_all_that_was_issued) {
  course.history.push_back({{1}, {25}, 2, {{{3}, {1}, 0}}});
  course.parked = {{{3}, {1}, 0}};
  const auto archived = archive_journal(journal(), {at_25}, {});
  ASSERT_TRUE(archived);
  const auto made = continue_from(record_of(*archived), 31);
  ASSERT_TRUE(made);
  ASSERT_EQ(made->history.size(), 3U);
  EXPECT_EQ(made->history.back(), (protocol::timeline_entry{{1001}, {25}, 2, {}}));
  const auto begun = data_dispatcher::read_course(made->journal);
  ASSERT_TRUE(begun);
  EXPECT_EQ(begun->history, made->history);
  EXPECT_EQ(begun->parked, course.parked);
  EXPECT_GT(made->opener.value, std::uint64_t{1} << 32);
  EXPECT_GT(made->coordinator.value, std::uint64_t{1} << 32);
  records::JournalRewind rewind;
  ASSERT_TRUE(rewind.ParseFromString(made->journal.at("rewind/000000001001")));
  EXPECT_EQ(rewind.version(), 25U);
  EXPECT_EQ(rewind.steps_redone(), 6U);
  EXPECT_EQ(continue_from(record_of(*archived), 0)->journal.count("rewind/000000001001"), 1U);
}

TEST_F(archive_content_test, entries_that_cannot_be_read_are_damage) {
  auto entries = journal();
  entries["role/ps_shard 0"] = "\xff";
  EXPECT_EQ(archive_journal(entries, {at_25}, {}).error().code, error_code::storage_damaged);
  entries["course"] = "\xff";
  EXPECT_EQ(archive_journal(entries, {at_25}, {}).error().code, error_code::storage_damaged);
}

} // namespace
} // namespace dlrun::runtime
