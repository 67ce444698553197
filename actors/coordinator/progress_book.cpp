#include "actors/coordinator/progress_book.hpp"

#include "proto/journal_records.pb.h"

#include <charconv>
#include <fmt/format.h>
#include <utility>

namespace dlrun::coordinator {
namespace {

constexpr std::string_view progress_prefix = "progress/";
constexpr auto progress_period = std::chrono::seconds(1);

std::string encode(const protocol::shard_status& status) {
  records::JournalProgress message;
  message.set_applied(status.applied.value);
  message.set_steps_redone(status.ledger.steps_redone);
  message.set_samples_applied(status.ledger.samples_applied);
  message.set_samples_missing(status.ledger.samples_missing);
  message.set_samples_duplicated(status.ledger.samples_duplicated);
  if (!status.has_metrics) return message.SerializeAsString();
  auto& metrics = *message.mutable_metrics();
  metrics.set_loss_sum_bits(status.metrics.loss_sum_bits);
  metrics.set_records(status.metrics.records);
  metrics.mutable_sum_bits()->Add(status.metrics.sum_bits.begin(), status.metrics.sum_bits.end());
  return message.SerializeAsString();
}

protocol::shard_status status_from(const records::JournalProgress& message, ps_shard_id shard) {
  protocol::shard_status status;
  status.shard = shard;
  status.applied = {message.applied()};
  status.ledger.steps_redone = message.steps_redone();
  status.ledger.samples_applied = message.samples_applied();
  status.ledger.samples_missing = message.samples_missing();
  status.ledger.samples_duplicated = message.samples_duplicated();
  status.has_metrics = message.has_metrics();
  const auto& metrics = message.metrics();
  status.metrics.loss_sum_bits = metrics.loss_sum_bits();
  status.metrics.records = metrics.records();
  status.metrics.sum_bits = {metrics.sum_bits().begin(), metrics.sum_bits().end()};
  return status;
}

} // namespace

progress_book::progress_book(const std::map<std::string, std::string>& entries) {
  for (const auto& [key, bytes] : entries) {
    if (!key.starts_with(progress_prefix)) continue;
    const auto digits = std::string_view{key}.substr(progress_prefix.size());
    ps_shard_id shard;
    records::JournalProgress message;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), shard.value);
    if (read.ec == std::errc{} && message.ParseFromString(bytes))
      newest_[shard] = status_from(message, shard);
  }
}

void progress_book::hear(const protocol::shard_status& status) {
  newest_[status.shard] = status;
  unwritten_.insert(status.shard);
}

std::vector<protocol::shard_status> progress_book::all() const {
  std::vector<protocol::shard_status> all;
  for (const auto& [shard, status] : newest_) all.push_back(status);
  return all;
}

std::vector<persistence::journal_write> progress_book::changes(std::optional<protocol::time_point> now) {
  if (now && *now - written_ < progress_period) return {};
  if (now) written_ = *now;
  std::vector<persistence::journal_write> writes;
  for (const auto shard : std::exchange(unwritten_, {}))
    writes.push_back({fmt::format("{}{:06}", progress_prefix, shard), encode(newest_[shard])});
  return writes;
}

} // namespace dlrun::coordinator
