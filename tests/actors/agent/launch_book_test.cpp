#include "actors/agent/launch_book.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr protocol::role_name ordered{protocol::role_kind::worker, 0};
constexpr protocol::fence earlier_start{{1}, 11};
constexpr protocol::fence later_start{{2}, 22};

class launch_book_test : public testing::Test {
protected:
  launch_events events() {
    return {
        .started = [this](const auto&, const auto&,
                          std::int32_t pid) { heard.push_back("runs as " + std::to_string(pid)); },
        .start_failed = [this](const auto&, const auto&, const error& why) { heard.push_back(why.message); },
        .exited = [this](const auto&, const auto&, const role_end& end) { heard.push_back(end.cause); }};
  }
  void put(const protocol::fence& self) { book.put({ordered, self}, events()); }
  result<void> certify(const protocol::fence& self, const std::string& host) {
    return book.certify(*book.find(ordered, self.incarnation), host);
  }
  result<protocol::role_credentials> issue(const std::string& host) {
    if (host == "nowhere") return fail(error_code::system, "no key");
    issued.push_back(host);
    protocol::role_credentials made;
    made.certificate = std::to_string(issued.size());
    return made;
  }

  std::vector<std::string> issued;
  std::vector<std::string> heard;
  launch_book book{[this](const auto&, const std::string& host) { return issue(host); }};
};

TEST_F(launch_book_test, who_ordered_a_start_hears_what_becomes_of_it_until_it_is_over) {
  put(earlier_start);
  book.tell({ordered, earlier_start, role_runs{100}});
  book.tell({ordered, later_start, role_runs{200}});
  book.tell({ordered, earlier_start, role_end{.cause = "exited"}});
  book.tell({ordered, earlier_start, role_end{.cause = "exited again"}});
  EXPECT_THAT(heard, ElementsAre("runs as 100", "exited"));
}

TEST_F(launch_book_test, one_that_failed_is_over) {
  put(earlier_start);
  book.tell({ordered, earlier_start, error{error_code::bad_usage, "no such file"}});
  EXPECT_THAT(heard, ElementsAre("no such file"));
  EXPECT_EQ(book.find(ordered, earlier_start.incarnation), nullptr);
}

/// The agent may order the next start as soon as it hears of the end.
TEST_F(launch_book_test, who_hears_of_an_end_may_order_the_next_start) {
  auto next = events();
  next.exited = [this](const auto&, const auto&, const auto&) { put(later_start); };
  book.put({ordered, earlier_start}, next);
  book.tell({ordered, earlier_start, role_end{}});
  EXPECT_NE(book.find(ordered, later_start.incarnation), nullptr);
}

TEST_F(launch_book_test, certificates_are_made_once_for_a_start_and_a_host) {
  put(earlier_start);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(certify(earlier_start, "beta"));
  EXPECT_THAT(issued, ElementsAre("beta"));
  EXPECT_EQ(book.find(ordered, earlier_start.incarnation)->order.credentials->certificate, "1");
  ASSERT_TRUE(certify(earlier_start, "gamma"));
  EXPECT_THAT(issued, ElementsAre("beta", "gamma"));
}

TEST_F(launch_book_test, what_cannot_be_made_is_tried_again) {
  put(earlier_start);
  EXPECT_EQ(certify(earlier_start, "nowhere").error().message, "no key");
  EXPECT_FALSE(book.find(ordered, earlier_start.incarnation)->order.credentials);
  EXPECT_FALSE(book.renew(ordered, earlier_start.incarnation));
  EXPECT_TRUE(certify(earlier_start, "beta"));
}

TEST_F(launch_book_test, the_next_certificate_is_for_the_start_that_got_the_last) {
  put(earlier_start);
  ASSERT_TRUE(certify(earlier_start, "beta"));
  EXPECT_EQ(book.renew(ordered, earlier_start.incarnation)->certificate, "2");
  put(later_start);
  ASSERT_TRUE(certify(later_start, "gamma"));
  const auto refused = book.renew(ordered, earlier_start.incarnation);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::fenced);
  EXPECT_THAT(refused.error().message, HasSubstr("incarnation 1 of worker 0"));
  EXPECT_TRUE(book.renew(ordered, later_start.incarnation));
  EXPECT_THAT(issued, ElementsAre("beta", "beta", "gamma", "gamma"));
}

/// Its agent was handed it, and hears of it itself.
TEST_F(launch_book_test, a_start_that_was_taken_out_keeps_its_certificate) {
  put(earlier_start);
  auto taken = book.take(ordered, earlier_start.incarnation);
  ASSERT_TRUE(taken);
  EXPECT_FALSE(book.take(ordered, earlier_start.incarnation));
  ASSERT_TRUE(book.certify(*taken, "alpha"));
  EXPECT_TRUE(taken->order.credentials);
  EXPECT_TRUE(book.renew(ordered, earlier_start.incarnation));
  book.tell({ordered, earlier_start, role_end{.cause = "exited"}});
  EXPECT_THAT(heard, IsEmpty());
}

TEST_F(launch_book_test, what_an_earlier_root_started_needs_no_order_to_be_renewed) {
  book.adopt({ordered, earlier_start, 100}, events(), "beta");
  EXPECT_TRUE(book.renew(ordered, earlier_start.incarnation));
  EXPECT_THAT(issued, ElementsAre("beta"));
  book.tell({ordered, earlier_start, role_end{.cause = "exited"}});
  EXPECT_THAT(heard, ElementsAre("exited"));
}

} // namespace
} // namespace dlrun::agent
