#include "engine/network.hpp"

#include "engine/activation_buffer.hpp"
#include "kernels/cpu/cross_entropy.hpp"
#include "kernels/cpu/onednn.hpp"
#include "kernels/cpu/permute.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <fmt/format.h>
#include <omp.h>
#include <vector>

namespace dlrun::engine {

class network::impl {
public:
  impl(std::shared_ptr<const model> model, int threads);

  result<void> check_records(const batch& batch) const;
  result<void> check(const batch& batch, std::int64_t min_batch) const;
  void forward(std::span<const float> parameters, std::span<float> gradient, const batch& batch,
               const slot_key& key, bool training);
  std::span<const float> outputs() const { return stages_.back().output.view(); }
  kernels::cpu::classification_sums loss(const batch& batch, bool with_gradient);
  void backward(std::span<float> gradient);
  const model& described() const { return *model_; }
  void use_threads() const { omp_set_num_threads(threads_); }

private:
  /// A node's operation, its output, and views of its tensors in the flat vectors of the pass.
  struct stage {
    const model_node* node = nullptr;
    std::unique_ptr<operation> compute;
    activation_buffer output;
    std::vector<std::span<const float>> tensors;
    std::vector<std::span<float>> gradients;
    pass now;
  };
  void begin(stage& s, std::span<const float> parameters, std::span<float> gradient) const;
  std::span<const float> input_of(const stage& s) const;
  std::span<const float> channels_last(const batch& batch);
  void clear_padding(std::span<float> gradient) const;

  std::shared_ptr<const model> model_;
  int threads_;
  kernels::cpu::onednn context_;
  std::vector<stage> stages_;
  std::span<const float> records_;
  activation_buffer permuted_records_;
  activation_buffer output_gradient_, input_gradient_; ///< swapped from layer to layer on the way back
};

network::impl::impl(std::shared_ptr<const model> model, int threads)
    : model_(std::move(model))
    , threads_(threads) {
  DLRUN_CHECK(threads >= 1, "a network needs a thread, not {}", threads);
  for (const auto& node : model_->nodes()) {
    stage s;
    s.node = &node;
    s.compute = node.layer->make_operation(context_, node.input != model_node::model_input);
    s.now.layer = static_cast<std::uint32_t>(stages_.size());
    stages_.push_back(std::move(s));
  }
}

result<void> network::impl::check_records(const batch& batch) const {
  const auto record_size = static_cast<std::uint64_t>(*element_count(model_->input_shape()));
  if (batch.size >= 1 && batch.records.size() / record_size == static_cast<std::uint64_t>(batch.size) &&
      batch.records.size() % record_size == 0)
    return {};
  return fail(error_code::bad_usage,
              fmt::format("a batch of {} records of shape {} cannot have {} floats", batch.size,
                          to_string(model_->input_shape()), batch.records.size()));
}

result<void> network::impl::check(const batch& batch, std::int64_t min_batch) const {
  const auto record_size = static_cast<std::uint64_t>(*element_count(model_->input_shape()));
  if (batch.size < 1 || batch.labels.size() != static_cast<std::uint64_t>(batch.size) ||
      batch.records.size() != record_size * batch.labels.size())
    return fail(error_code::bad_usage,
                fmt::format("a batch of {} records of shape {} cannot have {} floats and {} labels",
                            batch.size, to_string(model_->input_shape()), batch.records.size(),
                            batch.labels.size()));
  if (batch.size < min_batch)
    return fail(
        error_code::bad_usage,
        fmt::format(
            "layer '{}' (batch_norm) needs microbatches of at least {} records to take statistics, got {}; "
            "raise train.microbatch_size",
            model_->min_batch_layer(), min_batch, batch.size));
  const auto classes = model_->output_shape()[0];
  for (std::size_t i = 0; i < batch.labels.size(); ++i)
    if (batch.labels[i] < 0 || batch.labels[i] >= classes)
      return fail(error_code::bad_data,
                  fmt::format("record {} of the batch has the label {}, but the model has {} classes "
                              "(labels 0 to {}); correct the data or the last layer",
                              i, batch.labels[i], classes, classes - 1));
  return {};
}

void network::impl::begin(stage& s, std::span<const float> parameters, std::span<float> gradient) const {
  s.tensors.clear();
  s.gradients.clear();
  const std::size_t first = s.node->first_tensor;
  for (std::size_t t = first; t < first + s.node->layer->tensors().size(); ++t) {
    const auto& info = model_->layout().tensors()[t];
    s.tensors.push_back(parameters.subspan(info.offset, info.size));
    if (!gradient.empty()) s.gradients.push_back(gradient.subspan(info.offset, info.size));
  }
  s.now.tensors = s.tensors;
  s.now.gradients = s.gradients;
}

std::span<const float> network::impl::input_of(const stage& s) const {
  return s.node->input == model_node::model_input
             ? records_
             : stages_[static_cast<std::size_t>(s.node->input)].output.view();
}

/// The records with channels innermost, as the layers want them.
std::span<const float> network::impl::channels_last(const batch& batch) {
  const auto& in = model_->input_shape();
  if (in.size() != 3 || in[0] == 1 || in[1] * in[2] == 1) return batch.records;
  const auto permuted = permuted_records_.resize(batch.records.size());
  kernels::cpu::transpose(batch.size, in[0], in[1] * in[2], batch.records, permuted);
  return permuted;
}

void network::impl::forward(std::span<const float> parameters, std::span<float> gradient, const batch& batch,
                            const slot_key& key, bool training) {
  DLRUN_CHECK(parameters.size() == model_->layout().flat_size(), "{} parameters for a layout of {}",
              parameters.size(), model_->layout().flat_size());
  records_ = channels_last(batch);
  for (auto& s : stages_) {
    begin(s, parameters, gradient);
    s.now.batch = batch.size;
    s.now.training = training;
    s.now.key = key;
    const auto size = static_cast<std::size_t>(batch.size * s.node->layer->output_size());
    s.compute->forward(s.now, input_of(s), s.output.resize(size));
  }
}

kernels::cpu::classification_sums network::impl::loss(const batch& batch, bool with_gradient) {
  const auto scores = stages_.back().output.view();
  return kernels::cpu::cross_entropy(scores, batch.labels, model_->output_shape()[0],
                                     with_gradient ? output_gradient_.resize(scores.size())
                                                   : std::span<float>());
}

void network::impl::backward(std::span<float> gradient) {
  // Each output has one reader and each layer one input (graph.cpp), so the way back is the list read
  // backwards.
  for (auto s = stages_.rbegin(); s != stages_.rend(); ++s) {
    const auto input = input_of(*s);
    const bool wanted = s->node->input != model_node::model_input;
    const auto input_gradient = wanted ? input_gradient_.resize(input.size()) : std::span<float>();
    s->compute->backward(s->now, input, s->output.view(), output_gradient_.view(), input_gradient);
    std::swap(output_gradient_, input_gradient_);
  }
  clear_padding(gradient);
}

void network::impl::clear_padding(std::span<float> gradient) const {
  const auto& tensors = model_->layout().tensors();
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const auto end = tensors[t].offset + tensors[t].size;
    const auto next = t + 1 < tensors.size() ? tensors[t + 1].offset : model_->layout().flat_size();
    std::fill(gradient.begin() + static_cast<std::ptrdiff_t>(end),
              gradient.begin() + static_cast<std::ptrdiff_t>(next), 0.0F);
  }
}

namespace {

void write_metrics(const kernels::cpu::classification_sums& sums, std::int64_t records,
                   std::span<float> metrics) {
  std::fill(metrics.begin(), metrics.end(), 0.0F);
  metrics[parameter_layout::loss_sum] = static_cast<float>(sums.loss);
  metrics[parameter_layout::correct] = static_cast<float>(sums.correct);
  metrics[parameter_layout::records] = static_cast<float>(records);
}

} // namespace

network::network(std::shared_ptr<const model> model, int threads)
    : impl_(std::make_unique<impl>(std::move(model), threads)) {}

network::~network() = default;

result<void> network::forward_backward(std::span<const float> parameters, const batch& batch,
                                       const slot_key& key, std::span<float> gradient) try {
  const auto& model = impl_->described();
  const auto& metrics = model.layout().metrics();
  DLRUN_CHECK(gradient.size() == model.layout().flat_size(), "{} floats of gradient for a layout of {}",
              gradient.size(), model.layout().flat_size());
  if (auto checked = impl_->check(batch, model.min_batch()); !checked) return checked;
  impl_->use_threads();
  impl_->forward(parameters, gradient, batch, key, true);
  const auto sums = impl_->loss(batch, true);
  impl_->backward(gradient);
  write_metrics(sums, batch.size, gradient.subspan(metrics.offset, metrics.size));
  return {};
} catch (const dnnl::error& e) {
  return fail(error_code::system, fmt::format("oneDNN could not compute the gradient: {}", e.message));
}

result<void> network::evaluate(std::span<const float> parameters, const batch& batch,
                               std::span<float> metrics) try {
  DLRUN_CHECK(metrics.size() == parameter_layout::metrics_size, "{} floats for metrics, not {}",
              metrics.size(), parameter_layout::metrics_size);
  if (auto checked = impl_->check(batch, 1); !checked) return checked;
  impl_->use_threads();
  impl_->forward(parameters, {}, batch, {}, false);
  write_metrics(impl_->loss(batch, false), batch.size, metrics);
  return {};
} catch (const dnnl::error& e) {
  return fail(error_code::system, fmt::format("oneDNN could not evaluate the model: {}", e.message));
}

result<void> network::predict(std::span<const float> parameters, std::span<const float> records,
                              std::int64_t size, std::span<float> outputs) try {
  const batch batch{records, {}, size};
  if (auto checked = impl_->check_records(batch); !checked) return checked;
  const auto wanted = size * *element_count(impl_->described().output_shape());
  if (outputs.size() != static_cast<std::uint64_t>(wanted))
    return fail(error_code::bad_usage,
                fmt::format("{} floats for the outputs {} of {} records, not {}", outputs.size(),
                            to_string(impl_->described().output_shape()), size, wanted));
  impl_->use_threads();
  impl_->forward(parameters, {}, batch, {}, false);
  std::ranges::copy(impl_->outputs(), outputs.begin());
  return {};
} catch (const dnnl::error& e) {
  return fail(error_code::system, fmt::format("oneDNN could not predict: {}", e.message));
}

} // namespace dlrun::engine
