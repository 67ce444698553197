/// A model on the processor.
#pragma once

#include "engine/computer.hpp"
#include "engine/network.hpp"

namespace dlrun::engine {

/// Works in the memory of the host: what is lent is used in place, and nothing is copied.
class cpu_computer final : public computer {
public:
  cpu_computer(std::shared_ptr<const model> model, int threads);

  result<std::unique_ptr<computer_vector>> make_vector(std::size_t floats) override;
  result<std::unique_ptr<computer_vector>> lend(std::span<float> memory) override;
  void clear(computer_vector& into, std::size_t begin, std::size_t end) override;
  void add(computer_vector& into, computer_vector& other, std::size_t begin, std::size_t end) override;
  result<void> copy(computer_vector& from, std::size_t begin, std::span<float> to) override;
  result<void> read(version_id version, std::span<const float> parameters) override;
  result<void> forward_backward(const batch& batch, const slot_key& key, computer_vector& gradient,
                                const progress& tell) override;
  result<void> evaluate(const batch& batch, std::span<float> metrics) override;
  result<void> predict(std::span<const float> records, std::int64_t size, std::span<float> outputs) override;
  std::string fingerprint() const override;

private:
  network network_;
  int threads_;
  std::span<const float> parameters_; ///< as the last read() named them
};

} // namespace dlrun::engine
