#include "persistence/folder_journal.hpp"

#include "tests/data/files.hpp"
#include "tests/persistence/damage.hpp"
#include "tests/persistence/faulty_file_system.hpp"

#include <gtest/gtest.h>

namespace dlrun::persistence {
namespace {

using entries = std::map<std::string, std::string>;

class folder_journal_test : public ::testing::Test {
protected:
  journal_options options(std::uint64_t owner) const { return {directory, {owner}, files}; }
  static result<void> put(journal& into, const std::string& key, const std::string& value) {
    const journal_write change{key, value};
    return into.write(std::span(&change, 1));
  }
  std::filesystem::path log() const {
    std::filesystem::path found;
    for (const auto& entry : std::filesystem::directory_iterator(directory + "/log"))
      if (entry.path().extension() == ".log") found = entry.path();
    return found;
  }

  test::temporary_folder folder;
  std::string directory = (folder.path() / "journal").string();
  std::shared_ptr<test::faulty_file_system> files = std::make_shared<test::faulty_file_system>(1);
};

TEST_F(folder_journal_test, remembers_what_was_written_and_who_opened_it) {
  {
    const auto first = folder_journal::open(options(1)).value();
    EXPECT_TRUE(first->contents().empty());
    ASSERT_TRUE(put(*first, "a", "1"));
    const std::vector<journal_write> both{
        {"b", std::string("2\0x", 3)}, {"a", std::nullopt}, {"owner", "mine"}};
    ASSERT_TRUE(first->write(both));
    EXPECT_EQ(first->contents(), (entries{{"b", std::string("2\0x", 3)}, {"owner", "mine"}}));
  }
  const auto found = folder_journal::read(directory, files).value();
  EXPECT_EQ(found.owner, incarnation{1});
  EXPECT_EQ(found.entries, (entries{{"b", std::string("2\0x", 3)}, {"owner", "mine"}}));
  const auto second = folder_journal::open(options(2)).value();
  EXPECT_EQ(second->contents(), found.entries);
}

TEST_F(folder_journal_test, refuses_an_owner_that_is_not_above_the_last_one) {
  folder_journal::open(options(3)).value().reset();
  for (const std::uint64_t late : {2, 3}) {
    const auto opened = folder_journal::open(options(late));
    EXPECT_EQ(opened.error().code, error_code::fenced);
    EXPECT_NE(opened.error().message.find("opened by incarnation 3"), std::string::npos);
  }
  EXPECT_TRUE(folder_journal::open(options(4)));
}

/// Whoever goes on takes the number after what it reads, or the first one where there is no journal
/// yet.
TEST_F(folder_journal_test, goes_on_wherever_the_first_opening_was_cut_short) {
  bool whole = false;
  for (std::uint64_t changes = 1; !whole; ++changes) {
    std::filesystem::remove_all(directory);
    files = std::make_shared<test::faulty_file_system>(changes);
    files->cut_power_after(changes);
    whole = bool(folder_journal::open(options(1))) && !files->power_is_cut();
    if (whole) break;
    files->restore_power();
    const auto found = folder_journal::read(directory, files);
    ASSERT_TRUE(found || found.error().code == error_code::bad_usage) << changes << found.error().message;
    const auto next = folder_journal::open(options(found ? found->owner.value + 1 : 1));
    ASSERT_TRUE(next) << "cut at change " << changes << ": " << next.error().message;
    EXPECT_TRUE(next.value()->contents().empty());
  }
}

TEST_F(folder_journal_test, is_refused_to_others_while_an_owner_has_it) {
  const auto owner = folder_journal::open(options(1)).value();
  EXPECT_EQ(folder_journal::open(options(2)).error().code, error_code::in_use);
  EXPECT_EQ(folder_journal::read(directory, files).error().code, error_code::in_use);
}

TEST_F(folder_journal_test, a_look_changes_nothing) {
  {
    const auto owner = folder_journal::open(options(1)).value();
    ASSERT_TRUE(put(*owner, "a", "1"));
  }
  const auto changes = files->changes();
  EXPECT_EQ(folder_journal::read(directory, files)->entries, (entries{{"a", "1"}}));
  EXPECT_EQ(folder_journal::read(directory, files)->entries, (entries{{"a", "1"}}));
  EXPECT_EQ(files->changes(), changes);
  EXPECT_EQ(folder_journal::read(directory + "-none", files).error().code, error_code::bad_usage);
}

TEST_F(folder_journal_test, another_format_is_refused_naming_both) {
  folder_journal::open(options(1)).value().reset();
  std::ofstream(directory + "/FORMAT") << "dlrun-journal 7\n";
  EXPECT_NE(folder_journal::read(directory, files)
                .error()
                .message.find("\"dlrun-journal 7\", this dlrun reads \"dlrun-journal 2\""),
            std::string::npos);
  EXPECT_EQ(folder_journal::open(options(2)).error().code, error_code::storage_damaged);
}

/// An earlier version would take what is written from now on for less than it is.
TEST_F(folder_journal_test, one_of_format_1_is_read_and_becomes_one_of_format_2_when_it_is_opened) {
  ASSERT_TRUE(put(*folder_journal::open(options(1)).value(), "a", "1"));
  std::ofstream(directory + "/FORMAT") << "dlrun-journal 1\n";
  EXPECT_EQ(folder_journal::read(directory, files)->entries, (entries{{"a", "1"}}));
  const auto says = [this] {
    std::ifstream file(directory + "/FORMAT");
    std::string line;
    std::getline(file, line);
    return line;
  };
  EXPECT_EQ(says(), "dlrun-journal 1") << "a look changes nothing";
  EXPECT_EQ(folder_journal::open(options(2)).value()->contents(), (entries{{"a", "1"}}));
  EXPECT_EQ(says(), "dlrun-journal 2");
}

TEST_F(folder_journal_test, of_a_damaged_format_the_message_stays_one_line) {
  folder_journal::open(options(1)).value().reset();
  std::ofstream(directory + "/FORMAT") << "dlrun\rjournal\x7f\xff 1\n";
  const auto message = folder_journal::read(directory, files).error().message;
  EXPECT_NE(message.find(R"("dlrun\rjournal\x7f\xff 1")"), std::string::npos) << message;
}

TEST_F(folder_journal_test, a_write_torn_in_the_middle_is_dropped_and_the_ones_before_are_not) {
  {
    const auto owner = folder_journal::open(options(1)).value();
    ASSERT_TRUE(put(*owner, "a", "1"));
    ASSERT_TRUE(put(*owner, "b", "2"));
  }
  std::filesystem::resize_file(log(), std::filesystem::file_size(log()) - 1);
  EXPECT_EQ(folder_journal::read(directory, files)->entries, (entries{{"a", "1"}}));
  EXPECT_EQ(folder_journal::open(options(2)).value()->contents(), (entries{{"a", "1"}}));
}

TEST_F(folder_journal_test, a_damaged_write_is_an_error_that_names_the_file_and_the_way_out) {
  {
    const auto owner = folder_journal::open(options(1)).value();
    ASSERT_TRUE(put(*owner, "a", "1"));
  }
  test::flip_byte(log(), std::filesystem::file_size(log()) - 1, 1);
  for (const auto& problem :
       {folder_journal::read(directory, files).error(), folder_journal::open(options(2)).error()}) {
    EXPECT_EQ(problem.code, error_code::storage_damaged);
    EXPECT_NE(problem.message.find(log().string()), std::string::npos) << problem.message;
    EXPECT_NE(problem.message.find("restore the folder from a copy"), std::string::npos) << problem.message;
  }
}

TEST_F(folder_journal_test, takes_no_more_writes_after_one_failed) {
  const auto owner = folder_journal::open(options(1)).value();
  ASSERT_TRUE(put(*owner, "a", "1"));
  files->fail(test::faulty_file_system::operation::sync, "/log/");
  EXPECT_EQ(put(*owner, "b", "2").error().code, error_code::system);
  files->fail(test::faulty_file_system::operation::sync, "");
  EXPECT_EQ(put(*owner, "c", "3").error().code, error_code::system);
  EXPECT_EQ(owner->contents(), (entries{{"a", "1"}}));
}

TEST_F(folder_journal_test, an_owner_that_was_fenced_while_it_could_not_open_again_writes_nothing) {
  const auto owner = folder_journal::open(options(1)).value();
  ASSERT_TRUE(put(*owner, "a", "1"));
  files->set_free_bytes(10);
  EXPECT_EQ(put(*owner, "a", std::string(1000, 'x')).error().code, error_code::disk_full);
  files->set_free_bytes(std::nullopt);
  files->fail(test::faulty_file_system::operation::read, "/log/MANIFEST"); // closed, and does not open
  EXPECT_EQ(put(*owner, "a", "2").error().code, error_code::system);
  files->fail(test::faulty_file_system::operation::read, "");
  ASSERT_TRUE(put(*folder_journal::open(options(2)).value(), "a", "3"));
  for (int trial = 0; trial < 3; ++trial) EXPECT_FALSE(put(*owner, "a", "4")) << trial;
  EXPECT_EQ(folder_journal::open(options(3)).value()->contents(), (entries{{"a", "3"}}));
}

TEST_F(folder_journal_test, a_full_disk_is_said_to_be_full) {
  const auto owner = folder_journal::open(options(1)).value();
  files->set_free_bytes(10);
  const auto problem = put(*owner, "a", std::string(1000, 'x')).error();
  EXPECT_EQ(problem.code, error_code::disk_full);
  EXPECT_NE(problem.message.find(directory), std::string::npos);
}

TEST_F(folder_journal_test, goes_on_when_a_full_disk_has_room_again_and_a_power_cut_takes_nothing_of_it) {
  std::uint64_t owners = 0;
  entries expected;
  for (std::uint64_t room = 0; room < 2500; room += 113) {
    SCOPED_TRACE(room);
    {
      const auto owner = folder_journal::open(options(++owners)).value();
      ASSERT_EQ(owner->contents(), expected);
      files->set_free_bytes(room);
      const auto value = std::string(1000, static_cast<char>('a' + owners % 26));
      const auto key = std::to_string(room);
      bool was_full = false;
      for (int write = 0; !was_full; ++write) {
        const auto written = put(*owner, key, value + std::to_string(write));
        was_full = !written;
        if (was_full) {
          ASSERT_EQ(written.error().code, error_code::disk_full) << written.error().message;
        }
        expected[key] = value + std::to_string(write); // a write that found no room is tried again
      }
      const auto again = put(*owner, key, expected[key]); // RocksDB may have made room by itself
      EXPECT_TRUE(again || again.error().code == error_code::disk_full);
      files->set_free_bytes(std::nullopt);
      ASSERT_TRUE(put(*owner, key, expected[key]));
      ASSERT_TRUE(put(*owner, "last", key));
      expected["last"] = key;
      EXPECT_EQ(owner->contents(), expected);
      files->cut_power_after(1);
    }
    files->restore_power();
  }
}

} // namespace
} // namespace dlrun::persistence
