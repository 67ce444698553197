/// A device as a backend.
#pragma once

#include "engine/backend.hpp"
#include "engine/cuda/device_array.hpp"
#include "engine/cuda/device_operations.hpp"
#include "engine/cuda/host_watch.hpp"
#include "engine/model.hpp"
#include "kernels/cpu/onednn.hpp"

#include <string>
#include <vector>

namespace dlrun::engine {

/// Computes in memory of a device, on its lane `compute`: a pass is put there as a whole, and the
/// host waits in finish(). The metrics are computed by the host meanwhile, from outputs that the
/// lane `side` brings.
class device_backend final : public backend {
public:
  /// `threads`: OpenMP threads of what the host computes. The device outlives the backend.
  device_backend(std::shared_ptr<const model> model, int threads, kernels::cuda::device& on,
                 host_watch::clock now);

  std::unique_ptr<backend_operation> make_operation(const layer& layer, bool input_gradient) override;
  std::unique_ptr<backend_operation> make_joined_operation(const layer& last,
                                                           std::span<const layer* const> before,
                                                           bool input_gradient) override;
  result<activations> begin(std::size_t numbers) override;
  result<activations> bring(std::span<const float> records) override;
  result<void> bring_transposed(std::int64_t batch, std::int64_t rows, std::int64_t columns,
                                std::span<const float> records, activations to) override;
  void add(activations part, activations sum) override;
  void clear(std::span<float> floats) override;
  result<void> loss(activations outputs, const batch& batch, activations gradient,
                    std::span<float> metrics) override;
  result<void> fetch(activations from, std::span<float> to) override;
  void reached(std::uint64_t first_final, const progress& tell) override;
  /// While `tell` runs, what has been told of is done, and the lane `side` is free for copies of
  /// it.
  result<void> finish(const progress& tell) override;

  /// Of the device, for activations and their gradients.
  std::size_t activation_bytes() const { return activations_.bytes(); }

  /// Layers that the host computes, since the device does not know them.
  const std::vector<std::string>& host_layers() const { return host_layers_; }
  /// What they have taken so far, with their copies.
  std::chrono::nanoseconds host_time() const { return watch_.total(); }

private:
  /// The loss of a pass whose metrics are not written yet.
  struct open_loss {
    const dlrun::batch* batch = nullptr; ///< null: there is none
    std::size_t outputs = 0;
    std::span<float> metrics;
    bool on_device = false; ///< where the metrics go
  };

  operation_parts parts() { return {on_, host_, watch_, *model_, key_, records_}; }
  result<void> upload_records(std::span<const float> records);
  result<void> make_room(std::size_t outputs);
  result<void> bring_targets(const batch& batch);
  result<const float*> wide_outputs(activations outputs);
  result<float*> wide_gradient(activations gradient);
  result<void> run_loss(const float* outputs, std::int64_t width, const batch& batch, float* gradient);
  result<const double*> on_device(const std::vector<double>& weights);
  result<void> write_metrics();
  result<void> check_values();
  result<void> tell_all(const progress& tell);
  result<kernels::cuda::event*> event_number(std::size_t number);

  std::shared_ptr<const model> model_;
  const loss_description what_loss_; ///< of the model
  int threads_;
  kernels::cuda::device& on_;
  kernels::cpu::onednn host_;
  host_watch watch_; ///< of host_layers_
  pass_key key_;
  std::vector<value_check*> values_; ///< of operations, which the network owns
  std::vector<std::string> host_layers_;
  activation_array activations_, narrow_records_;
  device_array<float> records_, target_values_;
  device_array<float> wide_outputs_, wide_gradient_; ///< of the loss, where activations are no floats
  device_array<std::int32_t> target_classes_;
  device_array<double> loss_, weights_;
  pinned_array<double> told_loss_;
  pinned_array<float> told_outputs_, metrics_;
  std::unique_ptr<kernels::cuda::event> outputs_there_, side_done_;
  open_loss open_;
  std::vector<std::unique_ptr<kernels::cuda::event>> events_; ///< reused from pass to pass
  std::vector<std::uint64_t> reached_;                        ///< of this pass, one an event
  std::uint64_t told_from_ = 0;                               ///< in this pass, the last of them
  result<void> broken_;                                       ///< what a call that returns nothing met
};

} // namespace dlrun::engine
