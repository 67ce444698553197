// cuDNN's plans for GPUs that are not here, made as the module makes them: for each convolution
// that models of the benchmarks and examples ask a device for.
#include "benchmarks/benchmark_models.hpp"
#include "engine/cuda/cuda_computer.hpp"
#include "engine/cuda/dry_device.hpp"
#include "kernels/cuda/alignment.hpp"
#include "kernels/cuda/convolution_plan.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <sstream>

namespace dlrun::kernels::cuda {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

using pass = convolution::pass;

constexpr std::int64_t resnet_batch = 64, cnn_batch = 128;

std::string description_of(const std::string& gpu) {
  std::ifstream file(std::string{DLRUN_GPU_DESCRIPTIONS} + "/" + gpu + ".json");
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_GT(text.str().size(), 0U) << gpu;
  return text.str();
}

plan_device described(const std::string& gpu) { return plan_device::described(description_of(gpu)).value(); }

/// A pass, and how its tensors lie.
struct asked {
  convolution what;
  std::int64_t alignment;
};

/// What a model asks a device for in a pass forward and back.
std::vector<convolution> steps_of(const std::string& text, std::int64_t batch) {
  const auto model = benchmarks::model_of(text);
  std::vector<convolution> steps;
  const auto keep = [&](const step& one) {
    if (const auto* const convolved = std::get_if<convolution>(&one)) steps.push_back(*convolved);
  };
  const auto computer =
      engine::make_cuda_computer(model, 1, std::make_unique<engine::dry_device>(precision::fp32, keep));
  std::vector<float> parameters(model->layout().flat_size()),
      records(static_cast<std::size_t>(batch * *element_count(model->input_shape())));
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(batch));
  EXPECT_TRUE(computer->read({0}, parameters));
  const auto gradient = computer->make_vector(parameters.size()).value();
  EXPECT_TRUE(computer->forward_backward({records, labels, {}, batch}, {1, 2, 3}, *gradient, nullptr));
  return steps;
}

/// The three passes of each geometry among `steps`: also the gradient by the input of a first
/// layer, for which nobody asks.
std::vector<asked> passes_of(const std::vector<convolution>& steps) {
  std::map<std::string, asked> kinds;
  for (auto one : steps) {
    const std::int64_t alignment = common_alignment({one.x, one.w, one.y});
    for (const auto which : {pass::forward, pass::backward_data, pass::backward_weights}) {
      one.which = which;
      kinds.emplace(fmt::format("{}, alignment {}", describe(one), alignment), asked{one, alignment});
    }
  }
  std::vector<asked> found;
  for (const auto& [name, one] : kinds) found.push_back(one);
  return found;
}

/// Those of both models.
const std::vector<asked>& all_asked() {
  static const auto all = [] {
    auto steps = steps_of(benchmarks::resnet50(), resnet_batch);
    // 53 convolutions, each forward and its weights; of all but the first the gradient by the
    // input.
    EXPECT_EQ(steps.size(), 53U * 3 - 1);
    const auto more = steps_of(benchmarks::cnn, cnn_batch);
    EXPECT_EQ(more.size(), 2U * 3 - 1);
    steps.insert(steps.end(), more.begin(), more.end());
    return passes_of(steps);
  }();
  return all;
}

TEST(plans_asked_for, are_those_of_23_geometries_of_resnet50_and_2_of_the_cnn) {
  EXPECT_EQ(all_asked().size(), 75U);
}

/// As cuda_device leaves to a lane.
std::int64_t workspace_max(const std::string& gpu) {
  const auto text = description_of(gpu);
  const std::string key = "\"totalGlobalMem\": ";
  return std::stoll(text.substr(text.find(key) + key.size())) / 8;
}

/// Channels are innermost: outer, channel, row, column.
std::vector<std::int64_t> channels_last(std::int64_t channels, std::int64_t height, std::int64_t width) {
  return {channels * height * width, 1, channels * width, channels};
}

void expect_promised(const convolution_plan& plan, const asked& one, precision arithmetic,
                     std::int64_t workspace) {
  const auto notes = plan.numerical_notes();
  for (const auto bad : {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS,
                         CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION})
    EXPECT_THAT(notes, Not(Contains(bad)));
  if (arithmetic == precision::fp32) {
    EXPECT_THAT(notes, Not(Contains(CUDNN_NUMERICAL_NOTE_TENSOR_CORE)));
  }
  EXPECT_THAT(plan.behaviour_notes(), Not(Contains(CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION)));
  EXPECT_LE(plan.workspace(), static_cast<std::size_t>(workspace));
  const auto& g = one.what.geometry;
  EXPECT_THAT(plan.strides(), ElementsAre(channels_last(g.in_channels, g.height, g.width),
                                          channels_last(g.in_channels, g.kernel_height(), g.kernel),
                                          channels_last(g.out_channels, g.out_height, g.out_width)));
}

class plans : public testing::TestWithParam<std::tuple<const char*, precision>> {};

TEST_P(plans, are_deterministic_and_in_the_precision_for_each_convolution) {
  const auto& [gpu, arithmetic] = GetParam();
  const auto on = described(gpu);
  const auto workspace = workspace_max(gpu);
  std::size_t on_tensor_cores = 0, largest = 0;
  for (const auto& one : all_asked()) {
    SCOPED_TRACE(describe(one.what));
    const auto plan = convolution_plan::make(on, one.what, arithmetic, one.alignment, workspace);
    ASSERT_TRUE(plan) << plan.error().message;
    expect_promised(*plan, one, arithmetic, workspace);
    const auto notes = plan->numerical_notes();
    on_tensor_cores += static_cast<std::size_t>(std::ranges::count(notes, CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
    largest = std::max(largest, plan->workspace());
  }
  fmt::print("{} in {}: {} plans, {} on tensor cores, at most {} MiB to compute in\n", gpu,
             name_of(arithmetic), all_asked().size(), on_tensor_cores, largest >> 20);
  if (arithmetic != precision::fp32) {
    EXPECT_GE(on_tensor_cores * 3, all_asked().size() * 2)
        << name_of(arithmetic) << " would be of little use";
  }
}

TEST_P(plans, are_a_function_of_device_sizes_and_precision) {
  const auto& [gpu, arithmetic] = GetParam();
  const auto workspace = workspace_max(gpu);
  const auto& all = all_asked();
  for (std::size_t i = 0; i < all.size(); i += 8) {
    const auto text = [&] {
      const auto plan =
          convolution_plan::make(described(gpu), all[i].what, arithmetic, all[i].alignment, workspace);
      return plan ? plan->text() : plan.error().message;
    };
    const auto first = text();
    EXPECT_THAT(first, HasSubstr("engineId"));
    EXPECT_EQ(text(), first);
  }
}

INSTANTIATE_TEST_SUITE_P(of, plans,
                         testing::Combine(testing::Values("a100", "h100", "l4", "b200"),
                                          testing::Values(precision::fp32, precision::tf32, precision::bf16)),
                         [](const auto& info) {
                           return fmt::format("{}_{}", std::get<0>(info.param),
                                              name_of(std::get<1>(info.param)));
                         });

TEST(plan, takes_no_more_room_than_it_may) {
  const auto on = described("h100");
  for (const auto& one : all_asked()) {
    const auto plan = convolution_plan::make(on, one.what, precision::fp32, one.alignment, 0);
    if (plan) {
      EXPECT_EQ(plan->workspace(), 0U) << describe(one.what);
    } else {
      EXPECT_THAT(plan.error().message, HasSubstr("has no way to compute it in fp32"));
    }
  }
}

TEST(plan_device, refuses_what_describes_no_gpu) {
  for (const auto* const wrong : {"", "{}", "H100", "{\"deviceVer\": 900}"}) {
    const auto made = plan_device::described(wrong);
    ASSERT_FALSE(made) << wrong;
    EXPECT_EQ(made.error().code, error_code::bad_data);
  }
}

} // namespace
} // namespace dlrun::kernels::cuda
