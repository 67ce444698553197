#include "engine/metrics/makers.hpp"

#include <fmt/format.h>
#include <limits>

namespace dlrun::engine {
namespace {

/// Sums: hits, then what could have been hit.
class share_of_hits : public metric {
public:
  std::size_t floats() const final { return 2; }
  double value(std::span<const double> sums) const final {
    return sums[1] == 0 ? not_measured() : sums[0] / sums[1];
  }
};

/// Is the label among the k greatest scores, the first of equals first? Where a score is no finite
/// number (but for that of an impossible class, -infinity), nothing is a hit.
bool among_greatest(std::span<const float> scores, std::size_t label, std::int64_t k) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float own = scores[label];
  if (!(own > -infinity)) return false;
  std::int64_t before = 0;
  for (std::size_t c = 0; c < scores.size(); ++c) {
    if (!(scores[c] < infinity)) return false;
    before += scores[c] > own || (c < label && scores[c] == own) ? 1 : 0;
  }
  return before < k;
}

class top_k final : public share_of_hits {
public:
  top_k(std::string name, std::int64_t k)
      : name_(std::move(name))
      , k_(k) {}

  std::string name() const override { return name_; }

  void add(std::span<const float> outputs, const batch& batch, std::span<float> sums) const override {
    const auto classes = outputs.size() / batch.classes.size();
    std::int64_t hits = 0;
    for (std::size_t r = 0; r < batch.classes.size(); ++r)
      hits += among_greatest(outputs.subspan(r * classes, classes),
                             static_cast<std::size_t>(batch.classes[r]), k_)
                  ? 1
                  : 0;
    sums[0] += static_cast<float>(hits);
    sums[1] += static_cast<float>(batch.size);
  }

private:
  std::string name_;
  std::int64_t k_;
};

/// Of every output: yes above a probability of one half.
class yes_or_no final : public share_of_hits {
public:
  std::string name() const override { return "accuracy"; }

  void add(std::span<const float> outputs, const batch& batch, std::span<float> sums) const override {
    std::int64_t hits = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const bool is_yes = batch.values[i] > 0.5F;
      hits += (is_yes ? outputs[i] > 0.0F : outputs[i] <= 0.0F) ? 1 : 0; // what is not a number is neither
    }
    sums[0] += static_cast<float>(hits);
    sums[1] += static_cast<float>(outputs.size());
  }
};

} // namespace

metric_result make_accuracy(const measured& on) {
  switch (on.outputs) {
  case output_kind::class_scores: return std::make_unique<top_k>("accuracy", 1);
  case output_kind::logits: return std::make_unique<yes_or_no>();
  case output_kind::values: break;
  }
  return unmeasurable("accuracy", on, "mae");
}

metric_result make_top_k(const spec::TopK& spec, const measured& on) {
  if (on.outputs != output_kind::class_scores)
    return unmeasurable("top_k", on, on.outputs == output_kind::logits ? "accuracy or auc" : "mae");
  const std::int64_t k = spec.has_k() ? spec.k() : 5;
  if (k < 1 || k > on.width)
    return metric_error(
        "top_k", fmt::format("k {} is not from 1 to the {} classes of the model; write k", k, on.width));
  return std::make_unique<top_k>(fmt::format("top{}", k), k);
}

} // namespace dlrun::engine
