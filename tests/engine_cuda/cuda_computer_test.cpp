// A computer on a device: vectors, progress, what fails, and layers that the host computes.
#include "engine/cuda/cuda_computer.hpp"
#include "kernels/cuda/stand_in/stand_in_device.hpp"
#include "tests/engine/spec_builder.hpp"

#include <cmath>
#include <dlrun/layer.hpp>
#include <numeric>
#include <regex>

namespace dlrun::engine {
namespace {

using kernels::cuda::stand_in_device;
using kernels::cuda::stand_in_settings;
using testing::build_model;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class cuda_computer_test : public ::testing::Test {
protected:
  std::unique_ptr<computer> make(const std::shared_ptr<const model>& m,
                                 const stand_in_settings& settings = {}) {
    parameters.resize(m->layout().flat_size());
    m->initialise(1, parameters);
    records.resize(2 * static_cast<std::size_t>(*element_count(m->input_shape())));
    std::iota(records.begin(), records.end(), 0.0F);
    auto made = make_cuda_computer(m, 1, std::make_unique<stand_in_device>(settings));
    EXPECT_TRUE(made->read({0}, parameters));
    return made;
  }
  batch both() const { return {records, labels, {}, 2}; }

  std::shared_ptr<const model> small =
      build_model("input: [6] layers { linear { out_features: 50 } } layers { relu {} } "
                  "layers { dropout {} } layers { linear { out_features: 3 } }");
  std::vector<float> parameters, records;
  std::vector<std::int32_t> labels{2, 0};
};

TEST_F(cuda_computer_test, adds_clears_and_copies_parts_of_vectors) {
  const auto one = make(small);
  auto sum = one->make_vector(parameters.size()).value(), other = one->make_vector(parameters.size()).value();
  ASSERT_TRUE(one->forward_backward(both(), {1, 2, 3}, *sum, nullptr));
  ASSERT_TRUE(one->forward_backward(both(), {1, 2, 4}, *other, nullptr));
  std::vector<float> first(parameters.size()), second(parameters.size()), after(parameters.size());
  ASSERT_TRUE(one->copy(*sum, 0, first));
  ASSERT_TRUE(one->copy(*other, 0, second));
  ASSERT_NE(first, second);
  one->add(*sum, *other, 10, 20);
  one->clear(*sum, 30, parameters.size());
  ASSERT_TRUE(one->copy(*sum, 0, after));
  for (std::size_t i = 0; i < after.size(); ++i)
    ASSERT_EQ(after[i], i >= 30 ? 0.0F : i >= 10 && i < 20 ? first[i] + second[i] : first[i]) << i;
}

/// As a worker does it: parts are added and copied while the rest is on its way.
TEST_F(cuda_computer_test, what_is_told_of_can_be_added_and_copied_at_once) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    stand_in_settings settings;
    settings.seed = seed;
    const auto one = make(small, settings);
    auto sum = one->make_vector(parameters.size()).value(),
         other = one->make_vector(parameters.size()).value();
    std::vector<float> expected(parameters.size()), parts(parameters.size());
    ASSERT_TRUE(one->forward_backward(both(), {1, 2, 3}, *sum, nullptr));
    ASSERT_TRUE(one->forward_backward(both(), {1, 2, 4}, *other, nullptr));
    one->add(*sum, *other, 0, parameters.size());
    ASSERT_TRUE(one->copy(*sum, 0, expected));

    ASSERT_TRUE(one->forward_backward(both(), {1, 2, 3}, *sum, nullptr));
    one->clear(*other, 0, parameters.size()); // what is taken too early is not what it will be
    std::size_t end = parameters.size();
    std::vector<std::uint64_t> told;
    const auto take = [&](std::uint64_t from) {
      one->add(*sum, *other, from, end);
      ASSERT_TRUE(one->copy(*sum, from, std::span{parts}.subspan(from, end - from)));
      end = from;
      told.push_back(from);
    };
    ASSERT_TRUE(one->forward_backward(both(), {1, 2, 4}, *other, take));
    take(0);
    EXPECT_THAT(told, ::testing::SizeIs(2)); // the second layer, and the rest
    EXPECT_EQ(parts, expected);
  }
}

/// Its caller may write where the pass has read, and add what the pass has made.
TEST_F(cuda_computer_test, a_pass_leaves_nothing_to_do_when_it_returns) {
  const auto tiny = build_model("input: [6] layers { linear { out_features: 3 } }");
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    stand_in_settings settings;
    settings.seed = seed;
    auto device = std::make_unique<stand_in_device>(settings);
    const auto& lanes = *device;
    parameters.resize(tiny->layout().flat_size());
    tiny->initialise(1, parameters);
    records.resize(12);
    const auto one = make_cuda_computer(tiny, 1, std::move(device));
    ASSERT_TRUE(one->read({0}, parameters));
    auto gradient = one->make_vector(parameters.size()).value();
    ASSERT_TRUE(one->forward_backward(both(), {1, 2, 3}, *gradient, nullptr));
    EXPECT_TRUE(lanes.is_idle()) << "gradient, seed " << seed;
    std::vector<float> metrics(tiny->layout().metrics().size), outputs(6);
    ASSERT_TRUE(one->evaluate(both(), metrics));
    EXPECT_TRUE(lanes.is_idle()) << "evaluation, seed " << seed;
    ASSERT_TRUE(one->predict(records, 2, outputs));
    EXPECT_TRUE(lanes.is_idle()) << "prediction, seed " << seed;
  }
}

TEST_F(cuda_computer_test, a_vector_has_the_memory_of_the_one_before) {
  stand_in_settings settings;
  settings.memory_bytes = std::size_t{1} << 20;
  const auto one = make(build_model("input: [100] layers { linear { out_features: 500 } }"), settings);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(one->make_vector(parameters.size())) << i; // 200 KB each
}

TEST_F(cuda_computer_test, says_when_there_is_no_memory) {
  stand_in_settings settings;
  settings.memory_bytes = 4096;
  const auto one = make_cuda_computer(small, 1, std::make_unique<stand_in_device>(settings));
  EXPECT_EQ(one->make_vector(5000).error().code, error_code::limit_exceeded);
}

/// Whichever allocation of a pass it is.
TEST_F(cuda_computer_test, says_when_there_is_no_memory_for_any_part_of_a_pass) {
  for (int at = 1;; ++at) {
    stand_in_settings settings;
    settings.faults.no_memory_at = at;
    parameters.resize(small->layout().flat_size());
    small->initialise(1, parameters);
    records.resize(12);
    const auto one = make_cuda_computer(small, 1, std::make_unique<stand_in_device>(settings));
    auto done = one->read({0}, parameters);
    if (done) {
      auto gradient = one->make_vector(parameters.size());
      done = gradient ? one->forward_backward(both(), {1, 2, 3}, **gradient, nullptr)
                      : result<void>{tl::unexpected(gradient.error())};
    }
    if (done) {
      EXPECT_GT(at, 8);
      return;
    }
    EXPECT_EQ(done.error().code, error_code::limit_exceeded) << at;
  }
}

TEST_F(cuda_computer_test, a_device_that_failed_is_the_error_of_the_pass) {
  for (const auto& fault :
       {kernels::cuda::stand_in_faults{.no_memory_at = 0, .fails_at_step = 4, .hangs_at_step = 0},
        kernels::cuda::stand_in_faults{.no_memory_at = 0, .fails_at_step = 0, .hangs_at_step = 4}}) {
    stand_in_settings settings;
    settings.faults = fault;
    const auto one = make(small, settings);
    auto gradient = one->make_vector(parameters.size()).value();
    EXPECT_EQ(one->forward_backward(both(), {1, 2, 3}, *gradient, nullptr).error().code, error_code::system);
    EXPECT_EQ(one->evaluate(both(), std::span<float>{parameters}.first(small->layout().metrics().size))
                  .error()
                  .code,
              error_code::system);
  }
}

/// Also one that is a graph. The embedding says of a bad index when the way back is in the lane.
TEST_F(cuda_computer_test, a_pass_that_has_an_error_leaves_nothing_to_do_either) {
  const auto table = build_model(
      "input: [3] layers { embedding { num_embeddings: 10 embedding_dim: 2 } } layers { flatten {} } "
      "layers { linear { out_features: 3 } } layers { relu {} } layers { linear { out_features: 3 } }");
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    stand_in_settings settings;
    settings.seed = seed;
    auto device = std::make_unique<stand_in_device>(settings);
    const auto& lanes = *device;
    parameters.resize(table->layout().flat_size());
    table->initialise(1, parameters);
    const auto one = make_cuda_computer(table, 1, std::move(device));
    ASSERT_TRUE(one->read({0}, parameters));
    auto gradient = one->make_vector(parameters.size()).value();
    for (int pass = 0; pass < 4; ++pass) {
      records = {0, 1, 2, 3, 4, pass == 3 ? 10.0F : 5.0F};
      EXPECT_EQ(one->forward_backward(both(), {1, 2, 3}, *gradient, nullptr).has_value(), pass < 3);
      EXPECT_TRUE(lanes.is_idle()) << "seed " << seed << ", pass " << pass;
    }
    EXPECT_GT(lanes.counts().graphs, 0);
  }
}

/// Then the end of the pass waits for nothing.
TEST_F(cuda_computer_test, nor_does_a_pass_that_could_not_make_an_event) {
  stand_in_settings settings;
  settings.faults.no_event_at = 3; // the first two are those of the outputs
  auto device = std::make_unique<stand_in_device>(settings);
  const auto& lanes = *device;
  make(small);
  const auto one = make_cuda_computer(small, 1, std::move(device));
  ASSERT_TRUE(one->read({0}, parameters));
  auto gradient = one->make_vector(parameters.size()).value();
  const auto done = one->forward_backward(both(), {1, 2, 3}, *gradient, [](auto) {});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, error_code::system);
  EXPECT_TRUE(lanes.is_idle());
}

TEST_F(cuda_computer_test, a_target_that_the_loss_does_not_take_is_bad_data) {
  labels[1] = 7;
  const auto one = make(small);
  auto gradient = one->make_vector(parameters.size()).value();
  EXPECT_EQ(one->forward_backward(both(), {1, 2, 3}, *gradient, nullptr).error().code, error_code::bad_data);
}

TEST_F(cuda_computer_test, a_bad_index_is_told_of_as_on_the_processor_and_before_any_part) {
  const auto table =
      build_model("input: [3] layers { name: 'table' embedding { num_embeddings: 1001 embedding_dim: 2 } } "
                  "layers { flatten {} } layers { linear { out_features: 3 } }");
  for (const auto arithmetic : {kernels::cuda::precision::fp32, kernels::cuda::precision::bf16}) {
    stand_in_settings settings;
    settings.arithmetic = arithmetic;
    const auto one = make(table, settings);
    const auto here = make_computer(table, 1);
    ASSERT_TRUE(here->read({0}, parameters));
    for (const float bad : {1001.0F, -1.0F, 0.5F, 1000.5F}) { // bf16 has 1000
      records = {0, 1, 2, 3, bad, bad};
      auto gradient = one->make_vector(parameters.size()).value(),
           other = here->make_vector(parameters.size()).value();
      bool told = false;
      const auto done = one->forward_backward(both(), {1, 2, 3}, *gradient, [&](auto) { told = true; });
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().message,
                here->forward_backward(both(), {1, 2, 3}, *other, nullptr).error().message);
      EXPECT_EQ(done.error().code, error_code::bad_data);
      EXPECT_FALSE(told);
      std::vector<float> outputs(6);
      EXPECT_EQ(one->predict(records, 2, outputs).error().code, error_code::bad_data);
    }
    records = {0, 1, 2, 3, 1000, 0};
    auto gradient = one->make_vector(parameters.size()).value();
    EXPECT_TRUE(one->forward_backward(both(), {1, 2, 3}, *gradient, nullptr));
  }
}

/// bf16 has none of these numbers.
TEST_F(cuda_computer_test, in_bf16_an_embedding_reads_the_rows_that_the_records_name) {
  for (const std::string before : {"", "layers { select { first: 1 count: 2 } } layers { flatten {} } "}) {
    const auto table =
        build_model("input: [" + std::string{before.empty() ? "2" : "4"} + "] " + before +
                    "layers { name: 'table' embedding { num_embeddings: 70000 embedding_dim: 2 } } "
                    "layers { flatten {} } layers { linear { out_features: 3 } }");
    stand_in_settings settings;
    settings.arithmetic = kernels::cuda::precision::bf16;
    const auto one = make(table, settings);
    records = before.empty() ? std::vector<float>{257, 1001, 65537, 69999}
                             : std::vector<float>{0.1F, 257, 1001, 3, 0.1F, 65537, 69999, 3};
    auto gradient = one->make_vector(parameters.size()).value();
    ASSERT_TRUE(one->forward_backward(both(), {1, 2, 3}, *gradient, nullptr));
    std::vector<float> copied(parameters.size());
    ASSERT_TRUE(one->copy(*gradient, 0, copied));
    std::vector<std::size_t> rows;
    for (std::size_t row = 0; row < 70000; ++row)
      if (copied[2 * row] != 0.0F) rows.push_back(row);
    EXPECT_THAT(rows, ElementsAre(257, 1001, 65537, 69999));
  }
}

/// y = w x, with a weight of one value, and channels first.
class scaled final : public custom_layer {
public:
  explicit scaled(shape input)
      : input_{std::move(input)} {}
  shape output_shape() const override { return input_; }
  std::vector<layer_tensor> tensors() const override { return {{"w", {1}, tensor_kind::parameter, 2, 2}}; }
  std::unique_ptr<operation> make_operation() const override { return std::make_unique<at_work>(); }

private:
  class at_work final : public operation {
    result<void> forward(const pass& now, std::span<const std::span<const float>> inputs,
                         std::span<float> output) override {
      for (std::size_t i = 0; i < output.size(); ++i) output[i] = now.tensors[0][0] * inputs[0][i];
      return {};
    }
    void backward(const pass& now, std::span<const std::span<const float>> inputs, std::span<const float>,
                  std::span<const float> dy, std::span<const std::span<float>> dx) override {
      now.gradients[0][0] = std::inner_product(dy.begin(), dy.end(), inputs[0].begin(), 0.0F);
      for (std::size_t i = 0; i < dx[0].size(); ++i) dx[0][i] = now.tensors[0][0] * dy[i];
    }
  };
  shape input_;
};

/// With a layer of that kind between two of the device.
std::shared_ptr<const model> build_mixed() {
  static const auto registered = register_layer(
      "scaled", [](const layer_request& request) -> result<std::unique_ptr<const custom_layer>> {
        return std::make_unique<scaled>(request.inputs[0]);
      });
  EXPECT_TRUE(registered);
  return build_model("input: [2, 3, 3] layers { conv2d { out_channels: 2 kernel_size: 2 } } "
                     "layers { name: 'own' custom { type: 'scaled' } } layers { flatten {} } "
                     "layers { linear { out_features: 3 } }");
}

TEST_F(cuda_computer_test, the_host_computes_layers_of_a_program) {
  const auto mixed = build_mixed();
  EXPECT_THAT(make_computer(mixed, 1)->host_layers(), ::testing::IsEmpty());
  for (const auto arithmetic : {kernels::cuda::precision::fp32, kernels::cuda::precision::bf16}) {
    stand_in_settings settings;
    settings.arithmetic = arithmetic;
    const auto one = make(mixed, settings);
    EXPECT_THAT(one->host_layers(), ElementsAre("own"));
    const auto here = make_computer(mixed, 1);
    ASSERT_TRUE(here->read({0}, parameters));
    std::vector<float> there_gradient(parameters.size()), here_gradient(parameters.size());
    const double tolerance = arithmetic == kernels::cuda::precision::fp32 ? 1e-5 : 0.05;
    for (int pass = 0; pass < 2; ++pass) {
      auto gradient = one->make_vector(parameters.size()).value(),
           other = here->make_vector(parameters.size()).value();
      ASSERT_TRUE(one->forward_backward(both(), {1, 2, 3}, *gradient, nullptr));
      ASSERT_TRUE(one->copy(*gradient, 0, there_gradient));
      ASSERT_TRUE(here->forward_backward(both(), {1, 2, 3}, *other, nullptr));
      ASSERT_TRUE(here->copy(*other, 0, here_gradient));
      double apart = 0, length = 0;
      for (std::size_t i = 0; i < here_gradient.size(); ++i) {
        apart += std::pow(static_cast<double>(there_gradient[i]) - static_cast<double>(here_gradient[i]), 2);
        length += std::pow(static_cast<double>(here_gradient[i]), 2);
      }
      EXPECT_LE(std::sqrt(apart), tolerance * std::sqrt(length));
    }
  }
}

/// Seconds that pass with each reading; it is read when nothing is left to do on this device.
const stand_in_device* at_rest = nullptr;
int readings = 0;
std::vector<std::int64_t> steps_by_then; ///< of the device, at each reading
host_watch::time_point read_seconds() {
  EXPECT_TRUE(at_rest->is_idle()) << "reading " << readings;
  steps_by_then.push_back(at_rest->counts().single_steps);
  return host_watch::time_point{std::chrono::seconds{++readings}};
}

TEST_F(cuda_computer_test, the_time_of_those_layers_is_neither_that_of_the_device_nor_without_their_copies) {
  for (const auto& [m, laps] : {std::pair{build_mixed(), 2}, std::pair{small, 0}}) {
    for (const auto arithmetic : {kernels::cuda::precision::fp32, kernels::cuda::precision::bf16}) {
      make(m);
      stand_in_settings settings;
      settings.arithmetic = arithmetic;
      auto device = std::make_unique<stand_in_device>(settings);
      at_rest = device.get();
      readings = 0;
      steps_by_then.clear();
      const auto one = make_cuda_computer(m, 1, std::move(device), read_seconds);
      ASSERT_TRUE(one->read({0}, parameters));
      auto gradient = one->make_vector(parameters.size()).value();
      ASSERT_TRUE(one->forward_backward(both(), {1, 2, 3}, *gradient, nullptr));
      EXPECT_EQ(readings, 2 * laps) << "there and back";
      EXPECT_EQ(one->host_time(), std::chrono::seconds{laps});
      if (arithmetic != kernels::cuda::precision::fp32) continue; // else copies are copies alone
      for (std::size_t lap = 0; lap + 1 < steps_by_then.size(); lap += 2)
        EXPECT_EQ(steps_by_then[lap], steps_by_then[lap + 1]) << "steps of other layers in lap " << lap / 2;
    }
  }
}

TEST_F(cuda_computer_test, a_batch_may_be_smaller_or_larger_than_the_one_before) {
  const auto one = make(small);
  const auto here = make_computer(small, 1);
  ASSERT_TRUE(here->read({0}, parameters));
  for (const std::size_t size : {2, 1, 7, 3}) {
    std::vector<float> some(size * 6, 0.5F), made(size * 3), expected(size * 3);
    ASSERT_TRUE(one->predict(some, static_cast<std::int64_t>(size), made));
    ASSERT_TRUE(here->predict(some, static_cast<std::int64_t>(size), expected));
    for (std::size_t i = 0; i < made.size(); ++i) ASSERT_NEAR(made[i], expected[i], 1e-5) << size;
  }
}

TEST_F(cuda_computer_test, the_fingerprint_names_the_device_and_the_processor) {
  const auto one = make(small);
  EXPECT_THAT(one->fingerprint(), HasSubstr("stand-in"));
  EXPECT_THAT(one->fingerprint(), HasSubstr("fp32"));
  EXPECT_THAT(one->fingerprint(), HasSubstr(make_computer(small, 1)->fingerprint()));
  stand_in_settings settings;
  settings.arithmetic = kernels::cuda::precision::tf32;
  EXPECT_EQ(make(small, settings)->fingerprint(),
            std::regex_replace(one->fingerprint(), std::regex{"fp32"}, "tf32"));
}

} // namespace
} // namespace dlrun::engine
