#include "base/own_machine.hpp"

#include "tests/data/files.hpp"

#include <fstream>
#include <gtest/gtest.h>

namespace dlrun::base {
namespace {

class cgroup_memory : public testing::Test {
protected:
  void limit(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((folder.path() / file).parent_path());
    std::ofstream(folder.path() / file) << text << "\n";
  }
  std::optional<std::uint64_t> of(std::string_view cgroups) const {
    const auto found = detail::least_cgroup(detail::memory_bytes, cgroups, folder.path());
    return found ? std::optional{found->limit} : std::nullopt;
  }

  test::temporary_folder folder;
};

TEST_F(cgroup_memory, is_the_least_that_one_of_v2_or_one_around_it_allows) {
  limit("slice/memory.max", "4000");
  limit("slice/job/memory.max", "max");
  EXPECT_EQ(of("0::/slice/job\n"), 4000U);
  limit("slice/job/memory.max", "3000");
  EXPECT_EQ(of("0::/slice/job\n"), 3000U);
  limit("memory.max", "2000"); // as a container sees its own
  EXPECT_EQ(of("0::/slice/job\n"), 2000U);
  EXPECT_EQ(of("0::/\n"), 2000U);
}

TEST_F(cgroup_memory, of_v1_is_that_of_the_controller_of_memory) {
  limit("memory/batch/7/memory.limit_in_bytes", "5000");
  limit("cpu/batch/7/memory.limit_in_bytes", "1");
  EXPECT_EQ(of("3:cpu,cpuacct:/batch/7\n2:hugetlb,memory:/batch/7\n0::/\n"), 5000U);
  EXPECT_EQ(of("3:memory_of_another_kind:/batch/7\n"), std::nullopt);
}

TEST_F(cgroup_memory, is_not_limited_where_nothing_says_so) {
  limit("slice/memory.max", "max");
  for (const auto* cgroups : {"0::/slice\n", "0::/gone\n", "0::/../outside\n", "no line of it", ""})
    EXPECT_EQ(of(cgroups), std::nullopt) << cgroups;
}

TEST_F(cgroup_memory, is_told_from_the_number_of_processes) {
  limit("slice/job/pids.max", "40");
  limit("slice/job/memory.max", "3000");
  limit("pids/job/pids.max", "30");
  const auto processes = [this](std::string_view cgroups) {
    const auto found = detail::least_cgroup(detail::processes, cgroups, folder.path());
    return found ? std::optional{found->limit} : std::nullopt;
  };
  EXPECT_EQ(processes("0::/slice/job\n"), 40U);
  EXPECT_EQ(processes("3:cpu:/job\n2:pids:/job\n"), 30U);
  EXPECT_EQ(processes("3:memory:/job\n0::/elsewhere\n"), std::nullopt);
}

TEST_F(cgroup_memory, in_use_is_that_of_the_one_that_allows_the_least_without_files_that_nobody_uses) {
  const auto used = [this](std::string_view cgroups) {
    return detail::memory_used_in(*detail::least_cgroup(detail::memory_bytes, cgroups, folder.path()));
  };
  limit("slice/memory.max", "4000");
  limit("slice/memory.current", "3500");
  limit("slice/memory.stat", "anon 2000\nfile 1500\ninactive_file 1100\nactive_file 400");
  limit("slice/job/memory.max", "max");
  limit("slice/job/memory.current", "1");
  EXPECT_EQ(used("0::/slice/job\n"), 2400U);
  limit("memory/batch/memory.limit_in_bytes", "3000");
  limit("memory/batch/memory.usage_in_bytes", "2000");
  limit("memory/batch/memory.stat", "inactive_file 7\ntotal_inactive_file 500");
  EXPECT_EQ(used("2:memory:/batch\n0::/slice/job\n"), 1500U);
  limit("memory/batch/memory.stat", "total_inactive_file 2500"); // read a moment later
  EXPECT_EQ(used("2:memory:/batch\n"), 0U);
}

TEST(usable_memory, is_used_in_part) {
  const auto now = current_memory_use();
  EXPECT_EQ(now.limit, usable_memory_bytes());
  EXPECT_GT(now.used, 0U);
  EXPECT_LE(now.used, now.limit);
}

TEST(usable_memory, is_something) { EXPECT_GT(usable_memory_bytes(), std::uint64_t{1} << 20); }

} // namespace
} // namespace dlrun::base
