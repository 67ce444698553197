#include "actors/coordinator/run_record.hpp"

#include "proto/journal_records.pb.h"

#include <algorithm>

namespace dlrun::coordinator {
namespace {

constexpr auto recovery_prefix = "recovery/";
constexpr auto sums_prefix = "run/";
constexpr auto sums_period = std::chrono::seconds(1);

double to_ms(protocol::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }
double to_seconds(protocol::duration time) { return std::chrono::duration<double>(time).count(); }

std::string encode(const job::recovery& recovery) {
  records::JournalRecovery message;
  message.set_role(recovery.role);
  message.set_index(recovery.index);
  message.set_cause(recovery.cause);
  message.set_incarnation(recovery.incarnation);
  message.set_at_seconds(recovery.at_seconds);
  message.set_detected_ms(recovery.detected_ms);
  message.set_redispatched_ms(recovery.redispatched_ms);
  message.set_resumed_ms(recovery.resumed_ms);
  return message.SerializeAsString();
}

/// What cannot be read is left out: only the report would show it.
void add_recovery(const std::string& bytes, std::vector<job::recovery>& all) {
  records::JournalRecovery message;
  if (!message.ParseFromString(bytes)) return;
  all.push_back({.role = message.role(),
                 .index = message.index(),
                 .cause = message.cause(),
                 .incarnation = message.incarnation(),
                 .at_seconds = message.at_seconds(),
                 .detected_ms = message.detected_ms(),
                 .redispatched_ms = message.redispatched_ms(),
                 .resumed_ms = message.resumed_ms()});
}

} // namespace

job::recovery to_recovery(const recovery_record& record, protocol::time_point started) {
  return {.role = std::string{protocol::to_string(record.role.kind)},
          .index = record.role.index,
          .cause = record.cause,
          .incarnation = record.replacement.value,
          .at_seconds = to_seconds(record.noticed - started),
          .detected_ms = to_ms(record.detected),
          .redispatched_ms = to_ms(record.redispatched.value_or(protocol::duration{})),
          .resumed_ms = to_ms(record.resumed.value_or(protocol::duration{}))};
}

run_record::run_record(const std::map<std::string, std::string>& entries, protocol::time_point started,
                       incarnation self)
    : started_(started)
    , self_(self) {
  std::map<std::int64_t, double> wall; // of each start of the root
  for (const auto& [key, bytes] : entries) {
    if (key.starts_with(recovery_prefix)) add_recovery(bytes, earlier_.recoveries);
    records::JournalRun message;
    if (!key.starts_with(sums_prefix) || !message.ParseFromString(bytes)) continue;
    if (message.started_us() != started.time_since_epoch().count())
      wall[message.started_us()] = std::max(wall[message.started_us()], message.wall_seconds());
    earlier_.slots_computed += message.slots_computed();
    earlier_redone_ += message.steps_redone();
  }
  for (const auto& [start, seconds] : wall) earlier_.wall_seconds += seconds;
}

std::vector<persistence::journal_write> run_record::changes(const std::vector<recovery_record>& recoveries,
                                                            std::uint64_t slots_computed,
                                                            protocol::time_point now) {
  std::vector<persistence::journal_write> writes;
  written_.resize(recoveries.size());
  for (std::size_t i = 0; i < recoveries.size(); ++i) {
    auto recovery = to_recovery(recoveries[i], started_);
    recovery.at_seconds += earlier_.wall_seconds;
    auto bytes = encode(recovery);
    if (bytes == written_[i]) continue;
    writes.push_back({fmt::format("{}{:012}/{:06}", recovery_prefix, self_, i), bytes});
    written_[i] = std::move(bytes);
  }
  if (writes.empty() && redone_ == written_redone_ && now - summed_ < sums_period) return writes;
  summed_ = now;
  written_redone_ = redone_;
  records::JournalRun sums;
  sums.set_started_us(started_.time_since_epoch().count());
  sums.set_wall_seconds(to_seconds(now - started_));
  sums.set_slots_computed(slots_computed);
  sums.set_steps_redone(redone_);
  writes.push_back({fmt::format("{}{:012}", sums_prefix, self_), sums.SerializeAsString()});
  return writes;
}

} // namespace dlrun::coordinator
