#include "engine/cuda/device_array.hpp"
#include "engine/cuda/device_operations.hpp"
#include "engine/layers/bad_index.hpp"

#include <limits>
#include <optional>

namespace dlrun::engine {
namespace {

namespace cuda = kernels::cuda;
using cuda::lane;

/// Where the numbers of rows of `layer` are among the values of a record; nowhere where a layer
/// computes them.
std::optional<kernels::cpu::column_run> columns_read(const model& of, const layer& layer) {
  for (const auto& read : of.rows_read())
    if (read.layer == layer.name())
      return kernels::cpu::column_run{*element_count(of.input_shape()), read.first, read.count};
  return std::nullopt;
}

/// The device cannot refuse a value: it takes row 0 for it, and tells where the first one is.
/// Numbers of rows come from the records, which are floats, where activations do not have them all.
class embedding_operation final : public backend_operation, public value_check {
public:
  embedding_operation(const operation_parts& parts, const embedding_description& what, const layer& layer)
      : on_{parts.device}
      , records_{parts.records}
      , columns_{stores_less(on_) ? columns_read(parts.of, layer) : std::nullopt}
      , what_{what}
      , name_{layer.name()}
      , geometry_{layer.input_size(), what.dim}
      , values_{on_}
      , indices_{on_}
      , places_{on_}
      , first_bad_{on_}
      , told_{on_} {}

  result<void> forward(const pass& now, std::span<const activations> inputs, activations output) override {
    const auto values = inputs[0];
    if (auto room = make_room(values.size(), !now.gradients.empty()); !room) return room;
    const auto count = static_cast<std::int64_t>(values.size());
    if (columns_)
      on_.run(lane::compute, cuda::read_float_columns{now.batch, *columns_, records_.data(), values_.data()});
    else
      on_.run(lane::compute, cuda::widen{values.data(), values_.data(), count});
    on_.upload(lane::compute, &no_place, first_bad_.data(), sizeof(no_place));
    on_.run(lane::compute,
            cuda::read_indices{values_.data(), count, what_.rows, indices_.data(), first_bad_.data()});
    on_.download(lane::compute, first_bad_.data(), told_.data(), sizeof(no_place));
    on_.run(lane::compute, cuda::embedding_forward{geometry_, now.batch, indices_.data(),
                                                   now.tensors[0].data(), output.data()});
    return {};
  }

  /// An index has no slope: what computed it, if anything did, learns nothing from here.
  void backward(const pass& now, std::span<const activations>, activations, activations output_gradient,
                std::span<const activations> input_gradients) override {
    on_.run(lane::compute,
            cuda::embedding_backward{geometry_, now.batch, what_.rows, indices_.data(),
                                     output_gradient.data(), places_.data(), now.gradients[0].data()});
    const auto gradient = input_gradients[0];
    on_.run(lane::compute, cuda::clear_activations{gradient.data(), number_count(gradient)});
  }

  result<void> check() override {
    const auto place = *told_.data();
    if (place == no_place) return {};
    float value = 0;
    on_.download(lane::compute, values_.data() + place, &value, sizeof(value));
    if (auto done = on_.finish(lane::compute); !done) return done;
    return bad_index(name_, value, place, geometry_.fields, what_.rows);
  }

  memory_use memory() const override { return {.inputs_on_way_back = false, .output_on_way_back = false}; }

private:
  static constexpr std::int64_t no_place = std::numeric_limits<std::int64_t>::max();

  result<void> make_room(std::size_t values, bool with_gradient) {
    if (auto room = values_.resize(values); !room) return room;
    if (auto room = indices_.resize(values); !room) return room;
    if (with_gradient)
      if (auto room = places_.resize(values); !room) return room;
    if (auto room = first_bad_.resize(1); !room) return room;
    return told_.resize(1);
  }

  cuda::device& on_;
  const device_array<float>& records_;
  std::optional<kernels::cpu::column_run> columns_; ///< of these, that are read in place of the input
  embedding_description what_;
  const std::string& name_; ///< the layer's
  kernels::cpu::embedding_geometry geometry_;
  device_array<float> values_; ///< of this pass: what gave them may be gone when they are looked at
  device_array<std::int64_t> indices_, places_, first_bad_;
  pinned_array<std::int64_t> told_;
};

} // namespace

device_operation make_device_embedding(const operation_parts& parts, const embedding_description& what,
                                       const layer& layer) {
  auto made = std::make_unique<embedding_operation>(parts, what, layer);
  auto* const values = made.get();
  return {std::move(made), values};
}

} // namespace dlrun::engine
