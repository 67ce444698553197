#include "actors/coordinator/coordinator_core.hpp"

#include "actors/coordinator/start_claims.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <utility>

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
std::vector<role_name> started_roles(const coordinator_core_config& config, std::uint32_t workers) {
  std::vector<role_name> all;
  if (config.is_durable) all.push_back(coordinator_role);
  for (std::uint32_t i = 0; i < config.ps_shards; ++i) all.push_back({role_kind::ps_shard, i});
  for (const auto& keeper : protocol::keeper_roles(config.ps_shards, config.copies)) all.push_back(keeper);
  for (std::uint32_t i = 0; i < workers; ++i) all.push_back({role_kind::worker, i});
  return all;
}

bool is_startable(const role_name& role, const coordinator_core_config& config) {
  return role.kind == role_kind::ps_shard || role.kind == role_kind::worker ||
         role.kind == role_kind::keeper || (config.is_durable && role == coordinator_role);
}

} // namespace

coordinator_core::coordinator_core(coordinator_core_config config, const journaled_job& journaled)
    : config_(std::move(config))
    , fences_({{config_.is_durable, config_.agent, config_.random},
               config_.spare_fences,
               config_.spare_fences_of_coordinator},
              started_roles(config_, config_.workers))
    , starts_(started_roles(config_, config_.workers), config_.relaxed)
    , workforce_({config_.workers, config_.workers_max, config_.agent, config_.bug}, journaled.workers)
    , ending_(config_, journaled) {
  DLRUN_CHECK(config_.random != nullptr, "tokens need a source of random numbers");
  DLRUN_CHECK(config_.blocks_of_shard.size() == config_.ps_shards,
              "the blocks of {} of {} PS shards are known", config_.blocks_of_shard.size(),
              config_.ps_shards);
  starts_.begin(coordinator_role, {config_.self, config_.token});
  restore(journaled);
}

/// What runs is not in the journal: the agent tells.
void coordinator_core::restore(const journaled_job& journaled) {
  if (config_.is_durable) fences_.book().use(coordinator_role, {config_.self, config_.token});
  for (const auto& kept : journaled.roles) {
    know(kept.role);
    fences_.book().restore(kept);
  }
  for (const auto& role : started_roles(config_, workforce_.wanted().workers)) know(role);
  if (journaled.lost) fences_.book().begin_anew(std::max(journaled.highest_found, config_.self));
}

// ---- how many

/// Workers that were wanted once may still run, and their incarnations are never issued again.
void coordinator_core::know(const role_name& role) {
  if (role.kind != role_kind::worker || role.index >= std::max(config_.workers, config_.workers_max)) return;
  fences_.book().add(role);
  starts_.add(role);
}

coordinator_actions coordinator_core::on_scale(const protocol::scale_job& order) {
  coordinator_actions out;
  if (ending_.is_over()) return out;
  const auto wanted = workforce_.on_order(order);
  if (!wanted) return out;
  if (!config_.is_durable) return on_workers_journaled(*wanted);
  out.emplace_back(journal_workers{*wanted});
  if (is_planted(config_.bug, protocol::planted_bug::scale_early)) man(out);
  return out;
}

coordinator_actions coordinator_core::on_workers_journaled(const journaled_workers& written) {
  coordinator_actions out;
  workforce_.on_journaled(written);
  if (!ending_.is_over()) man(out);
  return out;
}

/// Says how many are wanted, and grants each of them its fences.
void coordinator_core::man(coordinator_actions& out) {
  out.emplace_back(send_workers_wanted{workforce_.wanted()});
  for (const auto& role : started_roles(config_, workforce_.wanted().workers)) {
    know(role);
    fences_.issue(role, starts_.of(role).running);
    fences_.grant(role, out);
  }
  fences_.journal(out);
}

// ---- fences

coordinator_actions coordinator_core::on_fences_journaled(std::uint64_t id) {
  coordinator_actions out;
  fences_.on_journaled(id, !ending_.is_over(), out);
  return out;
}

coordinator_actions coordinator_core::on_agent(std::optional<std::uint64_t> agent) {
  if (fences_.on_agent(agent)) workforce_.serve(*agent);
  if (ending_.is_over()) return ending_.announce();
  coordinator_actions out;
  man(out);
  return out;
}

// ---- starts

/// `self` is the newest start that was heard of: an older one is over. True when that is news.
bool coordinator_core::begin_start(const role_name& role, const fence& self, coordinator_actions& out) {
  if (starts_.of(role).newest == self) return false;
  end_start(role, fmt::format("incarnation {} has taken its place", self.incarnation), out);
  fences_.book().use(role, self);
  starts_.begin(role, self);
  recoveries_.on_replaced(role, self.incarnation);
  fences_.issue(role, true);
  fences_.grant(role, out);
  fences_.journal(out);
  return true;
}

/// The current start, if any, takes no part any more. One that never joined has taken nothing with
/// it, and from a job that is over there is nothing to take.
void coordinator_core::end_start(const role_name& role, std::string_view cause, coordinator_actions& out) {
  const bool joined = starts_.of(role).at.has_value();
  starts_.end(role);
  if (!joined || ending_.is_over()) return;
  if (role.kind == role_kind::worker)
    out.emplace_back(protocol::worker_gone{{role.index}, starts_.newest(role)});
  if (role.kind != role_kind::ps_shard) return;
  out.emplace_back(protocol::ps_shard_gone{{role.index}, starts_.newest(role)});
  if (config_.is_durable) return;
  append(out, ending_.fail(fmt::format(
                  "{} was lost ({}): with 'durability.log: off' it kept its parameters in memory only, so "
                  "the job cannot go on",
                  protocol::to_string(role), cause)));
}

/// R41: nothing starts with a fence that is not in the journal (R15). So when there is such a
/// start, older data was put in the place of the journal, and what is issued from that would be
/// issued twice.
void coordinator_core::notice_older_journal(const role_name& role, const fence& self,
                                            coordinator_actions& out) {
  if (ending_.is_over() || !fences_.book().is_beyond(role, self) ||
      is_planted(config_.bug, protocol::planted_bug::trust_older))
    return;
  fences_.begin_anew(std::max(self.incarnation, config_.self),
                     {role, self.incarnation, fences_.book().last_issued(role)});
  man(out);
}

coordinator_actions coordinator_core::on_role_started(const protocol::role_started& started) {
  coordinator_actions out;
  know(started.role);
  if (!starts_.has(started.role) || !is_startable(started.role, config_) || started.role == coordinator_role)
    return out;
  notice_older_journal(started.role, started.self, out);
  if (start_claims::is_believed(starts_, fences_.book(), started.role, started.self, claimant::agent) &&
      begin_start(started.role, started.self, out))
    announce(out);
  end_over(started.role, out);
  return out;
}

/// What was told to be over takes part no more, and a root that comes back may find it running
/// (R35): nobody waits for what it says, and none is started in its place while it runs.
void coordinator_core::end_over(const role_name& role, coordinator_actions& out) const {
  const auto& page = starts_.of(role);
  if (page.newest && !page.running && !is_planted(config_.bug, protocol::planted_bug::leave_over))
    out.emplace_back(send_start_over{{role, *page.newest}});
}

coordinator_actions coordinator_core::on_role_exited(const protocol::role_exited& exited, time_point now) {
  coordinator_actions out;
  know(exited.role);
  if (!starts_.has(exited.role) || !is_startable(exited.role, config_)) return out;
  if (exited.role != coordinator_role) notice_older_journal(exited.role, exited.self, out);
  const bool is_news =
      start_claims::is_believed(starts_, fences_.book(), exited.role, exited.self, claimant::agent) &&
      !starts_.is_over(exited.role, exited.self);
  // Told again, it is news all the same when the connection broke over what was said first.
  if (exited.role == coordinator_role || !is_news) {
    append(out, on_older_end(exited, now));
    return out;
  }
  begin_start(exited.role, exited.self, out);
  // Training does not wait for a keeper.
  const bool costs = !exited.left && exited.role.kind != role_kind::keeper;
  if (!ending_.is_over() && costs) recoveries_.add(exited, now);
  end_start(exited.role, exited.cause, out);
  if (ending_.is_over()) return out;
  count_crash(exited, out);
  if (fences_.issue(exited.role, false)) fences_.grant(exited.role, out);
  fences_.journal(out);
  announce(out);
  return out;
}

/// Of a start that is over already: it was told before, or the next one has joined before it was.
coordinator_actions coordinator_core::on_older_end(const protocol::role_exited& exited, time_point now) {
  coordinator_actions out;
  const bool is_coordinator = exited.role == coordinator_role;
  const bool own = is_coordinator && exited.self.incarnation >= config_.self;
  const bool costs = !exited.left && exited.role.kind != role_kind::keeper;
  if (!own && costs && !ending_.is_over() && !recoveries_.has(exited.role, exited.self.incarnation)) {
    recoveries_.add(exited, now);
    recoveries_.on_replaced(exited.role, starts_.newest(exited.role));
    if (is_coordinator) recoveries_.on_resumed(coordinator_role, config_.self, now);
  }
  if (!count_crash(exited, out)) return out;
  starts_.change_directory();
  announce(out);
  return out;
}

/// R18: only a crash of the worker's own, in a slot that it names. True when the directory changes
/// by it.
bool coordinator_core::count_crash(const protocol::role_exited& exited, coordinator_actions& out) {
  if (!config_.is_durable || ending_.is_over() || exited.role.kind != role_kind::worker ||
      !exited.has_progress)
    return false;
  const auto before = crashes_.suspects();
  if (const auto poison = crashes_.add(exited.role, exited.self.incarnation, exited.progress))
    out.emplace_back(protocol::poisoned_slot{*poison});
  const auto suspects = crashes_.suspects();
  for (const auto& one : suspects)
    if (!std::binary_search(before.begin(), before.end(), one)) out.emplace_back(slot_suspected{one});
  return suspects != before;
}

/// Where the coordinator can be replaced, its successor's dispatchers must be newer than all of its
/// own: each coordinator has a range of its own, so these need no journal.
coordinator_actions coordinator_core::on_dispatcher_started(const protocol::endpoint& at) {
  DLRUN_CHECK(dispatchers_started_ < dispatchers_max, "the dispatcher was started {} times",
              dispatchers_started_);
  const auto first = config_.is_durable ? config_.self.value * dispatchers_max : config_.self.value;
  starts_.begin(dispatcher_role, {{first + dispatchers_started_++}, config_.random()});
  starts_.join(dispatcher_role, at);
  starts_.join(coordinator_role, at);
  coordinator_actions out;
  announce(out);
  out.emplace_back(send_workers_wanted{workforce_.wanted()});
  for (const auto& one : crashes_.poisoned()) out.emplace_back(protocol::poisoned_slot{one});
  return out;
}

incarnation coordinator_core::dispatcher_incarnation() const { return starts_.newest(dispatcher_role); }

// ---- membership

coordinator_actions coordinator_core::on_join(const protocol::join& join) {
  coordinator_actions out;
  know(join.role);
  if (start_claims::awaits_agent(starts_, fences_.book(), join)) return out;
  if (ending_.is_over()) return out; // the agent ends it with all others, or a later coordinator answers
  if (starts_.has(join.role) && is_startable(join.role, config_) && join.role != coordinator_role)
    notice_older_journal(join.role, join.self, out);
  if (auto reason = start_claims::why_refused(starts_, fences_.book(), join); !reason.empty()) {
    out.emplace_back(answer_join{join.role, {false, std::move(reason)}});
    return out;
  }
  starts_.arithmetic().note(join);
  begin_start(join.role, join.self, out);
  const bool news = starts_.join(join.role, join.at);
  out.emplace_back(answer_join{join.role, {true, {}}});
  if (news && join.role.kind == role_kind::worker)
    out.emplace_back(protocol::worker_available{{join.role.index}, join.self.incarnation});
  else if (news)
    out.emplace_back(protocol::ps_shard_available{{join.role.index}, join.self.incarnation});
  announce(out);
  return out;
}

protocol::directory coordinator_core::directory() const {
  return starts_.directory(config_.self, crashes_.suspects());
}

void coordinator_core::announce(coordinator_actions& out) const {
  out.emplace_back(send_directory{directory()});
}

/// Nothing is remembered as sent: what is not there yet is asked for again.
coordinator_actions coordinator_core::on_tick(time_point now) {
  coordinator_actions out;
  if (ending_.is_over() || (repeated_ && now - *repeated_ < config_.repeat_after)) return out;
  repeated_ = now;
  out.emplace_back(send_workers_wanted{workforce_.wanted()});
  for (const auto& role : started_roles(config_, workforce_.wanted().workers)) {
    if (starts_.of(role).running) continue;
    end_over(role, out);
    fences_.grant(role, out);
  }
  append(out, ending_.repeat());
  announce(out);
  return out;
}

} // namespace dlrun::coordinator
