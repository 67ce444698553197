#include "engine/cuda/memory_shortage.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <string>

namespace dlrun::engine {
namespace {

constexpr auto without_fit = "take a GPU with more memory, or let fewer workers share it";

std::string mib(std::size_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1024.0 * 1024.0));
}

/// The layer that gives most for a record, and how much.
std::string largest_output(const model& of, std::int64_t records, kernels::cuda::precision arithmetic) {
  const auto numbers = [](const model_node& node) { return *element_count(node.layer->output_shape()); };
  const auto& largest = *std::ranges::max_element(of.nodes(), {}, numbers);
  return fmt::format("{} of layer '{}'",
                     mib(static_cast<std::size_t>(numbers(largest) * records) * activation_bytes(arithmetic)),
                     largest.layer->name());
}

/// How to go on with a pass that needs more than there is.
std::string way_out(const memory_account& account, const std::shared_ptr<const model>& model,
                    std::int64_t records, pass_kind kind) {
  const auto taken = account.vectors + account.libraries;
  const auto fit = taken < account.free
                       ? records_that_fit(model, account.free - taken, records, kind, account.arithmetic)
                       : std::int64_t{0};
  if (fit == 0) return fmt::format("no microbatch fits: {}", without_fit);
  return fmt::format("{} records would fit: set train.microbatch_size: {}", fit, fit);
}

} // namespace

error explain_pass(const error& why, const memory_account& account, const std::shared_ptr<const model>& model,
                   std::int64_t records, pass_kind kind) {
  const auto pass = memory_of_pass(model, records, kind, account.arithmetic);
  if (!pass) return why;
  const auto sum = account.vectors + account.libraries + pass->sum();
  const auto told = fmt::format(
      "{}. A microbatch of {} records needs {} of the GPU's memory: {} for parameters and gradients, {} for "
      "activations (the largest: {}), {} for what layers keep, {} for libraries to compute in; {} were free",
      why.message, records, mib(sum), mib(account.vectors), mib(pass->activations),
      largest_output(*model, records, account.arithmetic), mib(pass->layers), mib(account.libraries),
      mib(account.free));
  if (sum <= account.free)
    return {why.code,
            fmt::format("{} when this worker began, and others have taken of that: {}", told, without_fit)};
  return {why.code, fmt::format("{}; {}", told, way_out(account, model, records, kind))};
}

error explain_vectors(const error& why, const memory_account& account) {
  return {why.code, fmt::format("{}. Parameters and gradients need {} of the GPU's memory; {} were free: {}",
                                why.message, mib(account.vectors), mib(account.free), without_fit)};
}

} // namespace dlrun::engine
