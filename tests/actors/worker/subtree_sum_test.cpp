#include "actors/worker/subtree_sum.hpp"

#include "tests/engine/remote_computer.hpp"
#include "tests/engine/spec_builder.hpp"

#include <gtest/gtest.h>

namespace dlrun::worker {
namespace {

constexpr std::uint32_t slots = 7; // ((01)(23))((45)6)

/// Slots of one record each, summed by either kind of computer.
class subtree_sum_test : public ::testing::Test {
protected:
  subtree_sum_test() { model->initialise(1, parameters); }

  result<void> gradient_of(engine::computer& on, slot_id slot, engine::computer_vector& out,
                           const subtree_sum::progress& tell) const {
    const std::vector<float> record{0.1F * static_cast<float>(slot.value), 1, -2, 0.7F};
    const std::vector<std::int32_t> label{static_cast<std::int32_t>(slot.value % 3)};
    return on.forward_backward({record, label, {}, 1}, {1, 2, slot.value}, out, tell);
  }
  std::vector<float> alone(engine::computer& on, std::uint32_t slot) const {
    auto vector = on.make_vector(parameters.size()).value();
    EXPECT_TRUE(gradient_of(on, {slot}, *vector, nullptr));
    std::vector<float> floats(parameters.size());
    EXPECT_TRUE(on.copy(*vector, 0, floats));
    return floats;
  }
  static std::vector<float> plus(const std::vector<float>& left, const std::vector<float>& right) {
    std::vector<float> sum(left.size());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = left[i] + right[i];
    return sum;
  }
  std::vector<float> by_hand(engine::computer& on) const {
    const auto pair = [&](std::uint32_t slot) { return plus(alone(on, slot), alone(on, slot + 1)); };
    return plus(plus(pair(0), pair(2)), plus(pair(4), alone(on, 6)));
  }

  std::shared_ptr<const engine::model> model =
      engine::testing::build_model("input: [4] layers { linear { out_features: 9 } } layers { relu {} } "
                                   "layers { linear { out_features: 3 } }");
  std::vector<float> parameters = std::vector<float>(model->layout().flat_size());
};

TEST_F(subtree_sum_test, adds_in_the_order_of_the_tree_wherever_the_vectors_lie) {
  engine::cpu_computer here{model, 1};
  test::remote_computer there{model, 1};
  for (engine::computer* one : std::initializer_list<engine::computer*>{&here, &there}) {
    ASSERT_TRUE(one->read({0}, parameters));
    const auto expected = by_hand(*one);
    subtree_sum sum{*one, parameters.size()};
    for (int round = 0; round < 2; ++round) { // the second finds memory of the first
      std::vector<float> memory(parameters.size());
      auto out = one->lend(memory).value();
      std::vector<std::uint64_t> told;
      const auto done = sum.run(
          protocol::make_slot_range(0, slots),
          [&](slot_id slot, engine::computer_vector& into, const subtree_sum::progress& tell) {
            return gradient_of(*one, slot, into, tell);
          },
          *out, [&](std::uint64_t from) { told.push_back(from); });
      ASSERT_TRUE(done) << done.error().message;
      ASSERT_TRUE(one->copy(*out, 0, memory));
      EXPECT_EQ(memory, expected);
      EXPECT_FALSE(told.empty());
    }
  }
}

/// What is told to be final is, at that moment: a PS shard may use it.
TEST_F(subtree_sum_test, what_is_told_to_be_final_is_the_sum) {
  test::remote_computer computer{model, 1};
  ASSERT_TRUE(computer.read({0}, parameters));
  const auto expected = by_hand(computer);
  subtree_sum sum{computer, parameters.size()};
  auto out = computer.make_vector(parameters.size()).value();
  const auto done = sum.run(
      protocol::make_slot_range(0, slots),
      [&](slot_id slot, engine::computer_vector& into, const subtree_sum::progress& tell) {
        return gradient_of(computer, slot, into, tell);
      },
      *out,
      [&](std::uint64_t from) {
        std::vector<float> part(parameters.size() - from);
        EXPECT_TRUE(computer.copy(*out, from, part));
        EXPECT_TRUE(std::ranges::equal(part, std::span{expected}.subspan(from)));
      });
  EXPECT_TRUE(done);
}

TEST_F(subtree_sum_test, the_first_error_ends_it) {
  engine::cpu_computer computer{model, 1};
  subtree_sum sum{computer, parameters.size()};
  auto out = computer.make_vector(parameters.size()).value();
  std::uint32_t asked = 0;
  const auto done = sum.run(
      protocol::make_slot_range(0, slots),
      [&](slot_id slot, engine::computer_vector&, const subtree_sum::progress&) -> result<void> {
        ++asked;
        if (slot.value == 3) return fail(error_code::bad_data, "no");
        return {};
      },
      *out, nullptr);
  EXPECT_EQ(done.error().code, error_code::bad_data);
  EXPECT_EQ(asked, 4U);
}

} // namespace
} // namespace dlrun::worker
