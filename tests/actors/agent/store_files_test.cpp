#include "actors/agent/store_files.hpp"

#include "tests/data/files.hpp"

#include <gtest/gtest.h>
#include <sstream>

namespace dlrun::agent {
namespace {

namespace fs = std::filesystem;
using protocol::store_part_bytes_max;
using protocol::store_part_wanted;
using protocol::stored_file;

std::string content_of(const fs::path& file) {
  std::ostringstream all;
  all << std::ifstream(file, std::ios::binary).rdbuf();
  return all.str();
}

/// Bytes that tell where they are.
std::string some_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
  return bytes;
}

class store_files_test : public testing::Test {
protected:
  store_files_test() {
    fs::create_directories(there / "log");
    fs::create_directories(there / "segments");
    fs::create_directories(there / "snapshots");
    write(there / "FORMAT", "1");
    write(there / "log" / "LOCK", "");
    write(there / "snapshots" / "7.snap", some_bytes(std::size_t{3} * store_part_bytes_max + 5));
  }
  static void write(const fs::path& file, const std::string& content) {
    std::ofstream(file, std::ios::binary) << content;
  }
  /// Brings it whole, the last parts first.
  void bring(store_intake& intake) const {
    std::vector<store_part_wanted> wanted;
    while (const auto one = intake.next()) wanted.push_back(*one);
    for (auto one = wanted.rbegin(); one != wanted.rend(); ++one) {
      EXPECT_FALSE(intake.is_whole());
      const auto bytes = read_store_part(there, *one);
      ASSERT_TRUE(bytes) << bytes.error().message;
      const auto kept = intake.add(*one, *bytes);
      ASSERT_TRUE(kept) << kept.error().message;
    }
  }

  test::temporary_folder folder;
  fs::path there = folder.path() / "there";
  fs::path here = folder.path() / "ps_shard-3";
};

TEST_F(store_files_test, lists_all_files_with_their_sizes_and_all_folders) {
  const auto files = list_store(there);
  ASSERT_TRUE(files) << files.error().message;
  EXPECT_EQ(*files,
            (std::vector<stored_file>{{"FORMAT", 1},
                                      {"log", 0, true},
                                      {"log/LOCK", 0},
                                      {"segments", 0, true},
                                      {"snapshots", 0, true},
                                      {"snapshots/7.snap", std::uint64_t{3} * store_part_bytes_max + 5}}));
}

TEST_F(store_files_test, a_store_that_is_not_there_is_named) {
  const auto files = list_store(folder.path() / "none");
  ASSERT_FALSE(files);
  EXPECT_NE(files.error().message.find("none"), std::string::npos);
}

TEST_F(store_files_test, more_files_than_a_message_has_room_for_are_refused) {
  const std::string long_name(200, 'x');
  for (int i = 0; i < 300; ++i) write(there / (long_name + std::to_string(i)), "");
  const auto files = list_store(there);
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().code, error_code::limit_exceeded);
}

TEST_F(store_files_test, gives_just_the_bytes_that_are_wanted_or_none) {
  EXPECT_EQ(*read_store_part(there, {{3}, "snapshots/7.snap", 10, 4}), some_bytes(14).substr(10));
  EXPECT_FALSE(read_store_part(there, {{3}, "snapshots/7.snap", 4 * store_part_bytes_max, 4}));
  EXPECT_FALSE(read_store_part(there, {{3}, "snapshots/7.snap", 0, store_part_bytes_max + 1}));
  EXPECT_FALSE(read_store_part(there, {{3}, "snapshots/8.snap", 0, 1}));
}

TEST_F(store_files_test, nothing_outside_the_store_is_read_or_written) {
  write(folder.path() / "secret", "secret");
  fs::create_symlink(folder.path() / "secret", there / "link");
  for (const auto* path :
       {"../secret", "log/../../secret", "/etc/hostname", "", ".", "..", "log/", "./FORMAT", "link"})
    EXPECT_FALSE(read_store_part(there, {{3}, path, 0, 1})) << path;
  for (const auto* path : {"../secret", "log/../../secret", "/tmp/file", "", ".", "..", "log/"})
    for (const bool is_folder : {false, true})
      EXPECT_FALSE(store_intake::begin(here, {3}, {{path, 1, is_folder}})) << path;
  EXPECT_EQ(content_of(folder.path() / "secret"), "secret");
}

TEST_F(store_files_test, a_store_comes_in_any_order_and_takes_the_place_of_an_older_one) {
  fs::create_directories(here / "log");
  write(here / "old", "old");
  auto intake = store_intake::begin(here, {3}, *list_store(there));
  ASSERT_TRUE(intake) << intake.error().message;
  bring(*intake);
  EXPECT_TRUE(intake->is_whole());
  EXPECT_TRUE(fs::exists(here / "old")) << "the older one stays until then";
  const auto placed = intake->finish();
  ASSERT_TRUE(placed) << placed.error().message;
  EXPECT_EQ(*list_store(here), *list_store(there));
  EXPECT_EQ(content_of(here / "snapshots" / "7.snap"), content_of(there / "snapshots" / "7.snap"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 2) << "nothing else is left";
}

TEST_F(store_files_test, what_an_earlier_one_left_is_no_part_of_it) {
  fs::create_directories(here.string() + ".part/log");
  write(here.string() + ".part/log/000009.log", "of another time");
  auto intake = store_intake::begin(here, {3}, *list_store(there));
  ASSERT_TRUE(intake) << intake.error().message;
  bring(*intake);
  ASSERT_TRUE(intake->finish());
  EXPECT_EQ(*list_store(here), *list_store(there));
}

TEST_F(store_files_test, a_store_that_is_set_aside_is_there_again_where_no_newer_one_came) {
  ASSERT_TRUE(set_store_aside(here)) << "none is there";
  fs::create_directories(here);
  write(here / "FORMAT", "old");
  ASSERT_TRUE(set_store_aside(here));
  EXPECT_FALSE(fs::exists(here));
  ASSERT_TRUE(set_store_aside(here)) << "again, as an order is repeated";
  EXPECT_EQ(take_store_back(here), true);
  EXPECT_EQ(content_of(here / "FORMAT"), "old");
  EXPECT_EQ(take_store_back(here), false) << "it is there";
  ASSERT_TRUE(set_store_aside(here));
  fs::create_directories(here);
  write(here / "FORMAT", "newer");
  ASSERT_TRUE(set_store_aside(here));
  EXPECT_EQ(take_store_back(here), true);
  EXPECT_EQ(content_of(here / "FORMAT"), "newer");
  EXPECT_EQ(take_store_back(here), false) << "of those that were set aside the newest is kept";
}

TEST_F(store_files_test, what_cannot_be_looked_at_is_not_taken_for_nothing) {
  fs::create_directory_symlink(here, here); // leads to itself
  EXPECT_EQ(set_store_aside(here).error().code, error_code::system);
  EXPECT_EQ(take_store_back(here).error().code, error_code::system);
  fs::remove(here);
  fs::create_directories(here);
  fs::create_symlink(here / "part", here / "part");
  const auto listed = list_store(here);
  ASSERT_FALSE(listed) << "it would be brought without a part";
  EXPECT_EQ(listed.error().code, error_code::bad_usage);
}

TEST_F(store_files_test, one_that_is_discarded_leaves_the_older_one) {
  fs::create_directories(here);
  write(here / "old", "old");
  auto intake = store_intake::begin(here, {3}, *list_store(there));
  ASSERT_TRUE(intake);
  const auto wanted = intake->next();
  ASSERT_TRUE(wanted);
  EXPECT_FALSE(intake->add(*wanted, "too many bytes"));
  intake->discard();
  EXPECT_EQ(content_of(here / "old"), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 2);
}

} // namespace
} // namespace dlrun::agent
