/// The processor as a backend.
#pragma once

#include "engine/backend.hpp"
#include "engine/model.hpp"
#include "kernels/cpu/aligned_floats.hpp"
#include "kernels/cpu/onednn.hpp"

namespace dlrun::engine {

/// Computes in the memory of the host, when it is asked.
class cpu_backend final : public backend {
public:
  /// `threads`: OpenMP threads for one microbatch, at least 1.
  cpu_backend(std::shared_ptr<const model> model, int threads);

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
  result<void> finish(const progress& tell) override;

private:
  std::shared_ptr<const model> model_;
  int threads_;
  kernels::cpu::onednn context_;
  kernels::cpu::aligned_floats buffer_;
};

} // namespace dlrun::engine
