#include "actors/coordinator/coordinator_core.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::coordinator {
namespace {

using protocol::fence;
using protocol::join;
using protocol::role_kind;
using protocol::role_name;
using protocol::time_point;

constexpr role_name coordinator_role{role_kind::coordinator, 0};
constexpr role_name dispatcher_role{role_kind::data_dispatcher, 0};
constexpr std::size_t digest_bytes = 32;

} // namespace

coordinator_core::coordinator_core(coordinator_core_config config)
    : config_(std::move(config)) {
  DLRUN_CHECK(config_.random != nullptr, "tokens need a source of random numbers");
  DLRUN_CHECK(config_.blocks_of_shard.size() == config_.ps_shards,
              "the blocks of {} of {} PS shards are known", config_.blocks_of_shard.size(),
              config_.ps_shards);
  for (std::uint32_t i = 0; i < config_.ps_shards; ++i) roles_[{role_kind::ps_shard, i}];
  for (std::uint32_t i = 0; i < config_.workers; ++i) roles_[{role_kind::worker, i}];
  auto& own = roles_[coordinator_role];
  own.current = fence{config_.self, 0};
  own.last_issued = config_.self;
  digests_.resize(config_.parameter_blocks * digest_bytes);
}

// ---- starts
// ------------------------------------------------------------------------------------------------------

/// Whether the agent starts it: the dispatcher lives in the coordinator's process.
bool coordinator_core::is_startable(const role_name& role) {
  return role.kind == role_kind::ps_shard || role.kind == role_kind::worker;
}

fence coordinator_core::new_fence(role_record& record) {
  ++record.last_issued.value;
  return {record.last_issued, config_.random()};
}

/// R4: fences before starts. True when there are new ones.
bool coordinator_core::issue(role_record& record) {
  const std::size_t wanted = config_.spare_fences + (record.running ? 0 : 1);
  const bool some = record.granted.size() < wanted;
  while (record.granted.size() < wanted) record.granted.push_back(new_fence(record));
  return some;
}

void coordinator_core::grant_to(const role_name& role, const role_record& record,
                                coordinator_actions& out) const {
  if (agent_is_there_) out.emplace_back(send_grant{{role, record.granted}});
}

coordinator_actions coordinator_core::on_agent(time_point) {
  coordinator_actions out;
  agent_is_there_ = true;
  if (phase_ == phase::over) return out;
  for (auto& [role, record] : roles_) {
    if (!is_startable(role)) continue;
    issue(record);
    grant_to(role, record, out);
  }
  return out;
}

bool coordinator_core::is_known_start(const role_record& record, const fence& self) const {
  return record.current == self ||
         std::find(record.granted.begin(), record.granted.end(), self) != record.granted.end();
}

/// `self` is the newest start that was heard of: an older one is over.
void coordinator_core::begin_start(const role_name& role, role_record& record, const fence& self,
                                   std::int32_t pid, coordinator_actions& out) {
  if (record.current != self) {
    end_start(role, record, fmt::format("incarnation {} has taken its place", self.incarnation), out);
    std::erase_if(record.granted, [&](const fence& one) { return one.incarnation <= self.incarnation; });
    record.current = self;
    record.running = true;
    for (auto& recovery : recoveries_)
      if (recovery.role == role && recovery.lost < self.incarnation && recovery.replacement.value == 0)
        recovery.replacement = self.incarnation;
    ++directory_sequence_;
    issue(record);
    grant_to(role, record, out);
  }
  record.pid = pid;
}

/// The current start, if any, takes no part any more. One that never joined has taken nothing with it.
void coordinator_core::end_start(const role_name& role, role_record& record, std::string_view cause,
                                 coordinator_actions& out) {
  const bool joined = record.at.has_value();
  record.at.reset();
  record.running = false;
  if (!joined) return;
  if (role.kind == role_kind::worker)
    out.emplace_back(worker_gone{{role.index}, record.current->incarnation});
  if (role.kind != role_kind::ps_shard || config_.ps_shards_recover) return;
  finish(protocol::job_outcome::failed,
         fmt::format("{} was lost ({}): it kept its parameters in memory only, and durable PS shard state is "
                     "not there in "
                     "this version, so the job cannot go on",
                     protocol::to_string(role), cause),
         out);
}

coordinator_actions coordinator_core::on_role_started(const protocol::role_started& started, time_point) {
  coordinator_actions out;
  const auto at = roles_.find(started.role);
  if (at == roles_.end() || !is_startable(started.role) || !is_known_start(at->second, started.self))
    return out;
  const auto before = directory_sequence_;
  begin_start(started.role, at->second, started.self, started.pid, out);
  if (directory_sequence_ != before) announce(out);
  return out;
}

coordinator_actions coordinator_core::on_role_exited(const protocol::role_exited& exited, time_point now) {
  coordinator_actions out;
  const auto at = roles_.find(exited.role);
  if (at == roles_.end() || !is_startable(exited.role) || !is_known_start(at->second, exited.self))
    return out;
  auto& record = at->second;
  if (record.current == exited.self && !record.running) return out; // told again
  begin_start(exited.role, record, exited.self, record.pid, out);
  if (phase_ != phase::over) note_loss(exited, now);
  end_start(exited.role, record, exited.cause, out);
  if (phase_ == phase::over) return out;
  if (issue(record)) grant_to(exited.role, record, out);
  ++directory_sequence_;
  announce(out);
  return out;
}

void coordinator_core::note_loss(const protocol::role_exited& exited, time_point now) {
  recovery_record record;
  record.role = exited.role;
  record.lost = exited.self.incarnation;
  record.cause = exited.cause;
  record.noticed = now;
  record.detected = protocol::duration(exited.detected_us);
  recoveries_.push_back(std::move(record));
}

// ---- membership
// --------------------------------------------------------------------------------------------------

std::string coordinator_core::why_refused(const protocol::join& join) const {
  const auto name = protocol::to_string(join.role);
  const auto at = roles_.find(join.role);
  if (at == roles_.end() || !is_startable(join.role))
    return fmt::format("this job has no {} that could join", name);
  const auto& record = at->second;
  const auto newest = record.current ? record.current->incarnation : incarnation{0};
  if (!is_known_start(record, join.self)) {
    if (join.self.incarnation < newest)
      return fmt::format("{} incarnation {} is not the newest, which is {}", name, join.self.incarnation,
                         newest);
    return fmt::format(
        "{} incarnation {} was never issued with this token; the newest that was started is {}", name,
        join.self.incarnation, newest);
  }
  if (record.current == join.self && !record.running)
    return fmt::format("{} incarnation {} is over; the newest that was issued is {}", name,
                       join.self.incarnation, record.last_issued);
  if (fingerprint_ && *fingerprint_ != join.fingerprint)
    return fmt::format(
        "{} has the fingerprint '{}', but {} joined with '{}': they would not compute the same bits", name,
        join.fingerprint, protocol::to_string(fingerprint_from_), *fingerprint_);
  return {};
}

coordinator_actions coordinator_core::on_join(const protocol::join& join, time_point) {
  coordinator_actions out;
  auto reason = phase_ == phase::over ? std::string("the job is over") : why_refused(join);
  if (!reason.empty()) {
    out.emplace_back(answer_join{join.role, {false, std::move(reason)}});
    return out;
  }
  if (!fingerprint_) {
    fingerprint_ = join.fingerprint;
    fingerprint_from_ = join.role;
  }
  auto& record = roles_.at(join.role);
  begin_start(join.role, record, join.self, join.pid, out);
  const bool news = record.at != join.at;
  record.at = join.at;
  out.emplace_back(answer_join{join.role, {true, {}}});
  if (news) {
    ++directory_sequence_;
    if (join.role.kind == role_kind::worker)
      out.emplace_back(worker_available{{join.role.index}, join.self.incarnation});
  }
  announce(out);
  return out;
}

coordinator_actions coordinator_core::on_dispatcher_started(const protocol::endpoint& at, time_point) {
  auto& record = roles_[dispatcher_role];
  if (!record.current)
    record.last_issued = {config_.self.value - 1}; // the first is as new as the coordinator itself
  record.current = new_fence(record);
  record.at = at;
  roles_.at(coordinator_role).at = at;
  ++directory_sequence_;
  coordinator_actions out;
  announce(out);
  return out;
}

incarnation coordinator_core::dispatcher_incarnation() const {
  const auto at = roles_.find(dispatcher_role);
  return at == roles_.end() ? incarnation{} : at->second.current->incarnation;
}

std::vector<worker_available> coordinator_core::available_workers() const {
  std::vector<worker_available> all;
  for (const auto& [role, record] : roles_)
    if (role.kind == role_kind::worker && record.at)
      all.push_back({{role.index}, record.current->incarnation});
  return all;
}

protocol::directory coordinator_core::directory() const {
  protocol::directory all{config_.self, directory_sequence_, {}};
  for (const auto& [role, record] : roles_) {
    protocol::directory_entry entry{role, {}, record.at.has_value(), {}, 0};
    if (record.current) {
      entry.incarnation = record.current->incarnation;
      entry.token = record.current->token;
    }
    if (record.at) entry.at = *record.at;
    all.entries.push_back(std::move(entry));
  }
  return all;
}

void coordinator_core::announce(coordinator_actions& out) { out.emplace_back(send_directory{directory()}); }

// ---- recoveries
// --------------------------------------------------------------------------------------------------

void coordinator_core::on_redispatched(worker_id lost, incarnation incarnation, protocol::duration after) {
  for (auto& recovery : recoveries_)
    if (recovery.role == protocol::worker_role(lost) && recovery.lost == incarnation)
      recovery.redispatched = after;
}

void coordinator_core::on_contributed(const protocol::first_contribution& what, time_point now) {
  for (auto& recovery : recoveries_) {
    if (recovery.role != protocol::worker_role(what.worker) || recovery.lost >= what.incarnation) continue;
    if (recovery.resumed) continue;
    recovery.replacement = what.incarnation;
    recovery.resumed = now - recovery.noticed;
  }
}

// ---- the end
// -----------------------------------------------------------------------------------------------------

coordinator_actions coordinator_core::on_training_finished(time_point) {
  coordinator_actions out;
  if (phase_ != phase::training) return out;
  if (config_.evaluates)
    phase_ = phase::evaluating;
  else
    begin_digests(out);
  return out;
}

coordinator_actions coordinator_core::on_evaluated(const protocol::evaluated& result, time_point) {
  coordinator_actions out;
  if (phase_ != phase::evaluating) return out;
  evaluation_ = result;
  begin_digests(out);
  return out;
}

void coordinator_core::begin_digests(coordinator_actions& out) {
  phase_ = phase::digesting;
  for (std::uint32_t i = 0; i < config_.ps_shards; ++i) {
    digests_next_[{i}] = config_.blocks_of_shard[i].first;
    ask_digests({i}, out);
  }
  finish_when_digested(out);
}

std::uint32_t coordinator_core::digests_asked(ps_shard_id shard) const {
  const auto left = config_.blocks_of_shard[shard.value].second - digests_next_.at(shard);
  return std::min(left, protocol::digest_blocks_max);
}

bool coordinator_core::ask_digests(ps_shard_id shard, coordinator_actions& out) const {
  const auto count = digests_asked(shard);
  if (count == 0) return false;
  out.emplace_back(request_digests{shard, {timeline_, {config_.steps}, digests_next_.at(shard), count}});
  return true;
}

coordinator_actions coordinator_core::on_digests(ps_shard_id shard, const protocol::digest_reply& reply,
                                                 time_point) {
  coordinator_actions out;
  if (phase_ != phase::digesting || shard.value >= config_.ps_shards) return out;
  auto& next = digests_next_.at(shard);
  const auto count = digests_asked(shard);
  if (count == 0 || reply.first_block != next || reply.digests.size() != count * digest_bytes) return out;
  std::copy(reply.digests.begin(), reply.digests.end(),
            digests_.begin() + static_cast<std::ptrdiff_t>(next * digest_bytes));
  next += count;
  ask_digests(shard, out);
  finish_when_digested(out);
  return out;
}

void coordinator_core::finish_when_digested(coordinator_actions& out) {
  for (const auto& [shard, next] : digests_next_)
    if (next < config_.blocks_of_shard[shard.value].second) return;
  finish(protocol::job_outcome::completed, {}, out);
}

void coordinator_core::finish(protocol::job_outcome outcome, std::string reason, coordinator_actions& out) {
  if (phase_ == phase::over) return;
  phase_ = phase::over;
  out.emplace_back(finish_job{{outcome, std::move(reason)}});
}

coordinator_actions coordinator_core::on_agent_gave_up(const std::string& reason, time_point) {
  coordinator_actions out;
  finish(protocol::job_outcome::failed, reason, out);
  return out;
}

coordinator_actions coordinator_core::on_stop_requested(const std::string& reason, time_point) {
  coordinator_actions out;
  finish(protocol::job_outcome::interrupted, reason, out);
  return out;
}

/// Nothing is remembered as sent: what is not there yet is asked for again.
coordinator_actions coordinator_core::on_tick(time_point now) {
  coordinator_actions out;
  if (phase_ == phase::over || (repeated_ && now - *repeated_ < config_.repeat_after)) return out;
  repeated_ = now;
  for (const auto& [role, record] : roles_)
    if (is_startable(role) && !record.running && !record.granted.empty()) grant_to(role, record, out);
  if (phase_ == phase::digesting)
    for (std::uint32_t i = 0; i < config_.ps_shards; ++i) ask_digests({i}, out);
  announce(out);
  return out;
}

} // namespace dlrun::coordinator
