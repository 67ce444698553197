#include "engine/cuda/device_backend.hpp"

#include "engine/compute_threads.hpp"
#include "engine/computer.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <type_traits>
#include <variant>

namespace dlrun::engine {

namespace cuda = kernels::cuda;
using cuda::lane;

device_backend::device_backend(std::shared_ptr<const model> model, int threads, cuda::device& on,
                               host_watch::clock now)
    : model_{std::move(model)}
    , what_loss_{model_->loss().describe()}
    , threads_{threads}
    , on_{on}
    , watch_{now}
    , key_{on}
    , activations_{on}
    , narrow_records_{on}
    , records_{on}
    , target_values_{on}
    , wide_outputs_{on}
    , wide_gradient_{on}
    , target_classes_{on}
    , loss_{on}
    , weights_{on}
    , told_loss_{on}
    , told_outputs_{on}
    , metrics_{on} {
  DLRUN_CHECK(threads >= 1, "a network needs a thread, not {}", threads);
}

std::unique_ptr<backend_operation> device_backend::make_operation(const layer& layer, bool input_gradient) {
  auto made = make_device_operation(parts(), layer, input_gradient);
  if (made.values != nullptr) values_.push_back(made.values);
  if (made.on_host) host_layers_.push_back(layer.name());
  return std::move(made.compute);
}

/// It reads no values that are to be looked at, and the device computes all of it.
std::unique_ptr<backend_operation>
device_backend::make_joined_operation(const layer& last, std::span<const layer* const> before, bool) {
  return std::move(make_joined_device_operation(parts(), before, last).compute);
}

result<activations> device_backend::begin(std::size_t numbers) {
  use_threads(threads_);
  open_ = {};
  reached_.clear();
  told_from_ = model_->layout().flat_size();
  if (auto room = activations_.resize(numbers); !room) return tl::unexpected(room.error());
  return activations_.first(numbers);
}

result<void> device_backend::upload_records(std::span<const float> records) {
  if (auto room = records_.resize(records.size()); !room) return room;
  on_.upload(lane::compute, records.data(), records_.data(), records.size_bytes());
  return {};
}

result<activations> device_backend::bring(std::span<const float> records) {
  if (auto there = upload_records(records); !there) return tl::unexpected(there.error());
  const auto count = records.size();
  if (!stores_less(on_)) return activations{std::span<const float>{records_.data(), count}};
  if (auto room = narrow_records_.resize(count); !room) return tl::unexpected(room.error());
  on_.run(lane::compute,
          cuda::narrow{records_.data(), narrow_records_.data(), static_cast<std::int64_t>(count)});
  return narrow_records_.first(count);
}

result<void> device_backend::bring_transposed(std::int64_t batch, std::int64_t rows, std::int64_t columns,
                                              std::span<const float> records, activations to) {
  if (auto there = upload_records(records); !there) return there;
  on_.run(lane::compute, cuda::transpose_narrowing{batch, rows, columns, records_.data(), to.data()});
  return {};
}

void device_backend::add(activations part, activations sum) {
  on_.run(lane::compute, cuda::add{sum.data(), part.data(), sum.data(), number_count(sum)});
}

void device_backend::clear(std::span<float> floats) {
  on_.run(lane::compute, cuda::fill{floats.data(), static_cast<std::int64_t>(floats.size()), 0.0F});
}

result<void> device_backend::make_room(std::size_t outputs) {
  if (auto room = loss_.resize(1); !room) return room;
  if (auto room = told_loss_.resize(1); !room) return room;
  if (auto room = told_outputs_.resize(outputs); !room) return room;
  if (auto room = metrics_.resize(model_->layout().metrics().size); !room) return room;
  for (auto* const one : {&outputs_there_, &side_done_}) {
    if (*one != nullptr) continue;
    auto made = on_.make_event();
    if (!made) return tl::unexpected(made.error());
    *one = std::move(*made);
  }
  return {};
}

result<void> device_backend::bring_targets(const batch& batch) {
  if (auto room = target_classes_.resize(batch.classes.size()); !room) return room;
  if (auto room = target_values_.resize(batch.values.size()); !room) return room;
  if (!batch.classes.empty())
    on_.upload(lane::compute, batch.classes.data(), target_classes_.data(), batch.classes.size_bytes());
  if (!batch.values.empty())
    on_.upload(lane::compute, batch.values.data(), target_values_.data(), batch.values.size_bytes());
  return {};
}

/// The weights of a loss, brought once; null where there are none.
result<const double*> device_backend::on_device(const std::vector<double>& weights) {
  if (weights.empty()) return nullptr;
  if (weights_.data() != nullptr) return weights_.data();
  if (auto room = weights_.resize(weights.size()); !room) return tl::unexpected(room.error());
  on_.upload(lane::compute, weights.data(), weights_.data(), weights.size() * sizeof(double));
  return weights_.data();
}

/// The outputs as floats.
result<const float*> device_backend::wide_outputs(activations outputs) {
  if (!stores_less(on_)) return outputs.floats().data();
  if (auto room = wide_outputs_.resize(outputs.size()); !room) return tl::unexpected(room.error());
  on_.run(lane::compute, cuda::widen{outputs.data(), wide_outputs_.data(), number_count(outputs)});
  return wide_outputs_.data();
}

/// Where the loss writes its gradient as floats; null where there is none.
result<float*> device_backend::wide_gradient(activations gradient) {
  if (gradient.empty() || !stores_less(on_)) return gradient.floats().data();
  if (auto room = wide_gradient_.resize(gradient.size()); !room) return tl::unexpected(room.error());
  return wide_gradient_.data();
}

result<void> device_backend::run_loss(const float* outputs, std::int64_t width, const batch& batch,
                                      float* gradient) {
  const auto rows = batch.size;
  if (const auto* const entropy = std::get_if<cross_entropy_description>(&what_loss_)) {
    const auto weight = on_device(entropy->weight);
    if (!weight) return tl::unexpected(weight.error());
    on_.run(lane::compute, cuda::cross_entropy{rows, width, entropy->label_smoothing, *weight, outputs,
                                               target_classes_.data(), loss_.data(), gradient});
    return {};
  }
  const auto& distance = std::get<distance_description>(what_loss_);
  const auto weight = on_device(distance.pos_weight);
  if (!weight) return tl::unexpected(weight.error());
  on_.run(lane::compute, cuda::distance{distance.kind, rows, width, distance.delta, *weight,
                                        static_cast<std::int64_t>(distance.pos_weight.size()), outputs,
                                        target_values_.data(), loss_.data(), gradient});
  return {};
}

result<void> device_backend::loss(activations outputs, const batch& batch, activations gradient,
                                  std::span<float> metrics) {
  if (auto room = make_room(outputs.size()); !room) return room;
  if (auto there = bring_targets(batch); !there) return there;
  const auto scores = wide_outputs(outputs);
  if (!scores) return tl::unexpected(scores.error());
  const auto slopes = wide_gradient(gradient);
  if (!slopes) return tl::unexpected(slopes.error());
  const auto width = number_count(outputs) / batch.size;
  if (auto done = run_loss(*scores, width, batch, *slopes); !done) return done;
  on_.record(lane::compute, *outputs_there_);
  on_.wait(lane::side, *outputs_there_);
  on_.download(lane::side, *scores, told_outputs_.data(), outputs.size() * sizeof(float));
  on_.download(lane::side, loss_.data(), told_loss_.data(), sizeof(double));
  open_ = {&batch, outputs.size(), metrics, !gradient.empty()};
  if (gradient.empty()) return {};
  // The gradient of the outputs may take their place, and the way back writes over it.
  on_.record(lane::side, *side_done_);
  on_.wait(lane::compute, *side_done_);
  if (stores_less(on_))
    on_.run(lane::compute, cuda::narrow{*slopes, gradient.data(), number_count(gradient)});
  return {};
}

/// By the host, while the device is on its way back.
result<void> device_backend::write_metrics() {
  if (auto there = on_.finish(lane::side); !there) return there;
  if (auto good = check_values(); !good) return good;
  const auto size = model_->layout().metrics().size;
  const std::span metrics{metrics_.data(), size};
  std::ranges::fill(metrics, 0.0F);
  metrics[parameter_layout::loss_sum] = static_cast<float>(*told_loss_.data());
  metrics[parameter_layout::records] = static_cast<float>(open_.batch->size);
  model_->metrics().add({told_outputs_.data(), open_.outputs}, *open_.batch,
                        metrics.subspan(parameter_layout::first_metric, model_->metrics().floats()));
  if (open_.on_device)
    on_.upload(lane::side, metrics.data(), open_.metrics.data(), metrics.size_bytes());
  else
    std::ranges::copy(metrics, open_.metrics.begin());
  return {};
}

result<void> device_backend::check_values() {
  for (auto* const one : values_)
    if (auto good = one->check(); !good) return good;
  return {};
}

result<void> device_backend::fetch(activations from, std::span<float> to) {
  const auto floats = wide_outputs(from);
  if (!floats) return tl::unexpected(floats.error());
  on_.download(lane::compute, *floats, to.data(), to.size_bytes());
  return {};
}

result<cuda::event*> device_backend::event_number(std::size_t number) {
  while (events_.size() <= number) {
    auto made = on_.make_event();
    if (!made) return tl::unexpected(made.error());
    events_.push_back(std::move(*made));
  }
  return events_[number].get();
}

/// Each further part that is worth telling of: an event takes the device a moment, and is the end
/// of a graph.
void device_backend::reached(std::uint64_t first_final, const progress&) {
  if (told_from_ - first_final < model_->layout().flat_size() / computer::progress_parts_max) return;
  told_from_ = first_final;
  const auto at = event_number(reached_.size());
  if (!at) {
    broken_ = tl::unexpected(at.error());
    return;
  }
  on_.record(lane::compute, **at);
  reached_.push_back(first_final);
}

result<void> device_backend::tell_all(const progress& tell) {
  for (std::size_t i = 0; i < reached_.size(); ++i) {
    if (auto there = on_.finish(*events_[i]); !there) return there;
    tell(reached_[i]);
  }
  return {};
}

result<void> device_backend::finish(const progress& tell) {
  if (!broken_) return broken_;
  const bool has_loss = open_.batch != nullptr;
  if (has_loss)
    if (auto done = write_metrics(); !done) return done;
  if (tell)
    if (auto done = tell_all(tell); !done) return done;
  if (auto done = on_.finish(lane::side); !done) return done;
  if (auto done = on_.finish(lane::compute); !done) return done;
  return has_loss ? result<void>{} : check_values();
}

} // namespace dlrun::engine
