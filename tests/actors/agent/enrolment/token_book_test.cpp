#include "actors/agent/enrolment/token_book.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::agent {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::string digest(int number) { return std::string(31, 'd') + static_cast<char>(number); }

class token_book_test : public testing::Test {
protected:
  std::string refusal(const std::string& which) {
    const auto taken = book.take(which, now);
    EXPECT_TRUE(taken || taken.error().code == error_code::fenced);
    return taken ? "" : taken.error().message;
  }
  protocol::time_point now{1h};
  token_book book{{.open_max = 3, .over_max = 2}};
};

TEST_F(token_book_test, lets_a_token_be_used_once) {
  ASSERT_TRUE(book.add(digest(1), 1min, now));
  EXPECT_EQ(refusal(digest(1)), "");
  EXPECT_THAT(refusal(digest(1)), HasSubstr("was used already"));
}

TEST_F(token_book_test, refuses_a_token_that_it_did_not_make) {
  ASSERT_TRUE(book.add(digest(1), 1min, now));
  EXPECT_THAT(refusal(digest(2)), HasSubstr("is none of this job"));
  EXPECT_THAT(refusal(""), HasSubstr("is none of this job"));
  EXPECT_EQ(refusal(digest(1)), "");
}

TEST_F(token_book_test, refuses_a_token_whose_time_is_over_and_says_since_when) {
  ASSERT_TRUE(book.add(digest(1), 1min, now));
  now += 59s;
  ASSERT_TRUE(book.add(digest(2), 1min, now));
  now += 8s;
  EXPECT_THAT(refusal(digest(1)), HasSubstr("expired 7 s ago"));
  EXPECT_EQ(refusal(digest(2)), "");
}

TEST_F(token_book_test, one_that_is_given_back_may_be_used_until_its_time_is_over) {
  ASSERT_TRUE(book.add(digest(1), 1min, now));
  EXPECT_EQ(refusal(digest(1)), "");
  book.give_back(digest(1));
  EXPECT_EQ(refusal(digest(1)), "");
  book.give_back(digest(1));
  now += 1min;
  EXPECT_THAT(refusal(digest(1)), HasSubstr("expired 0 s ago"));
}

TEST_F(token_book_test, so_many_may_wait_and_those_that_are_over_do_not_count) {
  for (int i = 1; i <= 3; ++i) ASSERT_TRUE(book.add(digest(i), 1min, now));
  const auto fourth = book.add(digest(4), 1min, now);
  ASSERT_FALSE(fourth);
  EXPECT_EQ(fourth.error().code, error_code::limit_exceeded);
  EXPECT_EQ(refusal(digest(2)), "");
  EXPECT_TRUE(book.add(digest(4), 1min, now));
  now += 1min;
  EXPECT_TRUE(book.add(digest(5), 1min, now));
}

TEST_F(token_book_test, forgets_the_oldest_of_those_that_are_over) {
  for (int i = 1; i <= 8; ++i) {
    ASSERT_TRUE(book.add(digest(i), 1min, now));
    EXPECT_EQ(refusal(digest(i)), "");
  }
  EXPECT_THAT(refusal(digest(1)), HasSubstr("is none of this job"));
  EXPECT_THAT(refusal(digest(8)), HasSubstr("was used already"));
}

} // namespace
} // namespace dlrun::agent
