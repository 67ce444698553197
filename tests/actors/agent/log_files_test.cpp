#include "actors/agent/log_files.hpp"

#include "tests/data/files.hpp"

#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <sys/stat.h>

namespace dlrun::agent {
namespace {

namespace fs = std::filesystem;
using protocol::kept_log;
using protocol::log_part_bytes_max;
using protocol::role_kind;
using protocol::role_name;

constexpr role_name worker_1{role_kind::worker, 1};

std::string text_of(const fs::path& file) {
  std::ostringstream all;
  all << std::ifstream(file, std::ios::binary).rdbuf();
  return all.str();
}

class log_files_test : public testing::Test {
protected:
  log_files_test() { fs::create_directories(there / "logs"); }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(there / "logs" / name, std::ios::binary) << content;
  }
  /// Its last parts first.
  void bring(log_intake& intake) const {
    std::vector<protocol::log_part_wanted> wanted;
    while (const auto one = intake.next()) wanted.push_back(*one);
    for (auto one = wanted.rbegin(); one != wanted.rend(); ++one) {
      const auto bytes = read_log_part(there, *one);
      ASSERT_TRUE(bytes) << bytes.error().message;
      const auto kept = intake.add(*one, *bytes);
      ASSERT_TRUE(kept) << kept.error().message;
    }
    EXPECT_TRUE(intake.is_whole());
    ASSERT_TRUE(intake.finish());
  }
  std::size_t files_in_copies() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(copies), {}));
  }

  test::temporary_folder folder;
  fs::path there = folder.path() / "there";
  fs::path copies = copied_logs(folder.path() / "run", "beta");
};

TEST_F(log_files_test, a_log_is_known_by_its_name_alone) {
  EXPECT_EQ(role_of_log("/run/logs/worker-1.log"), worker_1);
  EXPECT_EQ(role_of_log("ps_shard-12.log"), (role_name{role_kind::ps_shard, 12}));
  EXPECT_EQ(role_of_log("host_agent-2.log"), (role_name{role_kind::host_agent, 2}));
  for (const auto* name :
       {"worker-1", "worker-.log", "worker-01.log", "worker--1.log", "worker-1x.log", "host-beta.log",
        "unknown-1.log", "worker-4294967296.log", "-1.log", ".log", "worker-1.log.part"})
    EXPECT_FALSE(role_of_log(name)) << name;
}

TEST_F(log_files_test, lists_the_logs_of_roles_with_their_sizes) {
  write("worker-1.log", "12345");
  write("worker-0.log", "");
  write("coordinator-0.log", "1");
  write("host-beta.log", "of another");
  fs::create_directories(there / "logs" / "worker-7.log");
  fs::create_symlink("/etc/hostname", there / "logs" / "worker-8.log");
  const auto logs = list_logs(there);
  ASSERT_TRUE(logs) << logs.error().message;
  EXPECT_EQ(*logs, (std::vector<kept_log>{
                       {{role_kind::coordinator, 0}, 1}, {{role_kind::worker, 0}, 0}, {worker_1, 5}}));
  EXPECT_FALSE(list_logs(folder.path() / "none"));
}

TEST_F(log_files_test, gives_the_bytes_that_are_there_and_none_behind_them) {
  write("worker-1.log", "0123456789");
  EXPECT_EQ(*read_log_part(there, {worker_1, 3, 4}), "3456");
  EXPECT_EQ(*read_log_part(there, {worker_1, 8, log_part_bytes_max}), "89");
  EXPECT_EQ(*read_log_part(there, {worker_1, 10, 1}), "");
  EXPECT_EQ(*read_log_part(there, {worker_1, 1'000'000, 1}), "");
  EXPECT_EQ(read_log_part(there, {worker_1, 0, log_part_bytes_max + 1}).error().code,
            error_code::limit_exceeded);
  EXPECT_FALSE(read_log_part(there, {worker_1, UINT64_MAX, 1}));
  EXPECT_FALSE(read_log_part(there, {{role_kind::worker, 2}, 0, 1}));
  EXPECT_FALSE(read_log_part(there, {{static_cast<role_kind>(77), 1}, 0, 1}));
}

TEST_F(log_files_test, what_is_no_file_is_not_read) {
  fs::create_symlink("/etc/hostname", there / "logs" / "worker-1.log");
  EXPECT_FALSE(read_log_part(there, {worker_1, 0, 1}));
  ASSERT_EQ(::mkfifo((there / "logs" / "worker-2.log").c_str(), 0600), 0);
  EXPECT_FALSE(read_log_part(there, {{role_kind::worker, 2}, 0, 1})) << "it would block";
}

TEST_F(log_files_test, a_copy_comes_in_any_order_and_takes_the_place_of_an_older_one) {
  std::string text;
  for (int i = 0; text.size() < 3 * log_part_bytes_max; ++i) text += "line " + std::to_string(i) + "\n";
  write("worker-1.log", text);
  fs::create_directories(copies);
  std::ofstream(copies / "worker-1.log") << "of before";
  auto intake = log_intake::begin(copies, {worker_1, text.size()}, there);
  ASSERT_TRUE(intake) << intake.error().message;
  EXPECT_EQ(text_of(copies / "worker-1.log"), "of before") << "until it is whole";
  bring(*intake);
  EXPECT_EQ(text_of(copies / "worker-1.log"), text);
  EXPECT_EQ(files_in_copies(), 1U);
}

TEST_F(log_files_test, of_a_long_log_the_newest_bytes_are_copied_and_how_many_are_left_out_is_said) {
  const std::string text(copied_log_bytes_max, 'x');
  write("worker-1.log", "0123456789" + text);
  auto intake = log_intake::begin(copies, {worker_1, 10 + text.size()}, there);
  ASSERT_TRUE(intake) << intake.error().message;
  bring(*intake);
  const auto copy = text_of(copies / "worker-1.log");
  const auto first = copy.substr(0, copy.find('\n'));
  EXPECT_EQ(left_out_bytes(first), 10U) << first;
  EXPECT_NE(first.find((there / "logs" / "worker-1.log").string()), std::string::npos) << first;
  EXPECT_EQ(copy.substr(first.size() + 1), text);
}

TEST_F(log_files_test, no_other_line_says_that_bytes_are_left_out) {
  EXPECT_EQ(left_out_bytes(left_out_line(7, "log")), 7U);
  for (const auto* line :
       {"", "... the first ", "... the first x bytes are left out", "... the first 7 bytes",
        "the first 7 bytes are left out", "... the first 99999999999999999999 bytes are left out"})
    EXPECT_FALSE(left_out_bytes(line)) << line;
}

TEST_F(log_files_test, a_copy_that_is_discarded_leaves_the_older_one) {
  fs::create_directories(copies);
  std::ofstream(copies / "worker-1.log") << "of before";
  auto intake = log_intake::begin(copies, {worker_1, 5}, there);
  ASSERT_TRUE(intake);
  const auto wanted = intake->next();
  ASSERT_TRUE(wanted);
  EXPECT_FALSE(intake->add(*wanted, "too many bytes"));
  intake->discard();
  EXPECT_EQ(text_of(copies / "worker-1.log"), "of before");
  EXPECT_EQ(files_in_copies(), 1U);
}

TEST_F(log_files_test, a_listing_that_no_host_sends_takes_nothing) {
  EXPECT_FALSE(log_intake::begin(copies, {{static_cast<role_kind>(77), 1}, 5}, there));
  auto endless = log_intake::begin(copies, {worker_1, UINT64_MAX}, there);
  ASSERT_TRUE(endless);
  const auto wanted = endless->next();
  ASSERT_TRUE(wanted);
  EXPECT_EQ(wanted->size, log_part_bytes_max);
  EXPECT_FALSE(read_log_part(there, *wanted));
}

} // namespace
} // namespace dlrun::agent
