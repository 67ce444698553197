// Archives as files: whole or not at all, never believed when a byte is another one (R45).
#include "runtime/archive_folder.hpp"

#include "runtime/archive_restoration.hpp"
#include "tests/runtime/small_archives.hpp"

#include <fstream>
#include <gmock/gmock.h>

namespace dlrun::runtime {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class archive_folder_test : public testing::Test, protected test::small_archives {
protected:
  static void flip(const fs::path& file, std::uint64_t at) {
    std::fstream bytes{file, std::ios::in | std::ios::out | std::ios::binary};
    bytes.seekg(static_cast<std::streamoff>(at));
    const auto had = static_cast<char>(bytes.get() ^ 1);
    bytes.seekp(static_cast<std::streamoff>(at));
    bytes.put(had);
  }
};

TEST_F(archive_folder_test, the_newest_two_are_kept) {
  for (std::uint64_t version : {10, 20, 30}) ASSERT_TRUE(archive(version, snapshot(version)));
  ASSERT_THAT(all(), SizeIs(2));
  EXPECT_EQ(all().front().filename(), "000003-0000000000000007");
  const auto found = find_whole_archive(archives);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->record.version(), 30U);
  EXPECT_THAT((*found)->damaged, IsEmpty());
}

TEST_F(archive_folder_test, any_other_byte_is_noticed_and_the_archive_before_is_used) {
  ASSERT_TRUE(archive(10, snapshot(10)));
  ASSERT_TRUE(archive(20, snapshot(20)));
  const auto newest = all().front();
  for (const auto* name : {"archive.record", "ps_shard-0.20-0.snap"}) {
    const auto size = fs::file_size(newest / name);
    for (const auto at : {std::uint64_t{17}, size / 2, size - 1}) {
      flip(newest / name, at);
      const auto found = find_whole_archive(archives);
      ASSERT_TRUE(found && *found) << name << " " << at;
      EXPECT_EQ((*found)->record.version(), 10U) << name << " " << at;
      ASSERT_THAT((*found)->damaged, SizeIs(1));
      EXPECT_THAT((*found)->damaged.front(), HasSubstr(name));
      flip(newest / name, at);
    }
  }
  fs::resize_file(newest / "ps_shard-0.20-0.snap", 5);
  EXPECT_EQ((*find_whole_archive(archives))->record.version(), 10U);
  fs::remove(all().back() / "archive.record");
  const auto none = find_whole_archive(archives);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, error_code::storage_damaged);
}

TEST_F(archive_folder_test, what_cannot_be_read_is_not_called_damaged_and_no_older_archive_is_used) {
  ASSERT_TRUE(archive(10, snapshot(10)));
  ASSERT_TRUE(archive(20, snapshot(20)));
  const auto newest = all().front();
  const auto about = read_archive_record(newest);
  ASSERT_TRUE(about);
  const auto replace = [&](const fs::path& file, const fs::path& target) {
    fs::remove(file);
    fs::create_symlink(target, file);
  };
  const auto expect_refused = [&](const char* words) {
    const auto found = find_whole_archive(archives);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, error_code::system);
    EXPECT_THAT(found.error().message, AllOf(HasSubstr(newest.string()), HasSubstr(words)));
  };
  replace(newest / "ps_shard-0.20-0.snap", "ps_shard-0.20-0.snap"); // leads to itself
  expect_refused("Too many levels of symbolic links");
  replace(newest / "ps_shard-0.20-0.snap", "/proc/self/mem"); // can be opened, not read
  const auto read = check_archived_snapshots(newest, *about);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, error_code::system) << read.error().message;
  replace(newest / "archive.record", "/proc/self/mem");
  expect_refused("Input/output error");
}

TEST_F(archive_folder_test, what_is_no_snapshot_is_not_archived_and_leaves_nothing) {
  auto bytes = snapshot(10);
  bytes[bytes.size() / 2] ^= 1;
  const auto done = archive(10, bytes);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, error_code::storage_damaged);
  EXPECT_EQ(archive(11, snapshot(10)).error().code, error_code::storage_damaged) << "of another version";
  EXPECT_TRUE(fs::is_empty(archives));
}

TEST_F(archive_folder_test, what_a_root_left_unfinished_is_none_and_goes) {
  ASSERT_TRUE(archive(10, snapshot(10)));
  fs::copy(all().front(), archives / "000002-0000000000000007.part");
  EXPECT_THAT(all(), SizeIs(1));
  fs::create_directory(archives / "000002-0000000000000008.part");
  ASSERT_TRUE(archive(20, snapshot(20)));
  EXPECT_FALSE(fs::exists(archives / "000002-0000000000000007.part"));
  EXPECT_TRUE(fs::exists(archives / "000002-0000000000000008.part")) << "of another run";
}

TEST_F(archive_folder_test, what_is_unfinished_goes_without_another_archive) {
  ASSERT_TRUE(archive(10, snapshot(10)));
  record.add_earlier_runs(6);
  for (const auto* name : {"000002-0000000000000007.part", "000003-0000000000000006.part", "notes.part"})
    fs::create_directory(archives / name);
  ASSERT_TRUE(remove_unfinished_archives(archives, record));
  EXPECT_THAT(all(), SizeIs(1));
  EXPECT_FALSE(fs::exists(archives / "000002-0000000000000007.part"));
  EXPECT_FALSE(fs::exists(archives / "000003-0000000000000006.part")) << "of the run that it goes on from";
  EXPECT_TRUE(fs::exists(archives / "notes.part")) << "nobody's archive";
  EXPECT_TRUE(remove_unfinished_archives(folder.path() / "none", record)) << "nothing was made yet";
}

TEST_F(archive_folder_test, a_run_that_goes_on_takes_the_folder_over_and_the_lost_one_makes_no_more) {
  ASSERT_TRUE(archive(10, snapshot(10)));
  auto lost = record;
  record.set_run(8);
  record.add_earlier_runs(7);
  for (std::uint64_t version : {20, 30}) ASSERT_TRUE(archive(version, snapshot(version)));
  EXPECT_THAT(all(), SizeIs(2)) << "that of the lost run has gone";
  record = lost;
  const auto refused = archive(40, snapshot(40));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("is of another run"));
  EXPECT_THAT(all(), SizeIs(2));
}

TEST_F(archive_folder_test, another_format_is_refused_and_nothing_older_is_taken_for_it) {
  ASSERT_TRUE(archive(10, snapshot(10)));
  ASSERT_TRUE(archive(20, snapshot(20)));
  std::fstream file{all().front() / "archive.record", std::ios::in | std::ios::out};
  file << "dlrun-archive 2 ";
  file.close();
  const auto found = find_whole_archive(archives);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, error_code::bad_usage);
  EXPECT_THAT(found.error().message, HasSubstr("format 2, and this dlrun reads format 1"));
}

TEST_F(archive_folder_test, the_step_that_was_reached_is_read_back) {
  fs::create_directories(archives);
  EXPECT_EQ(step_reached(archives, 7), 0U);
  ASSERT_TRUE(note_step_reached(archives, 7, 12));
  ASSERT_TRUE(note_step_reached(archives, 7, 1200));
  EXPECT_EQ(step_reached(archives, 7), 1200U);
  EXPECT_THAT(all(), IsEmpty());
}

} // namespace
} // namespace dlrun::runtime
