#include "actors/agent/host_agent_core.hpp"

#include <algorithm>
#include <utility>

namespace dlrun::agent {

using protocol::fence;
using protocol::role_name;
using protocol::start_state;
using protocol::time_point;

host_agent_core::start* host_agent_core::find(const role_name& role, const fence& self) {
  const auto found = starts_.find({role, self.incarnation});
  return found != starts_.end() && found->second.report.self == self ? &found->second : nullptr;
}

host_agent_actions host_agent_core::report(start& which, time_point now) {
  if (!which.is_answered || !has_link()) return {};
  which.reported = now;
  return {tell_agent{which.report}};
}

host_agent_actions host_agent_core::end(std::string reason, leave_kind kind) {
  if (std::exchange(left_, true)) return {};
  return {leave{std::move(reason), kind}};
}

// ---- orders

host_agent_actions host_agent_core::on_start_order(const protocol::start_order& order, time_point now) {
  if (!is_mine(order.boot) || order.agent != root_) return {};
  if (auto* known = find(order.role, order.self)) return report(*known, now);
  auto& newest = newest_[order.role];
  if (order.self.incarnation <= newest) return {}; // over, and known to be
  newest = order.self.incarnation;
  auto& made = starts_[{order.role, order.self.incarnation}];
  made.report.host = config_.host;
  made.report.boot = config_.boot;
  made.report.role = order.role;
  made.report.self = order.self;
  return {launch_role{order}};
}

host_agent_actions host_agent_core::on_stop_order(const protocol::stop_order& order) {
  if (!is_mine(order.boot)) return {};
  const auto* known = find(order.role, order.self);
  if (known == nullptr || known->is_over) return {};
  return {end_role{order.role, order.self, order.how}};
}

void host_agent_core::on_start_told(const protocol::start_told& told) {
  if (!is_mine(told.boot)) return;
  if (const auto* known = find(told.role, told.self); known != nullptr && known->is_over)
    starts_.erase({told.role, told.self.incarnation});
}

host_agent_actions host_agent_core::on_dismissal(const protocol::dismissal& dismissal) {
  if (!is_mine(dismissal.boot)) return {};
  if (dismissal.reason.starts_with(given_up)) return end(dismissal.reason);
  return end(dismissal.reason, dismissal.reason == job_over ? leave_kind::for_good : leave_kind::for_now);
}

// ---- what the shell saw

host_agent_actions host_agent_core::on_started(const role_name& role, const fence& self, std::int32_t pid,
                                               time_point now) {
  auto* known = find(role, self);
  if (known == nullptr || known->is_over) return {};
  known->is_answered = true;
  known->report.pid = pid;
  return report(*known, now);
}

host_agent_actions host_agent_core::on_start_failed(const role_name& role, const fence& self,
                                                    const error& why, time_point now) {
  auto* known = find(role, self);
  if (known == nullptr) return {};
  known->is_answered = known->is_over = true;
  known->report.state = start_state::not_started;
  known->report.why = why.message.substr(0, protocol::report_reason_bytes_max);
  known->report.code = why.code;
  return report(*known, now);
}

host_agent_actions host_agent_core::on_exited(const role_name& role, const fence& self, const role_end& how,
                                              time_point now) {
  auto* known = find(role, self);
  if (known == nullptr) return {};
  known->is_answered = known->is_over = true;
  auto& told = known->report;
  told.state = start_state::ended;
  told.why = how.cause.substr(0, protocol::report_reason_bytes_max);
  told.is_lasting = how.is_lasting;
  told.exited = how.exited;
  told.has_slot = how.slot.has_value();
  told.slot = how.slot.value_or(protocol::slot_progress{});
  told.was_killed_in = how.killed_in.has_value();
  told.killed_in = how.killed_in.value_or(protocol::slot_progress{});
  told.left = how.left;
  told.has_avoided = how.avoided.has_value();
  if (!how.avoided) return report(*known, now);
  told.avoided = how.avoided->gpu;
  told.why_avoided = how.avoided->reason.substr(0, protocol::report_reason_bytes_max);
  return report(*known, now);
}

// ---- the link

host_agent_actions host_agent_core::on_link(time_point now, std::uint64_t root, bool knows_leave) {
  link_lost_since_.reset();
  is_leave_known_ = knows_leave;
  if (std::exchange(root_, root) != root) newest_.clear(); // R35: nothing of another comes late any more
  host_agent_actions out;
  for (auto& [key, one] : starts_)
    for (auto& action : report(one, now)) out.push_back(std::move(action));
  return out;
}

std::vector<protocol::running_start> host_agent_core::running() const {
  std::vector<protocol::running_start> all;
  for (const auto& [key, one] : starts_)
    if (one.is_answered && !one.is_over) all.push_back({key.first, one.report.self, one.report.pid});
  return all;
}

void host_agent_core::on_link_lost(time_point now) {
  if (!link_lost_since_) link_lost_since_ = now;
  is_leave_known_ = false;
}

void host_agent_core::on_sighting(const sighting& seen, time_point now) {
  if (seen.seen == sight::there)
    silent_since_.reset();
  else if (seen.seen != sight::unproven && !silent_since_)
    silent_since_ = now;
}

host_agent_actions host_agent_core::on_notice(time_point now) {
  if (leaves_since_ || !has_link()) return end("it was asked to leave", leave_kind::for_now);
  leaves_since_ = now;
  return {};
}

host_agent_actions host_agent_core::on_tick(time_point now) {
  const auto is_too_long = [&](const auto& since) { return since && now - *since >= config_.orphan_grace; };
  const auto grace_s = protocol::to_seconds(config_.orphan_grace);
  if (is_too_long(link_lost_since_))
    return end(fmt::format("without a link to the root for {:.0f} s", grace_s));
  if (is_too_long(silent_since_))
    return end(fmt::format("the root has answered no beat for {:.0f} s", grace_s));
  if (leaves_since_ && now - *leaves_since_ >= config_.leave_grace)
    return end("it was asked to leave, and its grace is over", leave_kind::for_now);
  host_agent_actions out;
  if (!has_link()) return out;
  for (auto& [key, one] : starts_)
    if (one.is_over && now - one.reported >= config_.repeat_after)
      for (auto& action : report(one, now)) out.push_back(std::move(action));
  return out;
}

protocol::work_report host_agent_core::work_report(const std::vector<seen_work>& seen,
                                                   const base::memory_use& memory) {
  protocol::work_report made{config_.host, config_.boot, {}, memory.used, memory.limit};
  const auto count = std::min(seen.size(), protocol::reported_workers_max);
  if (next_worker_ >= seen.size()) next_worker_ = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto& one = seen[(next_worker_ + i) % seen.size()];
    made.workers.push_back(
        {one.role, one.self, one.sequence, one.at.has_value(), one.at.value_or(protocol::slot_progress{})});
  }
  next_worker_ += count;
  return made;
}

} // namespace dlrun::agent
