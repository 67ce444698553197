#include "kernels/cuda/convolution_plan.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>

namespace dlrun::kernels::cuda {
namespace {

using pass = convolution::pass;
using numbers = std::array<std::int64_t, 4>;

/// Which of x, w and y a tensor is.
constexpr std::int64_t x_number = 1, w_number = 2, y_number = 3;

std::string cudnn_text(cudnnStatus_t status) {
  std::array<char, 512> more{};
  cudnnGetLastErrorString(more.data(), more.size());
  return fmt::format("{} {}", cudnnGetErrorString(status), more.data());
}

/// A tensor of `outer` records (or output channels of weights), channels innermost; the sizes are
/// in cuDNN's order: outer, channels, height, width.
cudnn_descriptor make_tensor(std::int64_t number, const numbers& sizes, precision arithmetic,
                             std::int64_t alignment) {
  const auto [outer, channels, height, width] = sizes;
  const numbers strides{height * width * channels, 1, width * channels, channels};
  cudnn_descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, number);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE,
             arithmetic == precision::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT);
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, alignment);
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, sizes);
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
  tensor.finalize();
  return tensor;
}

cudnn_descriptor make_geometry(const cpu::convolution_geometry& geometry) {
  const std::array<std::int64_t, 2> strides{geometry.stride_height(), geometry.stride};
  const std::array<std::int64_t, 2> paddings{geometry.padding_height(), geometry.padding};
  const std::array<std::int64_t, 2> dilations{1, 1};
  cudnn_descriptor convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  convolution.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  convolution.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::int64_t{2});
  convolution.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, strides);
  convolution.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, paddings);
  convolution.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, paddings);
  convolution.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, dilations);
  convolution.finalize();
  return convolution;
}

/// What a pass is called in cuDNN.
struct operation_names {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t alpha, beta, geometry, x, w, y;
};

operation_names names_of(pass which) {
  switch (which) {
  case pass::forward:
    return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
  case pass::backward_data:
    return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
  case pass::backward_weights: break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
}

/// Tensors, geometry, operation and, last, the graph of that one operation.
std::vector<cudnn_descriptor> make_graph(const plan_device& on, const convolution& what, precision arithmetic,
                                         std::int64_t alignment) {
  const auto& g = what.geometry;
  const auto names = names_of(what.which);
  std::vector<cudnn_descriptor> made;
  const auto tensor = [&](std::int64_t number, const numbers& sizes) {
    made.push_back(make_tensor(number, sizes, arithmetic, alignment));
  };
  tensor(x_number, {what.batch, g.in_channels, g.height, g.width});
  tensor(w_number, {g.out_channels, g.in_channels, g.kernel_height(), g.kernel});
  tensor(y_number, {what.batch, g.out_channels, g.out_height, g.out_width});
  made.push_back(make_geometry(g));
  cudnn_descriptor operation(names.operation);
  operation.set(names.x, made[0]);
  operation.set(names.w, made[1]);
  operation.set(names.y, made[2]);
  operation.set(names.geometry, made[3]);
  operation.set(names.alpha, CUDNN_TYPE_FLOAT, 1.0F);
  operation.set(names.beta, CUDNN_TYPE_FLOAT, 0.0F);
  operation.finalize();
  cudnn_descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  on.name_in_graph(graph);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  graph.finalize();
  made.push_back(std::move(operation));
  made.push_back(std::move(graph));
  return made;
}

/// cuDNN's suggestions for a graph, best first.
std::vector<cudnn_descriptor> suggestions(const plan_device& on, const cudnn_descriptor& graph,
                                          cudnnBackendHeurMode_t mode) {
  cudnn_descriptor asked(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  asked.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  asked.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  on.name_in_question(asked);
  asked.finalize();
  const auto count = asked.count(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR);
  std::vector<cudnn_descriptor> found;
  for (std::int64_t i = 0; i < count; ++i) found.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  const auto given = asked.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, found);
  found.erase(found.begin() + given, found.end());
  return found;
}

/// What a suggestion computes with.
std::optional<cudnn_descriptor> engine_of(const cudnn_descriptor& suggestion) {
  std::vector<cudnn_descriptor> engine;
  engine.emplace_back(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  if (suggestion.get(CUDNN_ATTR_ENGINECFG_ENGINE, engine) != 1) return std::nullopt;
  return std::move(engine[0]);
}

std::vector<cudnnBackendNumericalNote_t> numerical_notes_of(const cudnn_descriptor& engine) {
  return engine.get<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                                 CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
}

std::vector<cudnnBackendBehaviorNote_t> behaviour_notes_of(const cudnn_descriptor& engine) {
  return engine.get<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                                                CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
}

/// Whether it computes in no less than this precision, and sums in a fixed order by code that is
/// there. DOWN_CONVERT_INPUTS is of floats to 16 bits; TF32 is TENSOR_CORE alone.
bool acceptable(const cudnn_descriptor& suggestion, precision arithmetic) {
  const auto engine = engine_of(suggestion);
  if (!engine) return false;
  const auto numeric = numerical_notes_of(*engine);
  const auto has = [&](cudnnBackendNumericalNote_t note) {
    return std::ranges::find(numeric, note) != numeric.end();
  };
  if (arithmetic == precision::fp32 && has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) return false;
  if (has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) || has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) ||
      has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION))
    return false;
  const auto behaviour = behaviour_notes_of(*engine);
  return std::ranges::find(behaviour, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) == behaviour.end();
}

/// A plan of a suggestion, or none where cuDNN cannot do what it suggests or needs too much room.
std::optional<cudnn_descriptor> try_suggestion(const plan_device& on, const cudnn_descriptor& suggestion,
                                               std::int64_t workspace_max) {
  cudnn_descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  on.name_in_plan(plan);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, suggestion);
  plan.finalize();
  const auto room = plan.get<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1);
  if (room.size() != 1 || room[0] > workspace_max) return std::nullopt;
  return plan;
}

} // namespace

std::string describe(const convolution& what) {
  constexpr std::array names{"forward pass", "gradient by the input", "gradient by the weights"};
  const auto& g = what.geometry;
  return fmt::format(
      "{} of a{} convolution, batch {}, {}x{}x{} to {}x{}x{}, kernel {}, stride {}, padding {}",
      names.at(static_cast<std::size_t>(what.which)), g.flat ? " flat" : "", what.batch, g.in_channels,
      g.height, g.width, g.out_channels, g.out_height, g.out_width, g.kernel, g.stride, g.padding);
}

convolution_plan::convolution_plan(cudnn_descriptor plan)
    : plan_(std::move(plan)) {}

result<convolution_plan> convolution_plan::make(const plan_device& on, const convolution& what,
                                                precision arithmetic, std::int64_t alignment,
                                                std::int64_t workspace_max) {
  auto graph = make_graph(on, what, arithmetic, alignment);
  const auto status = graph.back().status();
  if (status != CUDNN_STATUS_SUCCESS)
    return fail(error_code::system, fmt::format("{}: cuDNN says {}", describe(what), cudnn_text(status)));
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
    for (auto& suggestion : suggestions(on, graph.back(), mode)) {
      if (!acceptable(suggestion, arithmetic)) continue;
      auto plan = try_suggestion(on, suggestion, workspace_max);
      if (!plan) continue;
      convolution_plan made(std::move(*plan));
      made.workspace_ = static_cast<std::size_t>(
          made.plan_.get<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1).at(0));
      made.graph_ = std::move(graph);
      made.graph_.push_back(std::move(suggestion));
      return made;
    }
  return fail(error_code::system,
              fmt::format("{}: cuDNN {} has no way to compute it in {} with sums of a fixed order",
                          describe(what), cudnnGetVersion(), name_of(arithmetic)));
}

std::vector<cudnnBackendNumericalNote_t> convolution_plan::numerical_notes() const {
  const auto engine = engine_of(graph_.back());
  return engine ? numerical_notes_of(*engine) : std::vector<cudnnBackendNumericalNote_t>{};
}

std::vector<cudnnBackendBehaviorNote_t> convolution_plan::behaviour_notes() const {
  const auto engine = engine_of(graph_.back());
  return engine ? behaviour_notes_of(*engine) : std::vector<cudnnBackendBehaviorNote_t>{};
}

std::array<std::vector<std::int64_t>, 3> convolution_plan::strides() const {
  std::array<std::vector<std::int64_t>, 3> found;
  for (std::size_t i = 0; i < found.size(); ++i)
    found.at(i) = graph_.at(i).get<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4);
  return found;
}

std::string convolution_plan::text() const {
  const auto size = plan_.count(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR);
  const auto letters = plan_.get<char>(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, size);
  return {letters.begin(), letters.end()};
}

result<void> convolution_plan::run(cudnnHandle_t handle, const convolution& what, void* workspace) const {
  const std::array<std::int64_t, 3> which{x_number, w_number, y_number};
  const std::array<void*, 3> tensors{what.x, what.w, what.y};
  cudnn_descriptor given(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  given.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, which);
  given.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::span<void* const>(tensors));
  given.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  given.finalize();
  auto status = given.status();
  if (status == CUDNN_STATUS_SUCCESS) status = cudnnBackendExecute(handle, plan_.raw(), given.raw());
  if (status == CUDNN_STATUS_SUCCESS) return {};
  return fail(error_code::system, fmt::format("{}: cuDNN says {}", describe(what), cudnn_text(status)));
}

} // namespace dlrun::kernels::cuda
