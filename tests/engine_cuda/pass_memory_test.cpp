// What a pass takes of a device's memory, and what is said where that is too little.
#include "engine/cuda/pass_memory.hpp"

#include "engine/cuda/cuda_computer.hpp"
#include "kernels/cuda/stand_in/stand_in_device.hpp"
#include "tests/engine/gradient_cases.hpp"

#include <regex>

namespace dlrun::engine {
namespace {

using kernels::cuda::precision;
using kernels::cuda::stand_in_device;
using kernels::cuda::stand_in_settings;
using ::testing::AllOf;
using testing::build_model;
using testing::gradient_case;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::random_problem;

constexpr std::size_t array_slack = 256; ///< of each array, which a dry device rounds up
constexpr std::size_t arrays_max = 64;   ///< of the models here

struct pass_of {
  pass_kind kind;
  precision arithmetic;
};
std::vector<pass_of> all_passes() {
  std::vector<pass_of> all;
  for (const auto arithmetic : {precision::fp32, precision::bf16})
    for (const auto kind : {pass_kind::forward, pass_kind::forward_and_back})
      all.push_back({kind, arithmetic});
  return all;
}

class pass_memory_of : public ::testing::TestWithParam<gradient_case> {};

TEST_P(pass_memory_of, is_what_a_pass_allocates) {
  const auto m = build_model(GetParam().specification);
  const random_problem p(*m, GetParam().batch, GetParam().whole);
  const auto records = static_cast<std::int64_t>(p.labels.size());
  const batch all{p.records, p.labels, {}, records};
  for (const auto& [kind, arithmetic] : all_passes()) {
    auto device = std::make_unique<stand_in_device>(stand_in_settings{.arithmetic = arithmetic});
    const auto& there = *device;
    const auto on = make_cuda_computer(m, 1, std::move(device));
    ASSERT_TRUE(on->read({0}, p.parameters));
    const auto gradient = on->make_vector(m->layout().flat_size()).value();
    const auto before = there.free_bytes();
    std::vector<float> metrics(m->layout().metrics().size);
    ASSERT_TRUE(kind == pass_kind::forward ? on->evaluate(all, metrics)
                                           : on->forward_backward(all, {1, 2, 3}, *gradient, nullptr));
    const auto needs = memory_of_pass(m, records, kind, arithmetic);
    ASSERT_TRUE(needs) << needs.error().message;
    EXPECT_GE(needs->sum(), before - there.free_bytes());
    EXPECT_LE(needs->sum(), before - there.free_bytes() + arrays_max * array_slack);
  }
}

INSTANTIATE_TEST_SUITE_P(of, pass_memory_of, ::testing::ValuesIn(testing::gradient_cases),
                         [](const auto& info) { return std::string(info.param.name); });

class pass_memory_test : public ::testing::Test {
protected:
  /// What a pass over so many records says on a device with so much memory.
  result<void> pass(std::size_t memory, std::int64_t size,
                    pass_kind kind = pass_kind::forward_and_back) const {
    stand_in_settings settings;
    settings.memory_bytes = memory;
    const auto on = make_cuda_computer(m, 1, std::make_unique<stand_in_device>(settings));
    std::vector<float> parameters(m->layout().flat_size()), metrics(m->layout().metrics().size);
    if (auto done = on->read({0}, parameters); !done) return done;
    const auto gradient = on->make_vector(parameters.size());
    if (!gradient) return tl::unexpected(gradient.error());
    const std::vector<float> records(static_cast<std::size_t>(size * *element_count(m->input_shape())));
    const std::vector<std::int32_t> labels(static_cast<std::size_t>(size));
    const batch all{records, labels, {}, size};
    return kind == pass_kind::forward ? on->evaluate(all, metrics)
                                      : on->forward_backward(all, {1, 2, 3}, **gradient, nullptr);
  }

  std::shared_ptr<const model> m =
      build_model("input: [2, 12, 12] layers { name: 'wide' conv2d { out_channels: 8 kernel_size: 3 } } "
                  "layers { batch_norm {} } layers { relu {} } layers { flatten {} } "
                  "layers { linear { out_features: 10 } }");
};

TEST_F(pass_memory_test, as_many_records_fit_as_there_is_memory_for) {
  for (const auto& [kind, arithmetic] : all_passes())
    for (const std::size_t bytes : {100'000UL, 1'000'000UL, 3'000'000UL}) {
      const auto fit = records_that_fit(m, bytes, 10'000, kind, arithmetic);
      ASSERT_GE(fit, 2);
      EXPECT_LE(memory_of_pass(m, fit, kind, arithmetic)->sum(), bytes);
      EXPECT_GT(memory_of_pass(m, fit + 1, kind, arithmetic)->sum(), bytes);
      EXPECT_EQ(records_that_fit(m, bytes, fit, kind, arithmetic), fit - 1) << "below what is asked for";
    }
  EXPECT_EQ(records_that_fit(m, 1000, 10'000, pass_kind::forward_and_back, precision::fp32), 0);
  EXPECT_EQ(records_that_fit(m, 1'000'000, 1, pass_kind::forward_and_back, precision::fp32), 0)
      << "none is below one";
}

TEST_F(pass_memory_test, a_microbatch_that_does_not_fit_is_told_with_what_takes_how_much_and_one_that_fits) {
  const std::size_t memory = 2'000'000;
  const auto done = pass(memory, 500);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, error_code::limit_exceeded);
  const auto& text = done.error().message;
  EXPECT_THAT(text, AllOf(HasSubstr("A microbatch of 500 records needs "),
                          HasSubstr("for parameters and gradients"),
                          HasSubstr("for activations (the largest: 1.5 MiB of layer 'wide')"),
                          HasSubstr("for what layers keep"), HasSubstr("for libraries to compute in"),
                          HasSubstr("1.9 MiB were free")));
  std::smatch found;
  ASSERT_TRUE(std::regex_search(text, found, std::regex{"set train.microbatch_size: ([0-9]+)$"})) << text;
  const auto fit = std::stoll(found[1].str());
  EXPECT_GT(fit, 2);
  EXPECT_TRUE(pass(memory, fit));
  EXPECT_FALSE(pass(memory, fit + fit / 10 + 2)) << "it is no more careful than it has to be";
}

TEST_F(pass_memory_test, an_evaluation_that_does_not_fit_is_told_so_too) {
  EXPECT_TRUE(pass(2'000'000, 150, pass_kind::forward));
  const auto done = pass(1'000'000, 500, pass_kind::forward);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("records would fit: set train.microbatch_size: "));
}

TEST_F(pass_memory_test, a_device_that_is_too_small_for_any_microbatch_is_told_so) {
  const auto floats = m->layout().flat_size() * sizeof(float);
  const auto pass_alone = pass(2 * floats + 2000, 500);
  ASSERT_FALSE(pass_alone);
  EXPECT_THAT(pass_alone.error().message, HasSubstr("no microbatch fits: take a GPU with more memory"));
  const auto gradient = pass(floats + 1000, 500);
  ASSERT_FALSE(gradient);
  EXPECT_EQ(gradient.error().code, error_code::limit_exceeded);
  EXPECT_THAT(gradient.error().message,
              AllOf(HasSubstr("Parameters and gradients need "), HasSubstr(" were free: take a GPU")));
}

TEST_F(pass_memory_test, memory_that_others_have_taken_is_not_blamed_on_the_microbatch) {
  stand_in_settings settings;
  settings.faults.no_memory_at = 4; // the first that the pass allocates
  const auto on = make_cuda_computer(m, 1, std::make_unique<stand_in_device>(settings));
  std::vector<float> parameters(m->layout().flat_size());
  ASSERT_TRUE(on->read({0}, parameters));
  const auto gradient = on->make_vector(parameters.size()).value();
  const std::vector<float> records(2 * 288);
  const std::vector<std::int32_t> labels(2);
  const auto done = on->forward_backward({records, labels, {}, 2}, {1, 2, 3}, *gradient, nullptr);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message,
              AllOf(HasSubstr("others have taken of that"), Not(HasSubstr("would fit"))));
}

} // namespace
} // namespace dlrun::engine
