/// A computer whose vectors the host cannot reach, as those of a GPU.
#pragma once

#include "engine/cpu_computer.hpp"

#include <dlrun/check.hpp>
#include <vector>

namespace dlrun::test {

/// Computes as the processor does, in memory that it shows to nobody: only copy() brings floats
/// out.
class remote_computer final : public engine::computer {
public:
  remote_computer(std::shared_ptr<const engine::model> model, int threads)
      : inside_{std::move(model), threads} {}

  result<std::unique_ptr<engine::computer_vector>> make_vector(std::size_t floats) override {
    return std::make_unique<remote_vector>(inside_.make_vector(floats).value());
  }
  result<std::unique_ptr<engine::computer_vector>> lend(std::span<float> memory) override {
    return make_vector(memory.size());
  }
  void clear(engine::computer_vector& into, std::size_t begin, std::size_t end) override {
    inside_.clear(hidden(into), begin, end);
  }
  void add(engine::computer_vector& into, engine::computer_vector& other, std::size_t begin,
           std::size_t end) override {
    inside_.add(hidden(into), hidden(other), begin, end);
  }
  result<void> copy(engine::computer_vector& from, std::size_t begin, std::span<float> to) override {
    floats_copied += to.size();
    return inside_.copy(hidden(from), begin, to);
  }
  /// As over a bus: what the caller does with his memory afterwards is not seen.
  result<void> read(version_id version, std::span<const float> parameters) override {
    parameters_.assign(parameters.begin(), parameters.end());
    return inside_.read(version, parameters_);
  }
  result<void> forward_backward(const batch& batch, const slot_key& key, engine::computer_vector& gradient,
                                const progress& tell) override {
    return inside_.forward_backward(batch, key, hidden(gradient), tell);
  }
  result<void> evaluate(const batch& batch, std::span<float> metrics) override {
    return inside_.evaluate(batch, metrics);
  }
  result<void> predict(std::span<const float> records, std::int64_t size, std::span<float> outputs) override {
    return inside_.predict(records, size, outputs);
  }
  std::string fingerprint() const override { return "remote | " + inside_.fingerprint(); }

  std::size_t floats_copied = 0;

private:
  struct remote_vector final : engine::computer_vector {
    explicit remote_vector(std::unique_ptr<engine::computer_vector> inside)
        : inside{std::move(inside)} {}
    std::size_t size() const override { return inside->size(); }
    std::span<float> host() override { return {}; }

    std::unique_ptr<engine::computer_vector> inside;
  };
  static engine::computer_vector& hidden(engine::computer_vector& vector) {
    return *dynamic_cast<remote_vector&>(vector).inside;
  }

  engine::cpu_computer inside_;
  std::vector<float> parameters_;
};

} // namespace dlrun::test
