#include "actors/coordinator/run_tallies.hpp"

#include "proto/journal_records.pb.h"

#include <algorithm>
#include <sstream>
#include <utility>

namespace dlrun::coordinator {
namespace {

constexpr auto recovery_prefix = "recovery/";
constexpr auto run_prefix = "run/";
constexpr auto rewind_prefix = "rewind/";
constexpr auto older_prefix = "older/";
constexpr auto tally_prefix = "tally/";
constexpr auto sums_period = std::chrono::seconds(1);

double to_ms(protocol::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

std::string encode(const dlrun::recovery& recovery, incarnation lost) {
  records::JournalRecovery message;
  message.set_lost(lost.value);
  message.set_role(recovery.role);
  message.set_index(recovery.index);
  message.set_cause(recovery.cause);
  message.set_incarnation(recovery.incarnation);
  message.set_at_seconds(recovery.at_seconds);
  message.set_detected_ms(recovery.detected_ms);
  message.set_redispatched_ms(recovery.redispatched_ms);
  message.set_resumed_ms(recovery.resumed_ms);
  message.set_steps_redone(recovery.steps_redone);
  return message.SerializeAsString();
}

std::string encode(const dlrun::rewind& rewind) {
  records::JournalRewind message;
  message.set_timeline(rewind.timeline);
  message.set_version(rewind.version);
  message.set_steps_redone(rewind.steps_redone);
  message.set_at_seconds(rewind.at_seconds);
  message.set_reason(rewind.reason);
  return message.SerializeAsString();
}

std::string encode(const dlrun::journal_loss& loss) {
  records::JournalOlder message;
  message.set_role(loss.role);
  message.set_index(loss.index);
  message.set_incarnation(loss.incarnation);
  message.set_known(loss.known);
  message.set_at_seconds(loss.at_seconds);
  return message.SerializeAsString();
}

/// What cannot be read is left out, as below.
void add_journal_loss_from(const std::string& key, const std::string& bytes,
                           std::map<incarnation, dlrun::journal_loss>& all) {
  std::istringstream name{key.substr(std::string_view{older_prefix}.size())};
  incarnation noticed_by;
  records::JournalOlder message;
  if (name >> noticed_by.value && message.ParseFromString(bytes))
    all[noticed_by] = {message.role(), message.index(), message.incarnation(), message.known(),
                       message.at_seconds()};
}

std::string encode(const protocol::start_tally& tally) {
  records::JournalTally message;
  message.set_slots_computed(tally.slots_computed);
  message.set_bytes_logged(tally.bytes_logged);
  message.set_bytes_snapshotted(tally.bytes_snapshotted);
  message.set_bytes_copied(tally.bytes_copied);
  message.set_copy_waited_us(tally.copy_waited_us);
  return message.SerializeAsString();
}

std::string tally_key(const protocol::start_tally& tally) {
  return fmt::format("{}{}/{}/{}", tally_prefix, static_cast<int>(tally.role.kind), tally.role.index,
                     tally.incarnation);
}

std::optional<protocol::start_tally> tally_from(const std::string& key, const std::string& bytes) {
  std::istringstream name{key.substr(std::string_view{tally_prefix}.size())};
  int kind = 0;
  char slash = '/';
  protocol::start_tally tally;
  records::JournalTally message;
  if (!(name >> kind >> slash >> tally.role.index >> slash >> tally.incarnation.value)) return std::nullopt;
  if (!message.ParseFromString(bytes)) return std::nullopt;
  tally.role.kind = static_cast<protocol::role_kind>(kind);
  tally.slots_computed = message.slots_computed();
  tally.bytes_logged = message.bytes_logged();
  tally.bytes_snapshotted = message.bytes_snapshotted();
  tally.bytes_copied = message.bytes_copied();
  tally.copy_waited_us = message.copy_waited_us();
  return tally;
}

/// What cannot be read is left out: only the report would show it.
void add_recovery(const std::string& bytes, earlier_starts& earlier) {
  records::JournalRecovery message;
  if (!message.ParseFromString(bytes)) return;
  earlier.losses.insert({message.role(), message.index(), message.lost()});
  earlier.recoveries.push_back({.role = message.role(),
                                .index = message.index(),
                                .cause = message.cause(),
                                .incarnation = message.incarnation(),
                                .at_seconds = message.at_seconds(),
                                .detected_ms = message.detected_ms(),
                                .redispatched_ms = message.redispatched_ms(),
                                .resumed_ms = message.resumed_ms(),
                                .steps_redone = message.steps_redone()});
}

/// One start of a root: its number, or, where that was not kept, when it started.
using root_name = std::pair<std::uint64_t, std::int64_t>;

root_name root_of(const records::JournalRun& run) {
  return {run.root(), run.root() == 0 ? run.started_us() : 0};
}

} // namespace

dlrun::recovery to_recovery(const recovery_record& record, protocol::time_point started) {
  return {.role = std::string{protocol::to_string(record.role.kind)},
          .index = record.role.index,
          .cause = record.cause,
          .incarnation = record.replacement.value,
          .at_seconds = protocol::to_seconds(record.noticed - started),
          .detected_ms = to_ms(record.detected),
          .redispatched_ms = to_ms(record.redispatched.value_or(protocol::duration{})),
          .resumed_ms = to_ms(record.resumed.value_or(protocol::duration{})),
          .steps_redone = record.steps_redone};
}

run_tallies::run_tallies(const std::map<std::string, std::string>& entries, protocol::time_point started,
                         incarnation self, std::uint64_t root)
    : started_(started)
    , self_(self)
    , root_(root) {
  const root_name own{root, root == 0 ? started.time_since_epoch().count() : 0};
  std::map<root_name, double> wall;
  for (const auto& [key, bytes] : entries) {
    if (key.starts_with(recovery_prefix)) add_recovery(bytes, earlier_);
    if (records::JournalRewind one; key.starts_with(rewind_prefix) && one.ParseFromString(bytes))
      rewinds_[one.timeline()] = {one.timeline(), one.version(), one.steps_redone(), one.at_seconds(),
                                  one.reason()};
    if (key.starts_with(older_prefix)) add_journal_loss_from(key, bytes, journal_losses_);
    if (key.starts_with(tally_prefix))
      if (const auto tally = tally_from(key, bytes)) tallies_[{tally->role, tally->incarnation}] = *tally;
    records::JournalRun message;
    if (!key.starts_with(run_prefix) || !message.ParseFromString(bytes)) continue;
    const auto its = root_of(message);
    if (its != own) wall[its] = std::max(wall[its], message.wall_seconds());
  }
  for (const auto& [its, seconds] : wall) earlier_.wall_seconds += seconds;
}

bool run_tallies::knows(const protocol::role_exited& loss) const {
  return earlier_.losses.contains(
      {std::string{protocol::to_string(loss.role.kind)}, loss.role.index, loss.self.incarnation.value});
}

std::vector<dlrun::rewind> run_tallies::rewinds() const {
  std::vector<dlrun::rewind> all;
  for (const auto& [timeline, rewind] : rewinds_) all.push_back(rewind);
  return all;
}

std::vector<dlrun::journal_loss> run_tallies::journal_losses() const {
  std::vector<dlrun::journal_loss> all;
  for (const auto& [noticed_by, loss] : journal_losses_) all.push_back(loss);
  return all;
}

run_totals run_tallies::totals() const {
  run_totals sums;
  std::map<protocol::role_name, std::uint64_t> waited;
  for (const auto& [start, tally] : tallies_) {
    sums.slots_computed += tally.slots_computed;
    sums.bytes_logged += tally.bytes_logged;
    sums.bytes_snapshotted += tally.bytes_snapshotted;
    sums.bytes_copied += tally.bytes_copied;
    auto& of_role = waited[tally.role];
    of_role += tally.copy_waited_us;
    sums.copy_waited_us = std::max(sums.copy_waited_us, of_role);
  }
  return sums;
}

void run_tallies::add_rewind(const protocol::timeline_started& what, protocol::time_point now) {
  rewinds_[what.timeline.value] = {what.timeline.value, what.branch.value, what.steps_redone,
                                   earlier_.wall_seconds + protocol::to_seconds(now - started_), what.reason};
  unwritten_rewinds_.insert(what.timeline.value);
}

persistence::journal_write run_tallies::add_journal_loss(const protocol::role_name& role, incarnation start,
                                                         incarnation known, protocol::time_point now) {
  journal_losses_[self_] = {std::string{protocol::to_string(role.kind)}, role.index, start.value, known.value,
                            earlier_.wall_seconds + protocol::to_seconds(now - started_)};
  return {fmt::format("{}{:020}", older_prefix, self_.value), encode(journal_losses_[self_])};
}

void run_tallies::add_tallies(const std::vector<protocol::start_tally>& tallies) {
  for (const auto& tally : tallies) {
    const start who{tally.role, tally.incarnation};
    if (auto& known = tallies_[who]; known != tally) {
      known = tally;
      unwritten_tallies_.insert(who);
    }
  }
}

std::vector<persistence::journal_write> run_tallies::changes(const std::vector<recovery_record>& recoveries,
                                                             protocol::time_point now) {
  std::vector<persistence::journal_write> writes;
  written_.resize(recoveries.size());
  for (std::size_t i = 0; i < recoveries.size(); ++i) {
    auto recovery = to_recovery(recoveries[i], started_);
    recovery.at_seconds += earlier_.wall_seconds;
    auto bytes = encode(recovery, recoveries[i].lost);
    if (bytes == written_[i]) continue;
    writes.push_back({fmt::format("{}{:012}/{:06}", recovery_prefix, self_, i), bytes});
    written_[i] = std::move(bytes);
  }
  for (const auto timeline : std::exchange(unwritten_rewinds_, {}))
    writes.push_back({fmt::format("{}{:012}", rewind_prefix, timeline), encode(rewinds_[timeline])});
  if (writes.empty() && summed_ && now - *summed_ < sums_period) return writes;
  summed_ = now;
  records::JournalRun run;
  run.set_started_us(started_.time_since_epoch().count());
  run.set_root(root_);
  run.set_wall_seconds(protocol::to_seconds(now - started_));
  writes.push_back({fmt::format("{}{:012}", run_prefix, self_), run.SerializeAsString()});
  for (const auto& who : std::exchange(unwritten_tallies_, {}))
    writes.push_back({tally_key(tallies_[who]), encode(tallies_[who])});
  return writes;
}

std::vector<persistence::journal_write>
run_tallies::last_changes(const std::vector<recovery_record>& recoveries, protocol::time_point now) {
  summed_.reset();
  return changes(recoveries, now);
}

} // namespace dlrun::coordinator
