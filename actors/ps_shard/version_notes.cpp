#include "actors/ps_shard/version_notes.hpp"

#include "actors/common/job_context.hpp"
#include "actors/ps_shard/norm_exchange.hpp"

#include <utility>

namespace dlrun::ps_shard {
namespace {

constexpr std::size_t steps_max = norm_steps(common::early_publish_bound);
/// Of an encoded number with its tag, and of what surrounds repeated ones.
constexpr std::size_t number_bytes = 12;
constexpr std::size_t frame_bytes = 512;

} // namespace

version_notes::version_notes(const engine::shard_range& range, std::size_t image_floats,
                             std::size_t metric_sums)
    : extra_{{range, image_floats, std::nullopt, {}}, {}}
    , metric_sums_{metric_sums} {}

std::size_t version_notes::bytes_max() const {
  const auto blocks = extra_.snapshot.range.last_block - extra_.snapshot.range.first_block;
  return frame_bytes + metric_sums_ * number_bytes + steps_max * (frame_bytes + blocks * number_bytes);
}

void version_notes::restart(const std::optional<protocol::training_metrics>& metrics,
                            const protocol::applied_ledger& ledger,
                            std::map<step_id, norm_partials> partials) {
  metrics_ = epoch_metrics{metrics};
  extra_.snapshot.ledger = ledger;
  extra_.partials = std::move(partials);
  next_.reset();
}

std::string version_notes::after(step_id step, std::uint64_t epoch,
                                 const std::optional<step_metrics>& metrics) {
  if (metrics) metrics_.add(epoch, *metrics);
  const auto told = std::exchange(next_, std::nullopt);
  if (!told || told->step != step) return {};
  extra_.snapshot.metrics = metrics_.sums();
  extra_.snapshot.ledger = told->ledger;
  if (!told->partials.empty()) extra_.partials[step] = told->partials;
  while (extra_.partials.size() > steps_max) extra_.partials.erase(extra_.partials.begin());
  return encode(extra_);
}

} // namespace dlrun::ps_shard
