#include "engine/network.hpp"

#include "engine/channel_extents.hpp"
#include "engine/cpu_backend.hpp"
#include "engine/memory_plan.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <dnnl.hpp>
#include <fmt/format.h>
#include <optional>
#include <vector>

namespace dlrun::engine {

class network::impl {
public:
  impl(std::shared_ptr<const model> model, std::unique_ptr<engine::backend> backend);

  result<void> check_records(const batch& batch) const;
  result<void> check(const batch& batch, std::int64_t min_batch) const;
  result<void> forward(std::span<const float> parameters, std::span<float> gradient, const batch& batch,
                       const slot_key& key, bool training);
  result<void> loss(const batch& batch, bool with_gradient, std::span<float> metrics);
  void backward(std::span<float> gradient, const progress& tell);
  result<void> fetch_outputs(std::span<float> to) { return backend_->fetch(outputs(), to); }
  result<void> finish(const progress& tell) { return backend_->finish(tell); }
  const model& described() const { return *model_; }
  std::size_t activation_floats() const { return training_plan_->floats(); }

private:
  activations outputs() const { return stages_.back().output; }
  /// A node's operation, and views of all that it reads and writes in the current pass.
  struct stage {
    const model_node* node = nullptr;
    /// By the operation, in order: nodes taken over, and this one. None where a reader took this
    /// one over.
    std::vector<const model_node*> computed;
    /// Positions of stages that compute, or model_input; the inputs of the first that is computed.
    std::vector<std::int32_t> reads;
    bool learns = false; ///< has parameters, or reads a stage that learns: the way back leads through it
    /// Null where there is nothing to compute, so that its input stands for it, and where its
    /// reader takes it over.
    std::unique_ptr<backend_operation> compute;
    activations output;
    std::vector<activations> inputs;
    std::vector<std::span<const float>> tensors;
    std::vector<std::span<float>> gradients;
    pass now;
  };
  bool is_skipped(std::int32_t position) const;
  std::vector<stage*> only_read_by(const stage& s);
  bool reads_what_learns(const stage& s) const;
  std::int64_t readers_of(std::int32_t position) const;
  void make_operation(stage& s);
  bool take_over(stage& s, std::span<stage* const> before);
  memory_plan make_plan(memory_plan::pass_kind kind) const;
  std::size_t permuted_floats() const;
  result<void> begin(const memory_plan& plan, std::int64_t batch);
  void begin(stage& s, std::span<const float> parameters, std::span<float> gradient) const;
  /// What the plan has at `offset` numbers of a record.
  activations planned(std::size_t offset, std::size_t numbers) const {
    return memory_.part(offset * static_cast<std::size_t>(batch_), numbers);
  }
  activations output_of(std::int32_t position) const;
  activations output_gradient(std::size_t position) const;
  bool learns(std::int32_t position) const;
  void pass_back(std::size_t position);
  void tell_final(const stage& s, const progress& tell);
  result<void> bring(const batch& batch);
  void clear_padding(std::span<float> gradient);

  std::shared_ptr<const model> model_;
  std::unique_ptr<engine::backend> backend_; ///< outlives the operations that it made
  std::vector<stage> stages_;
  std::optional<memory_plan> training_plan_, evaluation_plan_;
  const memory_plan* plan_ = nullptr; ///< of the current pass
  std::int64_t batch_ = 0;            ///< of the current pass
  activations memory_;                ///< laid out as the plan says
  activations records_;
};

network::impl::impl(std::shared_ptr<const model> model, std::unique_ptr<engine::backend> backend)
    : model_(std::move(model))
    , backend_(std::move(backend)) {
  stages_.reserve(model_->nodes().size());
  for (const auto& node : model_->nodes()) {
    stage s;
    s.node = &node;
    s.computed = {&node};
    for (auto input : node.inputs)
      s.reads.push_back(is_skipped(input) ? stages_[static_cast<std::size_t>(input)].reads[0] : input);
    s.learns = reads_what_learns(s) || !node.layer->tensors().empty();
    s.now.layer = static_cast<std::uint32_t>(stages_.size());
    stages_.push_back(std::move(s));
  }
  // From the last to the first: of several that could compute a stage too, the last does.
  for (auto s = stages_.rbegin(); s != stages_.rend(); ++s) make_operation(*s);
  training_plan_ = make_plan(memory_plan::pass_kind::forward_backward);
  evaluation_plan_ = make_plan(memory_plan::pass_kind::forward);
}

/// Whether the stage's input stands for it. The outputs of the model are always a stage's own.
bool network::impl::is_skipped(std::int32_t position) const {
  if (position == model_node::model_input) return false;
  const auto at = static_cast<std::size_t>(position);
  return at + 1 < model_->nodes().size() && model_->nodes()[at].layer->is_identity();
}

bool network::impl::reads_what_learns(const stage& s) const {
  return std::ranges::any_of(s.reads, [this](std::int32_t input) { return learns(input); });
}

std::int64_t network::impl::readers_of(std::int32_t position) const {
  std::int64_t readers = 0;
  for (std::size_t i = 0; i < stages_.size(); ++i)
    if (!stages_[i].computed.empty() && !is_skipped(static_cast<std::int32_t>(i)))
      readers += std::ranges::count(stages_[i].reads, position);
  return readers;
}

/// The stages before this one of which each is read by the next alone; at most as many as an
/// operation takes over.
std::vector<network::impl::stage*> network::impl::only_read_by(const stage& s) {
  constexpr std::size_t taken_over_max = 2; // a convolution and its relu
  std::vector<stage*> before;
  const auto* at = &s;
  while (before.size() < taken_over_max && at->reads.size() == 1 && at->reads[0] != model_node::model_input) {
    if (readers_of(at->reads[0]) != 1) break;
    auto& next = stages_[static_cast<std::size_t>(at->reads[0])];
    before.insert(before.begin(), &next);
    at = &next;
  }
  return before;
}

void network::impl::make_operation(stage& s) {
  const bool is_taken_over = s.computed.empty();
  if (is_taken_over || is_skipped(static_cast<std::int32_t>(s.now.layer))) return;
  auto before = only_read_by(s);
  while (!before.empty() && !take_over(s, before)) before.erase(before.begin());
  if (!s.compute) s.compute = backend_->make_operation(*s.node->layer, reads_what_learns(s));
}

/// Lets the stage compute those before it too, if its layer can.
bool network::impl::take_over(stage& s, std::span<stage* const> before) {
  std::vector<const layer*> layers;
  for (const auto* const one : before) layers.push_back(one->node->layer.get());
  s.compute = backend_->make_joined_operation(*s.node->layer, layers, reads_what_learns(*before.front()));
  if (!s.compute) return false;
  s.computed.clear();
  for (auto* const one : before) {
    s.computed.push_back(one->node);
    one->computed.clear();
  }
  s.computed.push_back(s.node);
  s.reads = before.front()->reads;
  return true;
}

memory_plan network::impl::make_plan(memory_plan::pass_kind kind) const {
  std::vector<planned_stage> planned;
  for (const auto& s : stages_)
    planned.push_back({.reads = s.reads,
                       .output_floats = static_cast<std::size_t>(s.node->layer->output_size()),
                       .computes = s.compute != nullptr,
                       .learns = s.learns,
                       .use = s.compute ? s.compute->memory() : memory_use{}});
  return {planned, kind, permuted_floats()};
}

/// Of a record that has to be brought into the order of activations; 0 where it is in that already.
std::size_t network::impl::permuted_floats() const {
  const channel_extents in(model_->input_shape());
  return in.same() ? 0 : static_cast<std::size_t>(in.channels * in.pixels);
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

/// Lays out the memory for a pass.
result<void> network::impl::begin(const memory_plan& plan, std::int64_t batch) {
  plan_ = &plan;
  batch_ = batch;
  const auto memory = backend_->begin(plan.floats() * static_cast<std::size_t>(batch));
  if (!memory) return tl::unexpected(memory.error());
  memory_ = *memory;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    auto& s = stages_[i];
    const auto floats = static_cast<std::size_t>(s.node->layer->output_size());
    if (s.compute) s.output = planned(plan.output(i), floats * static_cast<std::size_t>(batch));
  }
  return {};
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
  s.now.batch = batch_;
  s.inputs.clear();
  for (const auto input : s.reads) s.inputs.push_back(output_of(input));
}

activations network::impl::output_of(std::int32_t position) const {
  return position == model_node::model_input ? records_ : stages_[static_cast<std::size_t>(position)].output;
}

activations network::impl::output_gradient(std::size_t position) const {
  return planned(plan_->output_gradient(position), stages_[position].output.size());
}

bool network::impl::learns(std::int32_t position) const {
  return position != model_node::model_input && stages_[static_cast<std::size_t>(position)].learns;
}

/// The records with channels innermost, as the layers want them.
result<void> network::impl::bring(const batch& batch) {
  if (permuted_floats() == 0) {
    const auto there = backend_->bring(batch.records);
    if (!there) return tl::unexpected(there.error());
    records_ = *there;
    return {};
  }
  const channel_extents in(model_->input_shape());
  records_ = planned(plan_->records(), batch.records.size());
  return backend_->bring_transposed(batch.size, in.channels, in.pixels, batch.records, records_);
}

result<void> network::impl::forward(std::span<const float> parameters, std::span<float> gradient,
                                    const batch& batch, const slot_key& key, bool training) {
  DLRUN_CHECK(parameters.size() == model_->layout().flat_size(), "{} parameters for a layout of {}",
              parameters.size(), model_->layout().flat_size());
  if (auto begun = begin(training ? *training_plan_ : *evaluation_plan_, batch.size); !begun) return begun;
  if (auto brought = bring(batch); !brought) return brought;
  for (auto& s : stages_) {
    if (!s.compute) continue;
    begin(s, parameters, gradient);
    s.now.training = training;
    s.now.key = key;
    if (auto done = s.compute->forward(s.now, s.inputs, s.output); !done) return done;
  }
  return {};
}

/// Writes the metrics tensor (=) and, if asked, the gradient that backward() begins with.
result<void> network::impl::loss(const batch& batch, bool with_gradient, std::span<float> metrics) {
  const auto gradient = with_gradient ? output_gradient(stages_.size() - 1) : activations{};
  return backend_->loss(outputs(), batch, gradient, metrics);
}

void network::impl::backward(std::span<float> gradient, const progress& tell) {
  clear_padding(gradient);
  // All readers of a stage lie behind it, so that its gradient is whole when its turn comes.
  for (std::size_t i = stages_.size(); i-- > 0;) {
    if (!stages_[i].learns || !stages_[i].compute) continue;
    pass_back(i);
    if (tell) tell_final(stages_[i], tell);
  }
}

/// Tensors lie in the order of the nodes: those of this stage and of all behind it have their
/// gradients, the metrics too.
void network::impl::tell_final(const stage& s, const progress& tell) {
  if (s.tensors.empty()) return;
  const auto first = model_->layout().tensors()[s.computed.front()->first_tensor].offset;
  if (first > 0) backend_->reached(first, tell);
}

/// Computes the stage's gradients and gives each stage that it reads its part. Where an output has
/// several readers, their parts are added from the last reader to the first.
void network::impl::pass_back(std::size_t position) {
  auto& s = stages_[position];
  std::vector<activations> parts(s.inputs.size());
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (learns(s.reads[i])) parts[i] = planned(plan_->part(position, i), s.inputs[i].size());
  s.compute->backward(s.now, s.inputs, s.output, output_gradient(position), parts);
  for (std::size_t i = parts.size(); i-- > 0;) {
    if (parts[i].empty() || plan_->is_first_part(position, i)) continue;
    backend_->add(parts[i], output_gradient(static_cast<std::size_t>(s.reads[i])));
  }
}

void network::impl::clear_padding(std::span<float> gradient) {
  const auto& tensors = model_->layout().tensors();
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const auto end = tensors[t].offset + tensors[t].size;
    const auto next = t + 1 < tensors.size() ? tensors[t + 1].offset : model_->layout().flat_size();
    if (end < next) backend_->clear(gradient.subspan(end, next - end));
  }
}

network::network(std::shared_ptr<const model> model, int threads)
    : network(model, std::make_unique<cpu_backend>(model, threads)) {}

network::network(std::shared_ptr<const model> model, std::unique_ptr<engine::backend> backend)
    : impl_(std::make_unique<impl>(std::move(model), std::move(backend))) {}

network::~network() = default;

result<void> network::forward_backward(std::span<const float> parameters, const batch& batch,
                                       const slot_key& key, std::span<float> gradient,
                                       const progress& tell) try {
  const auto& model = impl_->described();
  const auto& metrics = model.layout().metrics();
  DLRUN_CHECK(gradient.size() == model.layout().flat_size(), "{} floats of gradient for a layout of {}",
              gradient.size(), model.layout().flat_size());
  if (auto checked = impl_->check(batch, model.min_batch()); !checked) return checked;
  if (auto done = impl_->forward(parameters, gradient, batch, key, true); !done) return done;
  if (auto done = impl_->loss(batch, true, gradient.subspan(metrics.offset, metrics.size)); !done)
    return done;
  impl_->backward(gradient, tell);
  return impl_->finish(tell);
} catch (const dnnl::error& e) {
  return fail(error_code::system, fmt::format("oneDNN could not compute the gradient: {}", e.message));
}

result<void> network::evaluate(std::span<const float> parameters, const batch& batch,
                               std::span<float> metrics) try {
  DLRUN_CHECK(metrics.size() == impl_->described().layout().metrics().size, "{} floats for metrics, not {}",
              metrics.size(), impl_->described().layout().metrics().size);
  if (auto checked = impl_->check(batch, 1); !checked) return checked;
  if (auto done = impl_->forward(parameters, {}, batch, {}, false); !done) return done;
  if (auto done = impl_->loss(batch, false, metrics); !done) return done;
  return impl_->finish(nullptr);
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
  if (auto done = impl_->forward(parameters, {}, batch, {}, false); !done) return done;
  if (auto done = impl_->fetch_outputs(outputs); !done) return done;
  return impl_->finish(nullptr);
} catch (const dnnl::error& e) {
  return fail(error_code::system, fmt::format("oneDNN could not predict: {}", e.message));
}

std::size_t network::activation_floats() const { return impl_->activation_floats(); }

} // namespace dlrun::engine
