#include "engine/computer.hpp"

#include "engine/network.hpp"
#include "tests/engine/remote_computer.hpp"
#include "tests/engine/spec_builder.hpp"

#include <cmath>
#include <gmock/gmock.h>
#include <numeric>

namespace dlrun::engine {
namespace {

using testing::build_model;
using ::testing::HasSubstr;

/// A model with initial values, two records for it, and both kinds of computer.
class computer_test : public ::testing::Test {
protected:
  computer_test() {
    small->initialise(1, parameters);
    std::iota(records.begin(), records.end(), -3.0F);
    computers.push_back(make_computer(small, 1));
    computers.push_back(std::make_unique<test::remote_computer>(small, 1));
    for (auto& one : computers) EXPECT_TRUE(one->read({0}, parameters));
  }
  batch both() const { return {records, labels, {}, 2}; }

  std::shared_ptr<const model> small =
      build_model("input: [6] layers { linear { out_features: 50 } } layers { relu {} } "
                  "layers { dropout {} } layers { linear { out_features: 3 } }");
  std::vector<float> parameters = std::vector<float>(small->layout().flat_size());
  std::vector<float> records = std::vector<float>(12);
  std::vector<std::int32_t> labels{2, 0};
  std::vector<std::unique_ptr<computer>> computers;
};

TEST_F(computer_test, gives_the_bits_of_the_network) {
  network plain{small, 1};
  std::vector<float> gradient(parameters.size()), metrics(small->layout().metrics().size), outputs(6);
  ASSERT_TRUE(plain.forward_backward(parameters, both(), {1, 2, 3}, gradient));
  ASSERT_TRUE(plain.evaluate(parameters, both(), metrics));
  ASSERT_TRUE(plain.predict(parameters, records, 2, outputs));
  for (const auto& one : computers) {
    auto vector = one->make_vector(parameters.size()).value();
    ASSERT_EQ(vector->size(), parameters.size());
    ASSERT_TRUE(one->forward_backward(both(), {1, 2, 3}, *vector, nullptr));
    std::vector<float> copied(parameters.size()), own_metrics(metrics.size()), own_outputs(6);
    ASSERT_TRUE(one->copy(*vector, 0, copied));
    EXPECT_EQ(copied, gradient);
    ASSERT_TRUE(one->evaluate(both(), own_metrics));
    EXPECT_EQ(own_metrics, metrics);
    ASSERT_TRUE(one->predict(records, 2, own_outputs));
    EXPECT_EQ(own_outputs, outputs);
  }
}

TEST_F(computer_test, computes_from_what_was_read_last) {
  std::vector<float> before(6), after(6), again(6), others(parameters.size());
  small->initialise(2, others);
  for (const auto& one : computers) {
    ASSERT_TRUE(one->predict(records, 2, before));
    ASSERT_TRUE(one->read({0}, others)); // the version's number says nothing
    ASSERT_TRUE(one->predict(records, 2, after));
    EXPECT_NE(before, after);
    ASSERT_TRUE(one->read({0}, parameters));
    ASSERT_TRUE(one->predict(records, 2, again));
    EXPECT_EQ(before, again);
  }
}

TEST_F(computer_test, adds_clears_and_copies_parts_of_vectors) {
  for (const auto& one : computers) {
    std::vector<float> memory(parameters.size());
    auto lent = one->lend(memory).value();
    auto other = one->make_vector(parameters.size()).value();
    ASSERT_TRUE(one->forward_backward(both(), {1, 2, 3}, *lent, nullptr));
    ASSERT_TRUE(one->forward_backward(both(), {1, 2, 4}, *other, nullptr));
    std::vector<float> first(parameters.size()), second(parameters.size());
    ASSERT_TRUE(one->copy(*lent, 0, first));
    ASSERT_TRUE(one->copy(*other, 0, second));
    one->add(*lent, *other, 10, 20);
    one->clear(*lent, 30, parameters.size());
    ASSERT_TRUE(one->copy(*lent, 0, memory));
    for (std::size_t i = 0; i < memory.size(); ++i) {
      const float expected = i >= 30 ? 0.0F : i >= 10 && i < 20 ? first[i] + second[i] : first[i];
      ASSERT_EQ(memory[i], expected) << i;
    }
  }
}

TEST_F(computer_test, the_processor_works_in_the_memory_that_is_lent) {
  std::vector<float> memory(parameters.size(), std::nanf(""));
  auto lent = computers[0]->lend(memory).value();
  EXPECT_EQ(lent->host().data(), memory.data());
  ASSERT_TRUE(computers[0]->forward_backward(both(), {1, 2, 3}, *lent, nullptr));
  EXPECT_TRUE(std::ranges::all_of(memory, [](float value) { return std::isfinite(value); }));
}

TEST_F(computer_test, tells_what_is_final_on_the_way_back) {
  for (const auto& one : computers) {
    auto vector = one->make_vector(parameters.size()).value();
    std::vector<std::uint64_t> told;
    ASSERT_TRUE(
        one->forward_backward(both(), {1, 2, 3}, *vector, [&](std::uint64_t from) { told.push_back(from); }));
    EXPECT_FALSE(told.empty());
    EXPECT_TRUE(std::ranges::is_sorted(told, std::greater{}));
  }
}

TEST_F(computer_test, what_the_loss_does_not_take_is_the_error_of_the_network) {
  labels[1] = 7;
  for (const auto& one : computers) {
    auto vector = one->make_vector(parameters.size()).value();
    EXPECT_EQ(one->forward_backward(both(), {1, 2, 3}, *vector, nullptr).error().code, error_code::bad_data);
  }
}

TEST_F(computer_test, the_fingerprint_names_libraries_processor_and_threads) {
  EXPECT_THAT(computers[0]->fingerprint(), HasSubstr("oneDNN "));
  EXPECT_THAT(computers[0]->fingerprint(), HasSubstr("| 1 threads"));
  EXPECT_NE(make_computer(small, 2)->fingerprint(), computers[0]->fingerprint());
}

} // namespace
} // namespace dlrun::engine
