// Whether a host lets a run have its threads.
#include "runtime/process_limit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::runtime {
namespace {

using process_limit::tell_too_few;
using testing::AllOf;
using testing::HasSubstr;

spec::JobSpec job_of(std::int64_t workers, std::int64_t ps_shards, std::int64_t threads = 1) {
  spec::JobSpec job;
  job.mutable_cluster()->set_workers(workers);
  job.mutable_cluster()->set_ps_shards(ps_shards);
  job.mutable_cluster()->set_threads_per_worker(threads);
  return job;
}

TEST(process_limit, a_job_needs_more_with_each_role_and_each_thread) {
  const auto small = threads_needed(job_of(2, 64), 1);
  EXPECT_EQ(threads_needed(job_of(3, 64), 1) - small, 14U);
  EXPECT_EQ(threads_needed(job_of(2, 64, 4), 1) - small, 6U);
  EXPECT_EQ(threads_needed(job_of(2, 65), 1) - small, 17U) << "with so many none has a team";
}

TEST(process_limit, of_several_hosts_each_needs_its_part) {
  EXPECT_LT(threads_needed(job_of(8, 64), 4), threads_needed(job_of(8, 64), 1) / 2);
  EXPECT_EQ(threads_needed(job_of(8, 64), 4), threads_needed(job_of(7, 64), 4)) << "one of them has two";
}

TEST(process_limit, tells_what_bounds_them_and_the_way_out) {
  EXPECT_THAT(tell_too_few("this job", 34, 69, {.of_user = 35}),
              AllOf(HasSubstr("about 69 threads"), HasSubstr("34 more can be made here"),
                    HasSubstr("ulimit -u"), HasSubstr("35"), HasSubstr("cluster.workers")));
  EXPECT_THAT(tell_too_few("this job", 34, 69, {.of_cgroup = 40}), HasSubstr("40 (pids.max)"));
  EXPECT_EQ(tell_too_few("this job", 69, 69, {.of_user = 35}), "") << "a user with the right to exceed it";
  EXPECT_EQ(tell_too_few("this job", 34, 69, {}), "") << "it is memory that lacks";
}

TEST(process_limit, as_many_threads_are_there_at_once) {
  EXPECT_EQ(process_limit::possible_threads(20), 20U);
}

} // namespace
} // namespace dlrun::runtime
