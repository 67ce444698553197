#include "actors/common/job_journal.hpp"

#include <gtest/gtest.h>

namespace dlrun::common {
namespace {

using std::chrono::milliseconds;

TEST(job_journal, while_no_etcd_answers_the_term_is_tried_for_as_long_as_its_watcher_wants) {
  const etcd_ground nowhere{{{"http://127.0.0.1:1"}}, "x", {milliseconds(10), milliseconds(20)}};
  int asked = 0;
  bool is_over = false;
  const full_disk_watcher watcher{[&](const error& why) {
                                    EXPECT_EQ(why.code, error_code::timed_out) << why.message;
                                    return ++asked < 3;
                                  },
                                  [&] { is_over = true; }};
  const auto opened = job_journal::open(nowhere, {1}, watcher);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, error_code::timed_out);
  EXPECT_EQ(asked, 3);
  EXPECT_FALSE(is_over);
}

} // namespace
} // namespace dlrun::common
