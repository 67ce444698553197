#include "engine/cpu_computer.hpp"

#include "engine/fingerprint.hpp"
#include "kernels/cpu/reduce.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <fmt/format.h>
#include <new>
#include <vector>

namespace dlrun::engine {
namespace {

class lent_vector : public computer_vector {
public:
  explicit lent_vector(std::span<float> memory)
      : memory_{memory} {}

  std::size_t size() const override { return memory_.size(); }
  std::span<float> host() override { return memory_; }

private:
  std::span<float> memory_;
};

class owned_vector final : public computer_vector {
public:
  explicit owned_vector(std::size_t floats)
      : floats_(floats) {}

  std::size_t size() const override { return floats_.size(); }
  std::span<float> host() override { return floats_; }

private:
  std::vector<float> floats_;
};

} // namespace

cpu_computer::cpu_computer(std::shared_ptr<const model> model, int threads)
    : network_{std::move(model), threads}
    , threads_{threads} {}

result<std::unique_ptr<computer_vector>> cpu_computer::make_vector(std::size_t floats) {
  try {
    return std::make_unique<owned_vector>(floats);
  } catch (const std::bad_alloc&) {
    return fail(error_code::limit_exceeded,
                fmt::format("there is no memory for a vector of {} floats", floats));
  }
}

result<std::unique_ptr<computer_vector>> cpu_computer::lend(std::span<float> memory) {
  return std::make_unique<lent_vector>(memory);
}

void cpu_computer::clear(computer_vector& into, std::size_t begin, std::size_t end) {
  std::ranges::fill(into.host().subspan(begin, end - begin), 0.0F);
}

void cpu_computer::add(computer_vector& into, computer_vector& other, std::size_t begin, std::size_t end) {
  const auto sums = into.host().subspan(begin, end - begin);
  kernels::cpu::add(sums, other.host().subspan(begin, end - begin), sums);
}

result<void> cpu_computer::copy(computer_vector& from, std::size_t begin, std::span<float> to) {
  const auto floats = from.host().subspan(begin, to.size());
  if (floats.data() != to.data()) std::ranges::copy(floats, to.begin());
  return {};
}

result<void> cpu_computer::read(version_id, std::span<const float> parameters) {
  parameters_ = parameters;
  return {};
}

result<void> cpu_computer::forward_backward(const batch& batch, const slot_key& key,
                                            computer_vector& gradient, const progress& tell) {
  return network_.forward_backward(parameters_, batch, key, gradient.host(), tell);
}

result<void> cpu_computer::evaluate(const batch& batch, std::span<float> metrics) {
  return network_.evaluate(parameters_, batch, metrics);
}

result<void> cpu_computer::predict(std::span<const float> records, std::int64_t size,
                                   std::span<float> outputs) {
  return network_.predict(parameters_, records, size, outputs);
}

std::string cpu_computer::fingerprint() const { return processor_fingerprint(threads_); }

std::unique_ptr<computer> make_computer(std::shared_ptr<const model> model, int threads) {
  return std::make_unique<cpu_computer>(std::move(model), threads);
}

} // namespace dlrun::engine
