#include "actors/ps_shard/shard_parameters.hpp"

#include "actors/ps_shard/norm_exchange.hpp"
#include "tests/actors/ps_shard/shard_fixture.hpp"
#include "tests/data/files.hpp"

#include <gmock/gmock.h>
#include <limits>

namespace dlrun::ps_shard {
namespace {

class shard_parameters_test : public testing::Test {
protected:
  /// The norm of one made-up gradient, each of so many PS shards measuring its part.
  double norm_over(int ps_shards, std::uint64_t revision = 0,
                   const std::vector<protocol::parked_slot>& parked = {}) const {
    const auto clipped = job({"train.clip_norm=1"})->spec.train();
    auto by_value = clipped;
    by_value.set_clip_value(0.1);
    const auto shared = job({fmt::format("cluster.ps_shards={}", ps_shards)}, {clipped, by_value});
    std::vector<float> gradient(shared->model->layout().flat_size());
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = 0.01F * static_cast<float>(i % 97) - 0.3F;
    std::vector<norm_partials> all;
    for (std::uint32_t shard = 0; shard < shared->ps_shards(); ++shard) {
      const auto numbers = shard_parameters::create(shared, {shard}).value();
      const auto root = std::span{gradient}.subspan(numbers.range().offset, numbers.range().size);
      all.push_back(numbers.measure(common::shape_of(shared->sampler, {0}, revision, parked), root));
    }
    return std::bit_cast<double>(norm_of(all));
  }
  std::shared_ptr<const common::job_context> job(const std::vector<std::string>& overrides,
                                                 std::vector<spec::TrainSpec> revisions = {}) const {
    return test::small_job(folder.path(), overrides, std::move(revisions));
  }

  test::temporary_folder folder;
};

TEST_F(shard_parameters_test, the_norm_has_the_same_bits_for_any_number_of_shards) {
  const auto one = norm_over(1);
  EXPECT_GT(one, 0.1);
  for (const int shards : {2, 3}) EXPECT_EQ(norm_over(shards), one) << shards << " PS shards";
}

TEST_F(shard_parameters_test, the_norm_is_of_the_mean_as_the_revision_of_the_step_clips_it) {
  EXPECT_LT(norm_over(1, 1), norm_over(1, 0)) << "clipped by value";
  EXPECT_NEAR(norm_over(1, 0, {{{0}, {1}}}), 2 * norm_over(1, 0), 1e-6) << "over half of the records";
  EXPECT_EQ(norm_over(1, 0, {{{0}, {0}}, {{0}, {1}}}), 0) << "of no record";
}

TEST_F(shard_parameters_test, state_begins_as_the_optimizer_says_and_so_it_does_after_going_back) {
  const auto zero = job({"train.optimizer={adagrad: {lr: 0.1}}"});
  const auto half = job({"train.optimizer={adagrad: {lr: 0.1, initial_accumulator_value: 0.5}}"});
  test::training_shard trained{half};
  const auto first = trained.digests();
  EXPECT_NE(first, test::training_shard{zero}.digests());
  trained.train();
  EXPECT_NE(trained.digests(), first);
  trained.parameters.reset({1});
  EXPECT_EQ(trained.digests(), first);
}

TEST_F(shard_parameters_test, no_bit_depends_on_how_many_threads_share_the_work) {
  test::training_shard alone{job({})}, shared{job({})};
  shared.parameters.use(std::make_shared<base::thread_team>(3));
  for (int step = 0; step < 3; ++step) {
    alone.train();
    shared.train();
  }
  EXPECT_EQ(shared.digests(), alone.digests());
}

TEST_F(shard_parameters_test, a_root_that_is_made_on_the_way_is_made_whole_and_gives_the_same_bits) {
  const auto context = job({});
  auto there = shard_parameters::create(context, {0}).value();
  auto made = shard_parameters::create(context, {0}).value();
  made.use(std::make_shared<base::thread_team>(3));
  std::vector<float> root(there.range().size);
  for (std::size_t i = 0; i < root.size(); ++i) root[i] = static_cast<float>(i % 101) / 64.0F;
  std::vector<float> empty(root.size(), -1.0F);
  const auto shape = common::shape_of(context->sampler, {0}, 0, {});
  ASSERT_TRUE(there.apply({0}, {0}, shape, test::whole_root(root), {}));
  const auto make = [&](std::uint64_t begin, std::uint64_t end) {
    for (auto i = begin; i < end; ++i) empty[i] = root[i];
    return std::span<const float>{empty}.subspan(begin, end - begin);
  };
  ASSERT_TRUE(made.apply({0}, {0}, shape, make, {}));
  EXPECT_EQ(empty, root) << "padding too";
  EXPECT_EQ(test::training_shard::digests_of(made), test::training_shard::digests_of(there));
}

TEST_F(shard_parameters_test, a_root_that_is_not_finite_is_not_published_and_loading_mends_what_it_spoiled) {
  for (const float wrong :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    auto numbers = shard_parameters::create(job({}), {0}).value();
    const auto first = test::training_shard::digests_of(numbers);
    const auto shape = common::shape_of(job({})->sampler, {0}, 0, {});
    std::vector<float> root(numbers.range().size, 1.0F);
    root.back() = wrong;
    const auto made = numbers.apply({0}, {0}, shape, test::whole_root(root), {});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, error_code::diverged);
    EXPECT_EQ(numbers.apply({0}, {0}, shape, test::whole_root(root), [] { return false; }).error().code,
              error_code::protocol)
        << "what was overwritten while it was read says nothing";
    ASSERT_TRUE(numbers.reset({1}));
    EXPECT_EQ(test::training_shard::digests_of(numbers), first);
  }
}

/// The gradient is finite, but where it is 0 Adam without eps divides 0 by 0.
TEST_F(shard_parameters_test, an_update_that_makes_no_number_is_not_published_and_says_where) {
  const auto context = job({"train.optimizer={adam: {lr: 0.1, eps: 0}}"});
  auto numbers = shard_parameters::create(context, {0}).value();
  const auto first = test::training_shard::digests_of(numbers);
  const auto shape = shape_of(context->sampler, {0}, 0, {});
  std::vector<float> root(numbers.range().size, 1.0F);
  root[2 * 64 + 5] = 0;
  const auto made = numbers.apply({0}, {0}, shape, test::whole_root(root), {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, error_code::diverged);
  EXPECT_THAT(made.error().message, testing::HasSubstr("nan of 'linear0.weight' at [2, 5]"));
  ASSERT_TRUE(numbers.reset({1}));
  EXPECT_EQ(test::training_shard::digests_of(numbers), first);
}

TEST_F(shard_parameters_test, the_learning_rate_follows_the_step) {
  const auto constant = job({});
  const auto falling = job({"train.lr_schedule={step: {step_size: 2}}"});
  test::training_shard one{constant}, other{falling};
  for (int step = 0; step < 2; ++step) {
    one.train();
    other.train();
  }
  EXPECT_EQ(other.digests(), one.digests());
  one.train();
  other.train();
  EXPECT_NE(other.digests(), one.digests());
}

TEST_F(shard_parameters_test, no_bit_depends_on_whether_a_step_was_begun_early) {
  const auto context = job({});
  test::training_shard whole{context}, parts{context};
  parts.parameters.use(std::make_shared<base::thread_team>(3));
  const auto size = parts.parameters.range().size;
  for (std::uint64_t step = 0; step < 3; ++step) {
    const auto record = whole.train();
    const auto shape = common::shape_of(context->sampler, {step}, 0, {});
    const std::vector<float> root(record.root.begin(), record.root.end());
    for (const std::uint64_t from : {size - 1, size / 2, size / 2, size / 3, std::uint64_t{1}})
      parts.parameters.apply_early(
          {0}, {step}, shape, from,
          [&, from](std::uint64_t begin, std::uint64_t end) {
            EXPECT_GE(begin, from);
            return std::span{root}.subspan(begin, end - begin);
          },
          [] { return true; });
    const auto made = parts.parameters.apply({0}, {step}, shape, test::whole_root(root), {});
    ASSERT_TRUE(made);
    EXPECT_TRUE(*made) << "the metrics are from the early part";
    EXPECT_EQ(test::training_shard::digests_of(parts.parameters), whole.digests()) << "step " << step;
  }
}

TEST_F(shard_parameters_test, what_was_begun_early_is_given_up_by_going_back) {
  const auto context = job({});
  test::training_shard numbers{context};
  const auto first = numbers.digests();
  const std::vector<float> root(numbers.parameters.range().size, 1.0F);
  const auto shape = common::shape_of(context->sampler, {0}, 0, {});
  numbers.parameters.apply_early({0}, {0}, shape, 1, test::whole_root(root), {});
  ASSERT_TRUE(numbers.parameters.reset({1}));
  EXPECT_EQ(numbers.digests(), first);
  numbers.train(0, {1});
  test::training_shard undisturbed{context};
  undisturbed.train();
  EXPECT_EQ(numbers.digests(), undisturbed.digests());
}

TEST_F(shard_parameters_test, an_early_part_that_is_not_finite_or_not_intact_is_seen_at_the_end) {
  const auto context = job({});
  const auto shape = common::shape_of(context->sampler, {0}, 0, {});
  const auto apply = [&](float last, bool is_intact) {
    auto numbers = shard_parameters::create(context, {0}).value();
    std::vector<float> root(numbers.range().size, 1.0F);
    root[root.size() / 2] = last;
    numbers.apply_early({0}, {0}, shape, 1, test::whole_root(root), [&] { return is_intact; });
    return numbers.apply({0}, {0}, shape, test::whole_root(root), {});
  };
  EXPECT_TRUE(apply(1, true));
  EXPECT_EQ(apply(std::numeric_limits<float>::infinity(), true).error().code, error_code::diverged);
  EXPECT_EQ(apply(1, false).error().code, error_code::protocol);
}

} // namespace
} // namespace dlrun::ps_shard
