// Which copies the agent believes to be whole.
#include "actors/agent/copy_board.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using protocol::heartbeat;
using protocol::keeper_role;
using protocol::ps_shard_role;

constexpr ps_shard_id shard{1};
constexpr protocol::fence shard_start{{3}, 30};
constexpr protocol::fence keeper_start{{7}, 70};

class copy_board_test : public testing::Test {
protected:
  copy_board_test() {
    roles.add(ps_shard_role(shard), true);
    roles.add(keeper_role(shard), true);
    roles.find(ps_shard_role(shard))->current = shard_start;
    roles.find(keeper_role(shard))->current = keeper_start;
  }
  /// What a start of the PS shard says of its copy.
  static heartbeat word(const protocol::copy_word& copy, protocol::fence self = shard_start) {
    return {.role = ps_shard_role(shard), .self = self, .copies = {.all = {copy}}};
  }
  static protocol::copy_word counts(const protocol::fence& keeper) {
    return {.is_known = true, .counted = keeper.incarnation, .keeper = keeper.incarnation, .end = {40}};
  }
  static protocol::keeper_places keepers(std::vector<protocol::keeper_place> all) {
    return {.is_known = true, .all = std::move(all)};
  }
  bool is_whole() const { return board.find(keeper_role(shard), roles)->is_whole; }

  managed_roles roles;
  copy_board board;
};

TEST_F(copy_board_test, a_copy_is_whole_once_its_ps_shard_has_said_so_and_that_is_news_once) {
  EXPECT_FALSE(is_whole());
  EXPECT_THAT(board.hear(word({.is_known = true, .keeper = {7}, .end = {20}}), roles), IsEmpty())
      << "it is being filled";
  EXPECT_FALSE(is_whole());
  EXPECT_THAT(board.hear(word(counts(keeper_start)), roles), ElementsAre(keeper_role(shard)));
  EXPECT_THAT(board.hear(word(counts(keeper_start)), roles), IsEmpty());
  const auto copy = board.find(keeper_role(shard), roles);
  ASSERT_TRUE(copy && copy->is_whole);
  EXPECT_EQ(copy->keeper, keeper_start.incarnation);
}

TEST_F(copy_board_test, who_does_not_know_yet_whom_it_counts_takes_nothing_back) {
  board.hear(word(counts(keeper_start)), roles);
  board.hear(word({}), roles);
  EXPECT_TRUE(is_whole());
}

TEST_F(copy_board_test, with_the_start_of_the_keeper_goes_what_was_believed_of_it) {
  board.hear(word(counts(keeper_start)), roles);
  EXPECT_FALSE(board.end(keeper_role(shard), {6})) << "an older start";
  EXPECT_FALSE(board.end(ps_shard_role(shard), keeper_start.incarnation));
  EXPECT_TRUE(board.end(keeper_role(shard), keeper_start.incarnation));
  EXPECT_FALSE(board.end(keeper_role(shard), keeper_start.incarnation)) << "told";
  roles.find(keeper_role(shard))->current.reset();
  EXPECT_FALSE(board.find(keeper_role(shard), roles)) << "none runs";
  roles.find(keeper_role(shard))->current = protocol::fence{{8}, 80};
  EXPECT_FALSE(is_whole());
  EXPECT_THAT(board.hear(word(counts(keeper_start)), roles), IsEmpty()) << "it has not heard of that end";
  EXPECT_FALSE(is_whole());
}

/// R37: both of one moment, so that nobody ends for a copy that is gone.
TEST_F(copy_board_test, a_ps_shard_that_is_to_move_is_told_so_while_its_copy_is_whole) {
  roles.find(ps_shard_role(shard))->is_to_move = true;
  EXPECT_FALSE(board.answer(word({}), roles).moves);
  board.hear(word(counts(keeper_start)), roles);
  EXPECT_TRUE(board.answer(word({}), roles).moves);
  EXPECT_FALSE(board.answer(word({}, {{2}, 20}), roles).moves) << "an older start";
  board.end(keeper_role(shard), keeper_start.incarnation);
  roles.find(keeper_role(shard))->current = protocol::fence{{8}, 80};
  EXPECT_FALSE(board.answer(word({}), roles).moves);
}

TEST_F(copy_board_test, a_keeper_that_is_to_leave_keeps_no_copy) {
  board.hear(word(counts(keeper_start)), roles);
  roles.find(keeper_role(shard))->leaving = true;
  EXPECT_FALSE(board.find(keeper_role(shard), roles));
}

TEST_F(copy_board_test, the_start_in_hand_of_a_ps_shard_is_told_where_its_keeper_is_and_nobody_else) {
  const protocol::endpoint at{"10.0.0.3:5000", 9, {}};
  EXPECT_EQ(board.answer(word({}), roles), keepers({{{7}, {}, false}})) << "it has not said where it is";
  board.hear({.role = keeper_role(shard), .self = keeper_start, .at = at}, roles);
  EXPECT_EQ(board.answer(word({}), roles), keepers({{{7}, at, false}}));
  board.hear(word(counts(keeper_start)), roles);
  EXPECT_EQ(board.answer(word({}), roles), keepers({{{7}, at, true}}))
      << "the next start of the PS shard is told so";
  EXPECT_EQ(board.answer(word({}, {{2}, 20}), roles), protocol::keeper_places{}) << "an older start";
  EXPECT_EQ(board.answer({.role = keeper_role(shard), .self = keeper_start}, roles),
            protocol::keeper_places{});
  roles.find(keeper_role(shard))->current.reset();
  EXPECT_EQ(board.answer(word({}), roles), keepers({{}}));
}

TEST_F(copy_board_test, a_silent_keeper_is_to_end_once_and_counts_no_more) {
  auto silent = counts(keeper_start);
  board.hear(word(silent), roles);
  silent.is_silent = true;
  EXPECT_THAT(board.to_end(word(silent), roles), ElementsAre(keeper_role(shard)));
  EXPECT_THAT(board.to_end(word(silent), roles), IsEmpty());
  EXPECT_FALSE(is_whole());
}

TEST_F(copy_board_test, the_start_after_one_that_was_given_up_is_told_so) {
  auto silent = counts(keeper_start);
  silent.is_silent = true;
  EXPECT_FALSE(board.facts_for(keeper_role(shard), roles).is_given_up);
  board.to_end(word(silent), roles);
  EXPECT_FALSE(board.facts_for(keeper_role(shard), roles).is_given_up) << "it is not over";
  board.end(keeper_role(shard), keeper_start.incarnation);
  roles.find(keeper_role(shard))->current = protocol::fence{{8}, 80};
  EXPECT_TRUE(board.facts_for(keeper_role(shard), roles).is_given_up);
  EXPECT_FALSE(board.facts_for(ps_shard_role(shard), roles).is_given_up);
  board.end(keeper_role(shard), {8});
  roles.find(keeper_role(shard))->current = protocol::fence{{9}, 90};
  EXPECT_FALSE(board.facts_for(keeper_role(shard), roles).is_given_up);
}

TEST_F(copy_board_test, a_word_about_another_start_of_the_keeper_ends_nobody) {
  auto silent = counts({{6}, 60});
  silent.is_silent = true;
  EXPECT_THAT(board.to_end(word(silent), roles), IsEmpty());
}

/// Of several copies each stands for itself.
class several_copies_test : public copy_board_test {
protected:
  several_copies_test() {
    roles.add(other, true);
    roles.find(other)->current = other_start;
  }
  static heartbeat words(const protocol::copy_word& first, const protocol::copy_word& second) {
    return {.role = ps_shard_role(shard), .self = shard_start, .copies = {.all = {first, second}}};
  }
  static constexpr auto other = keeper_role(shard, 1);
  static constexpr protocol::fence other_start{{9}, 90};
};

TEST_F(several_copies_test, each_becomes_whole_by_itself_and_all_that_are_so_may_be_started_from) {
  EXPECT_THAT(board.hear(words({.is_known = true}, counts(other_start)), roles), ElementsAre(other));
  EXPECT_THAT(board.facts_for(ps_shard_role(shard), roles).whole, ElementsAre(other));
  EXPECT_THAT(board.hear(words(counts(keeper_start), counts(other_start)), roles),
              ElementsAre(keeper_role(shard)));
  EXPECT_THAT(board.facts_for(ps_shard_role(shard), roles).whole, ElementsAre(keeper_role(shard), other));
  EXPECT_EQ(board.answer(word({}), roles), keepers({{{7}, {}, true}, {{9}, {}, true}}));
}

TEST_F(several_copies_test, the_end_of_one_keeper_takes_nothing_from_another) {
  board.hear(words(counts(keeper_start), counts(other_start)), roles);
  EXPECT_TRUE(board.end(keeper_role(shard), keeper_start.incarnation));
  roles.find(keeper_role(shard))->current.reset();
  EXPECT_THAT(board.facts_for(ps_shard_role(shard), roles).whole, ElementsAre(other));
  EXPECT_EQ(board.answer(word({}), roles), keepers({{}, {{9}, {}, true}}));
}

TEST_F(several_copies_test, a_silent_one_is_to_end_and_no_other) {
  auto silent = counts(other_start);
  board.hear(words(counts(keeper_start), silent), roles);
  silent.is_silent = true;
  EXPECT_THAT(board.to_end(words(counts(keeper_start), silent), roles), ElementsAre(other));
  EXPECT_THAT(board.facts_for(ps_shard_role(shard), roles).whole, ElementsAre(keeper_role(shard)));
}

TEST_F(copy_board_test, status_has_what_the_ps_shard_says_of_the_copy_of_the_keeper_that_runs) {
  const std::vector<role_view> views{{keeper_role(shard), 100, {7}, "filling"}};
  EXPECT_FALSE(board.shown(views, roles)[0].copy);
  auto said = counts(keeper_start);
  said.behind = 3;
  said.cost.waited_permille = 250;
  board.hear(word(said), roles);
  EXPECT_EQ(board.shown(views, roles)[0].copy, said);
  roles.find(keeper_role(shard))->current = protocol::fence{{8}, 80};
  EXPECT_FALSE(board.shown(views, roles)[0].copy) << "that was of the one before";
}

TEST_F(copy_board_test, of_a_keeper_whose_copy_is_whole_status_says_that) {
  const std::vector<role_view> views{{keeper_role(shard), 100, {7}, "filling"},
                                     {ps_shard_role(shard), 101, {3}, "training"}};
  EXPECT_EQ(board.shown(views, roles)[0].state, "filling");
  board.hear(word(counts(keeper_start)), roles);
  const auto shown = board.shown(views, roles);
  EXPECT_EQ(shown[0].state, "whole");
  EXPECT_EQ(shown[1].state, "training");
}

} // namespace
} // namespace dlrun::agent
