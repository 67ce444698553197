#include "actors/common/journaled_evaluation.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace dlrun::common {
namespace {

std::string key_of_entry(std::size_t number) { return fmt::format("evaluations/{:06}", number); }

protocol::evaluated evaluated_from(const records::JournalEvaluation& from) {
  protocol::evaluated result;
  result.timeline = {from.timeline()};
  result.version = {from.version()};
  result.loss_sum_bits = from.loss_sum_bits();
  result.records = from.records();
  result.metric_bits.assign(from.metric_bits().begin(), from.metric_bits().end());
  return result;
}

void put(const protocol::evaluated& one, records::JournalEvaluation& into) {
  into.set_timeline(one.timeline.value);
  into.set_version(one.version.value);
  into.set_loss_sum_bits(one.loss_sum_bits);
  into.set_records(one.records);
  for (const auto bits : one.metric_bits) into.add_metric_bits(bits);
}

} // namespace

std::optional<std::vector<protocol::evaluated>>
read_evaluations(const std::map<std::string, std::string>& entries, const records::JournalCourse& course) {
  std::vector<protocol::evaluated> all;
  const std::size_t apart = course.evaluations_apart();
  if (apart == 0)
    for (const auto& one : course.evaluations()) all.push_back(evaluated_from(one));
  while (all.size() < apart) {
    const auto entry = entries.find(key_of_entry(all.size() / evaluations_an_entry));
    records::JournalEvaluations message;
    const auto wanted = std::min(evaluations_an_entry, apart - all.size());
    if (entry == entries.end() || !message.ParseFromString(entry->second) ||
        static_cast<std::size_t>(message.evaluations_size()) < wanted)
      return std::nullopt;
    for (std::size_t i = 0; i < wanted; ++i)
      all.push_back(evaluated_from(message.evaluations(static_cast<int>(i))));
  }
  return all;
}

std::vector<persistence::journal_write> evaluation_writes(const std::vector<protocol::evaluated>& before,
                                                          const std::vector<protocol::evaluated>& now) {
  const auto first_other = std::ranges::mismatch(before, now).in2;
  const auto same = static_cast<std::size_t>(first_other - now.begin());
  std::vector<persistence::journal_write> writes;
  if (same == now.size()) return writes; // there are fewer, and the course says how many
  for (auto entry = same / evaluations_an_entry; entry * evaluations_an_entry < now.size(); ++entry) {
    records::JournalEvaluations message;
    const auto end = std::min(now.size(), (entry + 1) * evaluations_an_entry);
    for (auto i = entry * evaluations_an_entry; i < end; ++i) put(now[i], *message.add_evaluations());
    writes.push_back({key_of_entry(entry), message.SerializeAsString()});
  }
  return writes;
}

} // namespace dlrun::common
