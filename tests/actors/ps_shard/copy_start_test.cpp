// What a start of a PS shard waits for before a word of it goes out.
#include "actors/ps_shard/copy_start.hpp"

#include <gtest/gtest.h>

namespace dlrun::ps_shard {
namespace {

constexpr incarnation counted_keeper{7};

/// It has loaded version 3.
struct copy_start_test : testing::Test {
  copy_start_test() {
    book.restart(protocol::first_history(), {3});
    mine.restorable = {{{0}, {3}}};
    mine.logged = {{{0}, {3}}};
    loaded_standing restored;
    restored.version = {3};
    start.begin(restored);
  }
  static protocol::keeper_place place(bool counts) {
    protocol::keeper_place made;
    made.is_known = true;
    made.incarnation = counted_keeper;
    made.counts = counts;
    return made;
  }
  bool settles() { return start.settle(book, mine).has_value(); }
  void copy_holds(std::uint64_t end) {
    protocol::copy_standing said;
    said.incarnation = counted_keeper;
    said.end = {end};
    said.restorable = {{{0}, {end}}};
    book.on_standing(said, mine, protocol::time_point{});
  }

  copy_book book;
  own_store mine;
  copy_start start;
};

TEST_F(copy_start_test, waits_until_the_agent_says_what_it_knows_of_the_keeper) {
  EXPECT_FALSE(settles());
  EXPECT_FALSE(start.hear({})) << "it is not the start in hand";
  EXPECT_FALSE(settles());
  EXPECT_FALSE(start.hear(place(false)));
  EXPECT_FALSE(start.is_settled());
  EXPECT_TRUE(settles());
  EXPECT_TRUE(start.is_settled());
  EXPECT_FALSE(settles()) << "it has begun";
}

TEST_F(copy_start_test, waits_until_a_copy_that_an_earlier_start_counted_has_all_that_it_begins_with) {
  ASSERT_TRUE(start.hear(place(true)));
  book.begin_with(counted_keeper);
  EXPECT_FALSE(settles());
  EXPECT_TRUE(start.waits_for_copy(book));
  copy_holds(3);
  EXPECT_TRUE(settles());
  EXPECT_FALSE(start.waits_for_copy(book));
}

TEST_F(copy_start_test, waits_no_longer_for_a_keeper_that_is_over) {
  ASSERT_TRUE(start.hear(place(true)));
  book.begin_with(counted_keeper);
  book.on_keeper({8});
  EXPECT_TRUE(settles());
}

TEST_F(copy_start_test, later_words_of_the_agent_are_about_its_own_start) {
  EXPECT_FALSE(start.hear(place(false)));
  EXPECT_FALSE(start.hear(place(true))) << "it has said so itself";
}

} // namespace
} // namespace dlrun::ps_shard
