#include "engine/network.hpp"

#include "engine/activation_buffer.hpp"
#include "kernels/cpu/onednn.hpp"
#include "kernels/cpu/permute.hpp"
#include "kernels/cpu/reduce.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <fmt/format.h>
#include <omp.h>
#include <optional>
#include <vector>

namespace dlrun::engine {

class network::impl {
public:
  impl(std::shared_ptr<const model> model, int threads);

  result<void> check_records(const batch& batch) const;
  result<void> check(const batch& batch, std::int64_t min_batch) const;
  result<void> forward(std::span<const float> parameters, std::span<float> gradient, const batch& batch,
                       const slot_key& key, bool training);
  std::span<const float> outputs() const { return stages_.back().output.view(); }
  void loss(const batch& batch, bool with_gradient, std::span<float> metrics);
  void backward(std::span<float> gradient, const progress& tell);
  const model& described() const { return *model_; }
  void use_threads() const { omp_set_num_threads(threads_); }

private:
  /// A node's operation, its output, and views of its inputs and of its tensors in the flat vectors of the
  /// pass.
  struct stage {
    const model_node* node = nullptr;
    std::vector<const model_node*> computed; ///< by the operation, in order: nodes taken over, and this one
    std::vector<std::int32_t> reads;         ///< positions; the inputs of the first that is computed
    bool learns = false; ///< has parameters, or reads a stage that learns: the way back leads through it
    std::unique_ptr<operation> compute; ///< null for a node that its reader takes over
    activation_buffer output;
    std::optional<activation_buffer> output_gradient; ///< on the way back: the sum over the readers so far
    std::vector<std::span<const float>> inputs, tensors;
    std::vector<std::span<float>> gradients;
    pass now;
  };
  std::vector<stage*> only_read_by(const stage& s);
  bool reads_what_learns(const stage& s) const;
  bool take_over(stage& s, std::span<stage* const> before);
  void begin(stage& s, std::span<const float> parameters, std::span<float> gradient) const;
  std::span<const float> output_of(std::int32_t position) const;
  bool learns(std::int32_t position) const;
  void pass_back(stage& s);
  void tell_final(const stage& s, const progress& tell) const;
  activation_buffer take_spare();
  std::span<const float> channels_last(const batch& batch);
  void clear_padding(std::span<float> gradient) const;

  std::shared_ptr<const model> model_;
  int threads_;
  kernels::cpu::onednn context_;
  std::vector<stage> stages_;
  std::span<const float> records_;
  activation_buffer permuted_records_;
  activation_buffer output_gradient_;    ///< the loss's, for the last stage
  std::vector<activation_buffer> spare_; ///< memory for gradients, lent from stage to stage on the way back
};

network::impl::impl(std::shared_ptr<const model> model, int threads)
    : model_(std::move(model))
    , threads_(threads) {
  DLRUN_CHECK(threads >= 1, "a network needs a thread, not {}", threads);
  stages_.reserve(model_->nodes().size());
  for (const auto& node : model_->nodes()) {
    stage s;
    s.node = &node;
    s.computed = {&node};
    s.reads = node.inputs;
    const bool input_gradient = reads_what_learns(s);
    s.learns = input_gradient || !node.layer->tensors().empty();
    s.now.layer = static_cast<std::uint32_t>(stages_.size());
    auto before = only_read_by(s);
    while (!before.empty() && !take_over(s, before)) before.erase(before.begin());
    if (!s.compute) s.compute = node.layer->make_operation(context_, input_gradient);
    stages_.push_back(std::move(s));
  }
}

bool network::impl::reads_what_learns(const stage& s) const {
  return std::ranges::any_of(s.reads, [this](std::int32_t input) { return learns(input); });
}

/// The stages before this one of which each is read by the next alone, and computes itself alone; at most as
/// many as an operation takes over.
std::vector<network::impl::stage*> network::impl::only_read_by(const stage& s) {
  constexpr std::size_t taken_over_max = 2; // a convolution and its relu
  std::vector<stage*> before;
  const auto* at = &s;
  while (before.size() < taken_over_max && at->reads.size() == 1 && at->reads[0] != model_node::model_input) {
    std::int64_t readers = 0;
    for (const auto& node : model_->nodes()) readers += std::ranges::count(node.inputs, at->reads[0]);
    auto& next = stages_[static_cast<std::size_t>(at->reads[0])];
    if (readers != 1 || next.computed.size() != 1) break;
    before.insert(before.begin(), &next);
    at = &next;
  }
  return before;
}

/// Lets the stage compute those before it too, if its layer can.
bool network::impl::take_over(stage& s, std::span<stage* const> before) {
  std::vector<const layer*> layers;
  for (const auto* const one : before) layers.push_back(one->node->layer.get());
  s.compute = s.node->layer->make_joined_operation(layers, context_, reads_what_learns(*before.front()));
  if (!s.compute) return false;
  s.computed.clear();
  for (auto* const one : before) {
    s.computed.push_back(one->node);
    one->compute = nullptr;
  }
  s.computed.push_back(s.node);
  s.reads = before.front()->reads;
  return true;
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
  if (auto fits = check_records(batch); !fits) return fits;
  const auto& loss = model_->loss();
  const bool classes = loss.targets() == target_kind::classes;
  const auto wanted =
      static_cast<std::uint64_t>(batch.size) * static_cast<std::uint64_t>(loss.target_values());
  if (batch.classes.size() != (classes ? wanted : 0) || batch.values.size() != (classes ? 0 : wanted))
    return fail(error_code::bad_usage,
                fmt::format("a batch of {} records of shape {} for the loss {} has {} class numbers and {} "
                            "values, not {} {}",
                            batch.size, to_string(model_->input_shape()), loss.name(), batch.classes.size(),
                            batch.values.size(), wanted, classes ? "class numbers" : "values"));
  if (batch.size < min_batch)
    return fail(
        error_code::bad_usage,
        fmt::format(
            "layer '{}' (batch_norm) needs microbatches of at least {} records to take statistics, got {}; "
            "raise train.microbatch_size",
            model_->min_batch_layer(), min_batch, batch.size));
  return loss.check(batch);
}

void network::impl::begin(stage& s, std::span<const float> parameters, std::span<float> gradient) const {
  s.tensors.clear();
  s.gradients.clear();
  for (const auto* const node : s.computed)
    for (std::size_t t = node->first_tensor; t < node->first_tensor + node->layer->tensors().size(); ++t) {
      const auto& info = model_->layout().tensors()[t];
      s.tensors.push_back(parameters.subspan(info.offset, info.size));
      if (!gradient.empty()) s.gradients.push_back(gradient.subspan(info.offset, info.size));
    }
  s.now.tensors = s.tensors;
  s.now.gradients = s.gradients;
}

std::span<const float> network::impl::output_of(std::int32_t position) const {
  return position == model_node::model_input ? records_
                                             : stages_[static_cast<std::size_t>(position)].output.view();
}

bool network::impl::learns(std::int32_t position) const {
  return position != model_node::model_input && stages_[static_cast<std::size_t>(position)].learns;
}

/// The records with channels innermost, as the layers want them.
std::span<const float> network::impl::channels_last(const batch& batch) {
  const auto& in = model_->input_shape();
  const std::int64_t pixels = *element_count(in) / in[0];
  if (in[0] == 1 || pixels == 1) return batch.records;
  const auto permuted = permuted_records_.resize(batch.records.size());
  kernels::cpu::transpose(batch.size, in[0], pixels, batch.records, permuted);
  return permuted;
}

result<void> network::impl::forward(std::span<const float> parameters, std::span<float> gradient,
                                    const batch& batch, const slot_key& key, bool training) {
  DLRUN_CHECK(parameters.size() == model_->layout().flat_size(), "{} parameters for a layout of {}",
              parameters.size(), model_->layout().flat_size());
  records_ = channels_last(batch);
  for (auto& s : stages_) {
    if (!s.compute) continue;
    begin(s, parameters, gradient);
    s.now.batch = batch.size;
    s.now.training = training;
    s.now.key = key;
    const auto size = static_cast<std::size_t>(batch.size * s.node->layer->output_size());
    s.inputs.clear();
    for (const auto input : s.reads) s.inputs.push_back(output_of(input));
    if (auto done = s.compute->forward(s.now, s.inputs, s.output.resize(size)); !done) return done;
  }
  return {};
}

/// Writes the metrics tensor (=) and, if asked, the gradient that backward() begins with.
void network::impl::loss(const batch& batch, bool with_gradient, std::span<float> metrics) {
  const auto gradient = with_gradient ? output_gradient_.resize(outputs().size()) : std::span<float>();
  std::fill(metrics.begin(), metrics.end(), 0.0F);
  metrics[parameter_layout::loss_sum] =
      static_cast<float>(model_->loss().forward(outputs(), batch, gradient));
  metrics[parameter_layout::records] = static_cast<float>(batch.size);
  model_->metrics().add(outputs(), batch,
                        metrics.subspan(parameter_layout::first_metric, model_->metrics().floats()));
}

void network::impl::backward(std::span<float> gradient, const progress& tell) {
  clear_padding(gradient);
  // All readers of a stage lie behind it, so that its gradient is whole when its turn comes.
  for (auto& s : stages_) s.output_gradient.reset(); // of a pass that failed on its way back
  stages_.back().output_gradient = std::move(output_gradient_);
  for (auto s = stages_.rbegin(); s != stages_.rend(); ++s) {
    if (s->learns && s->compute) {
      pass_back(*s);
      if (tell) tell_final(*s, tell);
    }
    if (s->output_gradient) spare_.push_back(std::move(*s->output_gradient));
    s->output_gradient.reset();
  }
  output_gradient_ = take_spare();
}

/// Tensors lie in the order of the nodes: those of this stage and of all behind it have their gradients, the
/// metrics too.
void network::impl::tell_final(const stage& s, const progress& tell) const {
  if (s.tensors.empty()) return;
  const auto first = model_->layout().tensors()[s.computed.front()->first_tensor].offset;
  if (first > 0) tell(first);
}

/// Computes the stage's gradients and gives each stage that it reads its part. Where an output has several
/// readers, their parts are added from the last reader to the first.
void network::impl::pass_back(stage& s) {
  std::vector<activation_buffer> parts(s.inputs.size());
  std::vector<std::span<float>> wanted(s.inputs.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!learns(s.reads[i])) continue;
    parts[i] = take_spare();
    wanted[i] = parts[i].resize(s.inputs[i].size());
  }
  s.compute->backward(s.now, s.inputs, s.output.view(), s.output_gradient->view(), wanted);
  for (std::size_t i = parts.size(); i-- > 0;) {
    if (wanted[i].empty()) continue;
    auto& sum = stages_[static_cast<std::size_t>(s.reads[i])].output_gradient;
    if (sum) {
      kernels::cpu::add(sum->view(), parts[i].view(), sum->resize(wanted[i].size()));
      spare_.push_back(std::move(parts[i]));
    } else {
      sum = std::move(parts[i]);
    }
  }
}

activation_buffer network::impl::take_spare() {
  if (spare_.empty()) return {};
  auto buffer = std::move(spare_.back());
  spare_.pop_back();
  return buffer;
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

network::network(std::shared_ptr<const model> model, int threads)
    : impl_(std::make_unique<impl>(std::move(model), threads)) {}

network::~network() = default;

result<void> network::forward_backward(std::span<const float> parameters, const batch& batch,
                                       const slot_key& key, std::span<float> gradient,
                                       const progress& tell) try {
  const auto& model = impl_->described();
  const auto& metrics = model.layout().metrics();
  DLRUN_CHECK(gradient.size() == model.layout().flat_size(), "{} floats of gradient for a layout of {}",
              gradient.size(), model.layout().flat_size());
  if (auto checked = impl_->check(batch, model.min_batch()); !checked) return checked;
  impl_->use_threads();
  if (auto done = impl_->forward(parameters, gradient, batch, key, true); !done) return done;
  impl_->loss(batch, true, gradient.subspan(metrics.offset, metrics.size));
  impl_->backward(gradient, tell);
  return {};
} catch (const dnnl::error& e) {
  return fail(error_code::system, fmt::format("oneDNN could not compute the gradient: {}", e.message));
}

result<void> network::evaluate(std::span<const float> parameters, const batch& batch,
                               std::span<float> metrics) try {
  DLRUN_CHECK(metrics.size() == impl_->described().layout().metrics().size, "{} floats for metrics, not {}",
              metrics.size(), impl_->described().layout().metrics().size);
  if (auto checked = impl_->check(batch, 1); !checked) return checked;
  impl_->use_threads();
  if (auto done = impl_->forward(parameters, {}, batch, {}, false); !done) return done;
  impl_->loss(batch, false, metrics);
  return {};
} catch (const dnnl::error& e) {
  return fail(error_code::system, fmt::format("oneDNN could not evaluate the model: {}", e.message));
}

result<void> network::predict(std::span<const float> parameters, std::span<const float> records,
                              std::int64_t size, std::span<float> outputs) try {
  const batch batch{records, {}, {}, size};
  if (auto checked = impl_->check_records(batch); !checked) return checked;
  const auto wanted = size * *element_count(impl_->described().output_shape());
  if (outputs.size() != static_cast<std::uint64_t>(wanted))
    return fail(error_code::bad_usage,
                fmt::format("{} floats for the outputs {} of {} records, not {}", outputs.size(),
                            to_string(impl_->described().output_shape()), size, wanted));
  impl_->use_threads();
  if (auto done = impl_->forward(parameters, {}, batch, {}, false); !done) return done;
  std::ranges::copy(impl_->outputs(), outputs.begin());
  return {};
} catch (const dnnl::error& e) {
  return fail(error_code::system, fmt::format("oneDNN could not predict: {}", e.message));
}

} // namespace dlrun::engine
