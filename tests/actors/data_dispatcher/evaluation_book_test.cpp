#include "actors/data_dispatcher/evaluation_book.hpp"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

namespace dlrun::data_dispatcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const protocol::watched_metric loss{[](const protocol::evaluated& one) {
                                      return one.records == 0 ? NAN : static_cast<double>(one.loss_sum_bits);
                                    },
                                    false};
const protocol::watched_metric accuracy{loss.value, true};

/// Of twenty steps; versions 4, 8, 12, 16 and the last are evaluated.
evaluation_rules rules() { return {.steps = 20, .versions = {{4}, {8}, {12}, {16}, {20}}}; }

/// The first evaluations came to these; below 0: to no number.
std::vector<protocol::evaluated> results(const std::vector<int>& values) {
  std::vector<protocol::evaluated> all;
  for (const auto value : values) {
    protocol::evaluated one;
    one.version = {4 * (all.size() + 1)};
    one.records = value < 0 ? 0 : 1;
    one.loss_sum_bits = static_cast<std::uint64_t>(std::max(value, 0));
    all.push_back(one);
  }
  return all;
}

/// Where training ends when these are the results that there will be.
version_id end_of(const stopping_rule& rule, const std::vector<int>& values) {
  auto with = rules();
  with.stopping = rule;
  evaluation_book book(with);
  book.set_results(results(values));
  return book.last();
}

TEST(evaluation_book, what_has_a_result_or_is_given_up_is_not_waited_for) {
  evaluation_book book(rules());
  EXPECT_THAT(book.pending(), testing::SizeIs(5));
  book.set_results(results({7}));
  book.give_up({12});
  EXPECT_THAT(book.pending(), ElementsAre(version_id{8}, version_id{16}, version_id{20}));
  book.restart();
  EXPECT_THAT(book.pending(), ElementsAre(version_id{8}, version_id{12}, version_id{16}, version_id{20}));
}

// ---- how far training may go

TEST(evaluation_book, training_leaves_a_bounded_number_of_evaluations_behind) {
  evaluation_book book(rules());
  EXPECT_EQ(book.limit(), version_id{12});
  book.set_results(results({7}));
  EXPECT_EQ(book.limit(), version_id{16});
  book.set_results(results({7, 6, 5}));
  EXPECT_EQ(book.limit(), version_id{20}) << "16 and 20 may be evaluated together";
}

TEST(evaluation_book, a_job_without_evaluations_is_held_by_nothing) {
  evaluation_book book({.steps = 20});
  EXPECT_EQ(book.limit(), version_id{20});
  EXPECT_THAT(book.pending(), IsEmpty());
}

TEST(evaluation_book, what_may_be_stopped_early_is_held_by_each_evaluation) {
  auto with = rules();
  with.stopping = stopping_rule{loss, 2, 0};
  evaluation_book book(with);
  EXPECT_EQ(book.limit(), version_id{4});
  book.set_results(results({7}));
  EXPECT_EQ(book.limit(), version_id{8});
}

// ---- early stopping

TEST(evaluation_book, training_ends_with_the_evaluation_that_exhausts_patience) {
  EXPECT_EQ(end_of({loss, 2, 0}, {9, 7, 8, 7}), version_id{16}) << "equal is not better";
  EXPECT_EQ(end_of({loss, 2, 0}, {9, 7, 8, 6}), version_id{20}) << "patience begins anew";
  EXPECT_EQ(end_of({loss, 1, 0}, {9, 9}), version_id{8});
  EXPECT_EQ(end_of({accuracy, 1, 0}, {9, 9}), version_id{8});
  EXPECT_EQ(end_of({accuracy, 2, 0}, {5, 6, 7, 8}), version_id{20});
  EXPECT_EQ(end_of({loss, 2, 0}, {}), version_id{20});
}

TEST(evaluation_book, better_is_what_is_better_by_more_than_min_delta_than_the_best_that_counted) {
  EXPECT_EQ(end_of({loss, 2, 1}, {9, 8, 7}), version_id{20}) << "7 is better than 9 by 2";
  EXPECT_EQ(end_of({loss, 2, 2}, {9, 8, 7}), version_id{12});
}

TEST(evaluation_book, what_is_no_number_never_counts_as_better) {
  EXPECT_EQ(end_of({loss, 2, 0}, {-1, 9, -1, -1}), version_id{16});
  EXPECT_EQ(end_of({loss, 1, 0}, {-1, -1}), version_id{4}) << "not even as the first";
  EXPECT_EQ(end_of({accuracy, 2, 0}, {-1, -1, 9}), version_id{8});
}

TEST(evaluation_book, what_was_decided_stays_whatever_comes_later) {
  const stopping_rule rule{loss, 1, 0};
  EXPECT_EQ(end_of(rule, {5, 6}), version_id{8});
  EXPECT_EQ(end_of(rule, {5, 6, 1}), version_id{8});
}

TEST(evaluation_book, beyond_the_end_nothing_is_evaluated_or_trained) {
  auto with = rules();
  with.stopping = stopping_rule{loss, 1, 0};
  evaluation_book book(with);
  book.set_results(results({5, 6}));
  EXPECT_THAT(book.pending(), IsEmpty());
  EXPECT_EQ(book.limit(), version_id{8});
  book.set_results(results({5})); // training went back to before 8
  EXPECT_EQ(book.last(), version_id{20});
  EXPECT_EQ(book.limit(), version_id{8});
}

// ---- the best

TEST(evaluation_book, the_best_below_a_version_is_the_first_of_equal_ones) {
  auto with = rules();
  with.best = loss;
  evaluation_book book(with);
  EXPECT_EQ(book.best_below({20}), std::nullopt);
  book.set_results(results({9, 5, 7, 5}));
  EXPECT_EQ(book.best_below({4}), std::nullopt);
  EXPECT_EQ(book.best_below({8}), version_id{4});
  EXPECT_EQ(book.best_below({9}), version_id{8});
  EXPECT_EQ(book.best_below({20}), version_id{8});
  with.best = accuracy;
  evaluation_book other(with);
  other.set_results(results({3, -1, 7, 5}));
  EXPECT_EQ(other.best_below({12}), version_id{4});
  EXPECT_EQ(other.best_below({20}), version_id{12});
}

TEST(evaluation_book, what_is_no_number_is_never_the_best) {
  auto with = rules();
  with.best = loss;
  evaluation_book book(with);
  book.set_results(results({-1, -1, 7, -1}));
  EXPECT_EQ(book.best_below({12}), std::nullopt);
  EXPECT_EQ(book.best_below({20}), version_id{12});
}

TEST(watched_metric, only_what_is_finite_is_better_than_anything) {
  for (const auto& metric : {loss, accuracy})
    for (const double value :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
          -std::numeric_limits<double>::infinity()}) {
      EXPECT_FALSE(metric.is_better(value, std::nullopt)) << value;
      EXPECT_FALSE(metric.is_better(value, 1)) << value;
    }
  EXPECT_TRUE(loss.is_better(1e300, std::nullopt));
}

TEST(evaluation_book, none_is_the_best_where_none_is_kept) {
  evaluation_book book(rules());
  book.set_results(results({9, 5}));
  EXPECT_EQ(book.best_below({20}), std::nullopt);
}

} // namespace
} // namespace dlrun::data_dispatcher
