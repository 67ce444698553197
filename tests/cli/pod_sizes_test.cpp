// How large pods are made, and when they are too small.
#include "cli/pod_sizes.hpp"

#include "tests/job/spec_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::uint64_t mib = 1 << 20, gib = 1 << 30;

TEST(pod_sizes, are_powers_of_1024) {
  EXPECT_EQ(size_bytes("3Ki"), 3U << 10);
  EXPECT_EQ(size_bytes("512Mi"), 512 * mib);
  EXPECT_EQ(size_bytes("4Gi"), 4 * gib);
  EXPECT_EQ(size_bytes("2Ti"), 2048 * gib);
  EXPECT_EQ(size_bytes("4G"), std::nullopt);
  EXPECT_EQ(size_bytes("999999999999Ti"), std::numeric_limits<std::uint64_t>::max())
      << "more than there can be";
}

TEST(pod_sizes, are_rounded_up) {
  EXPECT_EQ(memory_text(0), "64Mi");
  EXPECT_EQ(memory_text(65 * mib), "128Mi");
  EXPECT_EQ(memory_text(gib - 1), "1Gi");
  EXPECT_EQ(memory_text(gib), "1Gi");
  EXPECT_EQ(memory_text(gib + 1), "1088Mi");
  EXPECT_EQ(disk_text(1), "256Mi");
  EXPECT_EQ(disk_text(gib + 1), "1280Mi");
  for (const std::uint64_t bytes : {std::uint64_t{1}, 77 * mib, 3 * gib, 3 * gib + 5})
    EXPECT_GE(size_bytes(memory_text(bytes)).value(), bytes);
}

class pods_of_a_job : public testing::Test {
protected:
  result<void> settle(const std::vector<std::string>& overrides = {}) {
    const auto spec = test::parse(test::minimal_spec, overrides);
    if (!spec) return tl::unexpected(spec.error());
    return settle_sizes(*spec, wanted);
  }
  std::string problem(const std::vector<std::string>& overrides = {}) {
    const auto settled = settle(overrides);
    if (settled) return "";
    EXPECT_EQ(settled.error().code, error_code::bad_usage);
    return settled.error().message;
  }

  pods_wish wanted{.name = {}, .name_space = {}, .image = {}, .job_file = {}};
};

TEST_F(pods_of_a_job, have_a_gibibyte_for_data_where_nobody_says_how_much_there_is) {
  EXPECT_EQ(problem(), "");
  EXPECT_EQ(wanted.data_bytes_max, gib);
  EXPECT_GT(size_bytes(wanted.memory).value(), gib);
  EXPECT_GT(size_bytes(wanted.disk).value(), 0U);
}

TEST_F(pods_of_a_job, have_what_the_job_says_for_data) {
  EXPECT_EQ(problem({"data.memory_limit=8GiB"}), "");
  EXPECT_EQ(wanted.data_bytes_max, 0U) << "it is in the job file";
  EXPECT_GT(size_bytes(wanted.memory).value(), 8 * gib);
}

TEST_F(pods_of_a_job, have_for_data_what_is_left_of_their_memory) {
  EXPECT_EQ(problem(), "");
  const auto rest = size_bytes(wanted.memory).value() - gib;
  wanted.memory = "9Gi";
  EXPECT_EQ(problem(), "");
  EXPECT_EQ(wanted.memory, "9Gi");
  EXPECT_LE(wanted.data_bytes_max, 9 * gib - (rest - 64 * mib));
  EXPECT_GE(wanted.data_bytes_max, 9 * gib - rest);
}

TEST_F(pods_of_a_job, for_ps_shards_have_all_of_the_data_too_and_bound_it_for_all) {
  wanted.ps_hosts = 1;
  wanted.memory = "9Gi";
  EXPECT_EQ(problem(), "");
  EXPECT_GT(wanted.data_bytes_max, 8 * gib);
  EXPECT_GT(size_bytes(wanted.ps_memory).value(), wanted.data_bytes_max);
  for (const auto* smaller : {"2Gi", "9Gi"}) {
    wanted.ps_memory = smaller;
    EXPECT_EQ(problem(), "") << smaller;
    EXPECT_LT(wanted.data_bytes_max, size_bytes(smaller).value());
  }
  wanted.ps_memory = "2Gi";
  EXPECT_EQ(problem(), "");
  EXPECT_GT(wanted.data_bytes_max, gib);
  EXPECT_THAT(problem({"data.memory_limit=3GiB"}), HasSubstr("--ps-memory 2Gi: a pod of this job needs "));
  wanted.ps_memory = "64Mi";
  EXPECT_THAT(problem(), HasSubstr("--ps-memory 64Mi: a pod of this job needs "));
}

TEST_F(pods_of_a_job, are_refused_when_they_have_too_little_memory) {
  wanted.memory = "64Mi";
  const auto said = problem();
  EXPECT_THAT(said, AllOf(HasSubstr("--memory 64Mi: a pod of this job needs "), HasSubstr(" MiB for "),
                          HasSubstr("--hosts"), HasSubstr("data.memory_limit"),
                          HasSubstr("dlrun validate FILE --kubernetes")));
  const auto begin = said.find("name --memory ") + 14;
  wanted.memory = said.substr(begin, said.find(' ', begin) - begin);
  EXPECT_EQ(problem(), "") << wanted.memory << " is what was said to be enough";
  wanted.memory = "4Gi";
  EXPECT_EQ(problem(), "");
  EXPECT_THAT(problem({"data.memory_limit=4GiB"}), HasSubstr("4096 MiB for decoded data"));
}

TEST_F(pods_of_a_job, are_refused_when_they_have_too_little_disk) {
  wanted.disk = "1Mi";
  EXPECT_THAT(problem(), AllOf(HasSubstr("--disk 1Mi: a pod of this job needs "),
                               HasSubstr("logs of steps of 2 stores"), HasSubstr("durability.disk_quota")));
  wanted.disk = "256Mi";
  EXPECT_THAT(problem(), HasSubstr("--disk 256Mi"));
  EXPECT_EQ(problem({"durability.disk_quota=100MiB"}), "");
  EXPECT_EQ(problem({"durability.log=snapshots"}), "");
}

TEST_F(pods_of_a_job, have_a_quota_of_their_disk_where_the_job_names_none) {
  wanted.disk = "10Gi";
  EXPECT_EQ(problem({"durability.disk_quota=0"}), "");
  EXPECT_EQ(wanted.disk_quota, 8 * gib);
  EXPECT_EQ(problem({"durability.disk_quota=3GiB"}), "");
  EXPECT_EQ(wanted.disk_quota, 0U) << "it is in the job file";
  wanted.disk.clear();
  EXPECT_EQ(problem(), "");
  const auto disk = size_bytes(wanted.disk).value();
  EXPECT_LE(wanted.disk_quota, disk - disk / 5);
  EXPECT_GT(wanted.disk_quota, 0U);
}

TEST_F(pods_of_a_job, have_room_for_the_quota_of_the_job_or_are_refused) {
  EXPECT_EQ(problem({"durability.disk_quota=3GiB"}), "");
  EXPECT_EQ(wanted.disk, "3328Mi") << "the quota, and 64 MiB of the run folder";
  for (const auto* log : {"durability.log=every_step", "durability.log=snapshots"}) {
    wanted.disk = "3Gi";
    EXPECT_THAT(problem({log, "durability.disk_quota=3GiB"}),
                AllOf(HasSubstr("--disk 3Gi: durability.disk_quota: 3GiB has no room"),
                      HasSubstr("takes 3136 MiB"), HasSubstr("name --disk 3328Mi or more")));
    wanted.disk = "3136Mi";
    EXPECT_EQ(problem({log, "durability.disk_quota=3GiB"}), "");
  }
}

TEST_F(pods_of_a_job, need_less_each_when_there_are_more) {
  EXPECT_EQ(problem({"cluster.workers=16"}), "");
  const auto two = size_bytes(wanted.memory).value();
  wanted.memory.clear();
  wanted.hosts_min = 9;
  EXPECT_EQ(problem({"cluster.workers=16"}), "");
  EXPECT_LT(size_bytes(wanted.memory).value(), two);
}

TEST(pods_table, has_all_rows_and_their_sum) {
  const auto text =
      table_of({.memory = {{"data", 3 * mib}, {"processes", 5 * mib / 2}}, .disk = {{"log", gib}}});
  EXPECT_THAT(text, AllOf(HasSubstr("memory of a pod, MiB\n"), HasSubstr("data "), HasSubstr(" 3.0\n"),
                          HasSubstr(" 5.5\n"), HasSubstr("disk of a pod, MiB\n"), HasSubstr(" 1024.0\n")));
}

} // namespace
} // namespace dlrun::cli
