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
/// Starts of the dispatcher that one coordinator can tell apart; its restart budget ends it long
/// before.
constexpr std::uint64_t dispatchers_max = 1024;
/// The roles that the agent starts; the dispatcher lives in the coordinator's process.
std::vector<role_name> started_roles(const coordinator_core_config& config) {
  std::vector<role_name> all;
  if (config.is_durable) all.push_back(coordinator_role);
  for (std::uint32_t i = 0; i < config.ps_shards; ++i) all.push_back({role_kind::ps_shard, i});
  for (std::uint32_t i = 0; i < config.workers; ++i) all.push_back({role_kind::worker, i});
  return all;
}

} // namespace

coordinator_core::coordinator_core(coordinator_core_config config, journaled_job journaled)
    : config_(std::move(config))
    , fences_({config_.is_durable, config_.agent, config_.random}, started_roles(config_)) {
  DLRUN_CHECK(config_.random != nullptr, "tokens need a source of random numbers");
  DLRUN_CHECK(config_.blocks_of_shard.size() == config_.ps_shards,
              "the blocks of {} of {} PS shards are known", config_.blocks_of_shard.size(),
              config_.ps_shards);
  for (const auto& role : started_roles(config_)) roles_[role];
  auto& own = roles_[coordinator_role];
  own.current = fence{config_.self, config_.token};
  own.running = true;
  last_version_ = {config_.steps};
  digests_.resize(config_.parameter_blocks * digest_bytes);
  restore(journaled);
}

/// What runs is not in the journal: the agent tells.
void coordinator_core::restore(const journaled_job& journaled) {
  if (config_.is_durable) fences_.use(coordinator_role, *roles_.at(coordinator_role).current);
  for (const auto& kept : journaled.roles) fences_.restore(kept);
  if (journaled.lost) fences_.begin_anew(std::max(journaled.highest_found, config_.self));
  for (const auto& one : journaled.evaluations) evaluations_[one.version] = one;
  ended_ = journaled.ended;
  if (ended_) phase_ = phase::over;
}

// ---- starts
// ------------------------------------------------------------------------------------------------------

bool coordinator_core::is_startable(const role_name& role) const {
  return role.kind == role_kind::ps_shard || role.kind == role_kind::worker ||
         (config_.is_durable && role == coordinator_role);
}

/// R4: fences before starts. True when there are some to be granted at once.
bool coordinator_core::issue(const role_name& role) {
  const auto spare = role == coordinator_role ? config_.spare_fences_of_coordinator : config_.spare_fences;
  return fences_.issue(role, spare + (roles_.at(role).running ? 0 : 1));
}

/// R15. One write at a time; what is issued meanwhile goes with the next.
void coordinator_core::journal_new_fences(coordinator_actions& out) {
  auto roles = fences_.begin_write();
  if (!roles.empty()) out.emplace_back(journal_fences{++last_write_, std::move(roles)});
}

coordinator_actions coordinator_core::on_fences_journaled(std::uint64_t id, time_point) {
  coordinator_actions out;
  if (id != last_write_) return out;
  for (const auto& role : fences_.end_write())
    if (phase_ != phase::over) grant_to(role, out);
  journal_new_fences(out);
  return out;
}

void coordinator_core::grant_to(const role_name& role, coordinator_actions& out) const {
  const auto& fences = fences_.granted(role);
  if (agent_is_there_ && !fences.empty()) out.emplace_back(send_grant{{role, fences, config_.agent}});
}

coordinator_actions coordinator_core::on_agent(time_point) {
  coordinator_actions out;
  agent_is_there_ = true;
  if (phase_ == phase::over) {
    announce_the_end(out);
    return out;
  }
  for (const auto& role : started_roles(config_)) {
    issue(role);
    grant_to(role, out);
  }
  journal_new_fences(out);
  return out;
}

bool coordinator_core::is_known_start(const role_name& role, const fence& self) const {
  const auto& current = roles_.at(role).current;
  return current == self || fences_.is_issued(role, self, current ? current->incarnation : incarnation{});
}

/// `self` is the newest start that was heard of: an older one is over.
void coordinator_core::begin_start(const role_name& role, role_record& record, const fence& self,
                                   std::int32_t pid, coordinator_actions& out) {
  if (record.current != self) {
    end_start(role, record, fmt::format("incarnation {} has taken its place", self.incarnation), out);
    fences_.use(role, self);
    record.current = self;
    record.running = true;
    for (auto& recovery : recoveries_)
      if (recovery.role == role && recovery.lost < self.incarnation && recovery.replacement.value == 0)
        recovery.replacement = self.incarnation;
    ++directory_sequence_;
    issue(role);
    grant_to(role, out);
    journal_new_fences(out);
  }
  record.pid = pid;
}

/// The current start, if any, takes no part any more. One that never joined has taken nothing with
/// it, and from a job that is over there is nothing to take.
void coordinator_core::end_start(const role_name& role, role_record& record, std::string_view cause,
                                 coordinator_actions& out) {
  const bool joined = record.at.has_value();
  record.at.reset();
  record.running = false;
  if (!joined || phase_ == phase::over) return;
  if (role.kind == role_kind::worker)
    out.emplace_back(worker_gone{{role.index}, record.current->incarnation});
  if (role.kind != role_kind::ps_shard) return;
  out.emplace_back(ps_shard_gone{{role.index}, record.current->incarnation});
  if (config_.is_durable) return;
  finish(protocol::job_outcome::failed,
         fmt::format("{} was lost ({}): with 'durability.log: off' it kept its parameters in memory only, so "
                     "the job cannot go on",
                     protocol::to_string(role), cause),
         out);
}

coordinator_actions coordinator_core::on_role_started(const protocol::role_started& started, time_point) {
  coordinator_actions out;
  const auto at = roles_.find(started.role);
  if (at == roles_.end() || !is_startable(started.role) || started.role == coordinator_role) return out;
  if (!is_known_start(started.role, started.self)) return out;
  const auto before = directory_sequence_;
  begin_start(started.role, at->second, started.self, started.pid, out);
  if (directory_sequence_ != before) announce(out);
  return out;
}

coordinator_actions coordinator_core::on_role_exited(const protocol::role_exited& exited, time_point now) {
  coordinator_actions out;
  const auto at = roles_.find(exited.role);
  if (at == roles_.end() || !is_startable(exited.role)) return out;
  if (exited.role == coordinator_role || exited.again) { // long over, and has taken nothing with it
    const bool known = std::any_of(recoveries_.begin(), recoveries_.end(), [&](const auto& one) {
      return one.role == exited.role && one.lost == exited.self.incarnation;
    });
    const bool own = exited.role == coordinator_role && exited.self.incarnation >= config_.self;
    if (!own && phase_ != phase::over && !known) note_loss(exited, now);
    if (count_crash(exited, out)) {
      ++directory_sequence_;
      announce(out);
    }
    return out;
  }
  if (!is_known_start(exited.role, exited.self)) return out;
  auto& record = at->second;
  if (record.current == exited.self && !record.running) return out; // told again
  begin_start(exited.role, record, exited.self, record.pid, out);
  if (phase_ != phase::over) note_loss(exited, now);
  end_start(exited.role, record, exited.cause, out);
  if (phase_ == phase::over) return out;
  count_crash(exited, out);
  if (issue(exited.role)) grant_to(exited.role, out);
  journal_new_fences(out);
  ++directory_sequence_;
  announce(out);
  return out;
}

void coordinator_core::note_loss(const protocol::role_exited& exited, time_point now) {
  recovery_record record;
  record.role = exited.role;
  record.lost = exited.self.incarnation;
  record.cause = exited.cause;
  record.noticed = exited.at_us == 0 ? now : time_point(protocol::duration(exited.at_us));
  record.detected = protocol::duration(exited.detected_us);
  if (exited.role == coordinator_role) {
    record.replacement = config_.self;
    record.resumed = now - record.noticed;
  }
  recoveries_.push_back(std::move(record));
}

/// R18: only a crash of the worker's own, in a slot that it names. True when the directory changes
/// by it.
bool coordinator_core::count_crash(const protocol::role_exited& exited, coordinator_actions& out) {
  if (!config_.is_durable || phase_ == phase::over || exited.role.kind != role_kind::worker ||
      !exited.has_progress)
    return false;
  const auto before = crashes_.suspects();
  if (const auto poison = crashes_.add(exited.role, exited.self.incarnation, exited.progress))
    out.emplace_back(poisoned_slot{*poison});
  const auto suspects = crashes_.suspects();
  for (const auto& one : suspects)
    if (!std::binary_search(before.begin(), before.end(), one)) out.emplace_back(slot_suspected{one});
  return suspects != before;
}

// ---- membership
// --------------------------------------------------------------------------------------------------

std::string coordinator_core::why_refused(const protocol::join& join) const {
  const auto name = protocol::to_string(join.role);
  const auto at = roles_.find(join.role);
  if (at == roles_.end() || !is_startable(join.role) || join.role == coordinator_role)
    return fmt::format("this job has no {} that could join", name);
  const auto& record = at->second;
  const auto newest = record.current ? record.current->incarnation : incarnation{0};
  if (!is_known_start(join.role, join.self)) {
    if (join.self.incarnation < newest)
      return fmt::format("{} incarnation {} is not the newest, which is {}", name, join.self.incarnation,
                         newest);
    return fmt::format(
        "{} incarnation {} was never issued with this token; the newest that was started is {}", name,
        join.self.incarnation, newest);
  }
  if (record.current == join.self && !record.running)
    return fmt::format("{} incarnation {} is over; the newest that was issued is {}", name,
                       join.self.incarnation, fences_.last_issued(join.role));
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
    else
      out.emplace_back(ps_shard_available{{join.role.index}, join.self.incarnation});
  }
  announce(out);
  return out;
}

/// Where the coordinator can be replaced, its successor's dispatchers must be newer than all of its
/// own: each coordinator has a range of its own, so these need no journal.
coordinator_actions coordinator_core::on_dispatcher_started(const protocol::endpoint& at, time_point) {
  auto& record = roles_[dispatcher_role];
  DLRUN_CHECK(dispatchers_started_ < dispatchers_max, "the dispatcher was started {} times",
              dispatchers_started_);
  const auto first = config_.is_durable ? config_.self.value * dispatchers_max : config_.self.value;
  record.current = fence{{first + dispatchers_started_++}, config_.random()};
  record.at = at;
  roles_.at(coordinator_role).at = at;
  ++directory_sequence_;
  coordinator_actions out;
  announce(out);
  for (const auto& one : crashes_.poisoned()) out.emplace_back(poisoned_slot{one});
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

std::vector<ps_shard_available> coordinator_core::available_ps_shards() const {
  std::vector<ps_shard_available> all;
  for (const auto& [role, record] : roles_)
    if (role.kind == role_kind::ps_shard && record.at)
      all.push_back({{role.index}, record.current->incarnation});
  return all;
}

protocol::directory coordinator_core::directory() const {
  protocol::directory all{config_.self, directory_sequence_, {}, crashes_.suspects()};
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

void coordinator_core::on_shard_resumed(ps_shard_id shard, incarnation incarnation, time_point now) {
  for (auto& recovery : recoveries_) {
    if (recovery.role != protocol::ps_shard_role(shard) || recovery.lost >= incarnation || recovery.resumed)
      continue;
    recovery.replacement = incarnation;
    recovery.resumed = now - recovery.noticed;
  }
}

void coordinator_core::on_steps_redone(std::uint64_t steps) {
  const auto newest = [&](auto is_cause) {
    const auto found = std::find_if(recoveries_.rbegin(), recoveries_.rend(), is_cause);
    return found == recoveries_.rend() ? nullptr : &*found;
  };
  auto* cause = newest([](const auto& one) { return one.role.kind == role_kind::ps_shard && !one.resumed; });
  if (cause == nullptr)
    cause = newest([](const auto& one) { return one.role.kind != role_kind::coordinator; });
  if (cause != nullptr) cause->steps_redone += steps;
}

/// Nothing is remembered as sent: what is not there yet is asked for again.
coordinator_actions coordinator_core::on_tick(time_point now) {
  coordinator_actions out;
  if (phase_ == phase::over || (repeated_ && now - *repeated_ < config_.repeat_after)) return out;
  repeated_ = now;
  for (const auto& [role, record] : roles_)
    if (is_startable(role) && !record.running) grant_to(role, out);
  if (phase_ == phase::digesting)
    for (std::uint32_t i = 0; i < config_.ps_shards; ++i) ask_digests({i}, out);
  if (phase_ == phase::closing) out.emplace_back(close_training{timeline_});
  announce(out);
  return out;
}

} // namespace dlrun::coordinator
