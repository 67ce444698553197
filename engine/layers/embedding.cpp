#include "kernels/cpu/embedding.hpp"

#include "engine/layers/bad_index.hpp"
#include "engine/layers/layers.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace dlrun::engine {
namespace {

using kernels::cpu::embedding_geometry;

class embedding_operation final : public operation {
public:
  embedding_operation(const std::string& name, const embedding_geometry& geometry, std::int64_t rows)
      : name_(name)
      , geometry_(geometry)
      , rows_(rows) {}

  result<void> forward(const pass& now, std::span<const std::span<const float>> inputs,
                       std::span<float> output) override {
    if (auto read = read_indices(inputs[0]); !read) return read;
    kernels::cpu::embedding(geometry_, indices_, now.tensors[0], output);
    return {};
  }

  /// An index has no slope: what computed it, if anything did, learns nothing from here.
  void backward(const pass& now, std::span<const std::span<const float>>, std::span<const float>,
                std::span<const float> output_gradient,
                std::span<const std::span<float>> input_gradients) override {
    kernels::cpu::embedding_backward(geometry_, indices_, output_gradient, now.gradients[0]);
    std::ranges::fill(input_gradients[0], 0.0F);
  }

  memory_use memory() const override { return {.inputs_on_way_back = false, .output_on_way_back = false}; }

private:
  result<void> read_indices(std::span<const float> values) {
    indices_.resize(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float value = values[i];
      const bool is_row = value >= 0.0F && value < static_cast<float>(rows_) && std::floor(value) == value;
      if (!is_row) return bad_index(name_, value, static_cast<std::int64_t>(i), geometry_.fields, rows_);
      indices_[i] = static_cast<std::int64_t>(value);
    }
    return {};
  }

  const std::string& name_; ///< the layer's
  embedding_geometry geometry_;
  std::int64_t rows_;
  std::vector<std::int64_t> indices_;
};

class embedding_layer final : public layer {
public:
  embedding_layer(std::string name, const shape& input, std::int64_t rows, std::int64_t dim)
      : layer(std::move(name), {input}, {input[0], dim})
      , rows_(rows)
      , dim_(dim) {
    layer_tensor weight{"weight", {rows, dim}};
    weight.normal = true;
    add_tensor(std::move(weight));
  }

  std::int64_t rows() const override { return rows_; }

  layer_description describe() const override { return embedding_description{rows_, dim_}; }

  std::unique_ptr<operation> make_operation(kernels::cpu::onednn&, bool) const override {
    return std::make_unique<embedding_operation>(name(), embedding_geometry{input_size(), dim_}, rows_);
  }

private:
  std::int64_t rows_, dim_;
};

} // namespace

tl::unexpected<error> bad_index(const std::string& layer, float value, std::int64_t place,
                                std::int64_t fields, std::int64_t rows) {
  return fail(error_code::bad_data,
              fmt::format("layer '{}' (embedding): record {} of the batch has the value {} at place {}, but "
                          "takes whole numbers from 0 to {}; correct the data or num_embeddings",
                          layer, place / fields, value, place % fields, rows - 1));
}

layer_result make_embedding(const spec::Embedding& spec, const std::string& name, const shape& input) {
  constexpr std::int64_t rows_max = std::int64_t{1} << 24; // whole numbers up to here are exact as floats
  const std::int64_t rows = spec.num_embeddings(), dim = spec.embedding_dim();
  if (input.size() != 1)
    return layer_error(name, "embedding",
                       fmt::format("takes records of shape [features], each a number of a row, but gets {}; "
                                   "put a flatten layer before it",
                                   to_string(input)));
  if (rows < 1 || rows > rows_max)
    return layer_error(name, "embedding",
                       fmt::format("num_embeddings is {}, but must be 1 to {}", rows, rows_max));
  if (dim < 1)
    return layer_error(name, "embedding", fmt::format("embedding_dim is {}, but must be at least 1", dim));
  if (!element_count({rows, dim}) || !element_count({input[0], dim}))
    return layer_error(name, "embedding",
                       fmt::format("a table of {} for records of {} is too large", to_string({rows, dim}),
                                   to_string(input)));
  return std::make_unique<embedding_layer>(name, input, rows, dim);
}

} // namespace dlrun::engine
