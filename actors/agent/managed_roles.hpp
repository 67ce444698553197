/// What the agent keeps of each role that it starts.
#pragma once

#include "actors/agent/fence_stock.hpp"
#include "actors/agent/role_reports.hpp"
#include "actors/common/supervisor.hpp"
#include "actors/protocol/host_messages.hpp"

#include <dlrun/check.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::agent {

struct managed_role {
  protocol::role_name name;
  bool is_replaceable = true; ///< another start of it finds its state, or needs none
  supervision::generation generation = 0;
  std::optional<protocol::fence> current{}; ///< of the start in hand
  bool wanted = false;                      ///< to be started as soon as there is a fence
  bool up = false;
  std::int32_t pid = 0;
  fence_stock fences{};
  bool has_joined = false;                     ///< the coordinator: ever
  bool stopping = false;                       ///< its end was ordered
  bool leaving = false;                        ///< it was asked to leave
  std::optional<protocol::stop_how> vacates{}; ///< how it was asked to end, for the next start of it
  std::string why_vacates{};
  /// A PS shard: it is told so with each answer, and ends by itself (R37). A keeper: it is ended.
  bool is_to_move = false;
  bool has_moved = false;      ///< of both: the start before was to move
  bool dismissed = false;      ///< a worker that is not wanted any more
  bool is_hopeless = false;    ///< another start would fail as the last one did
  bool restart_untold = false; ///< it ended, and nobody was told of its next start yet
  std::string last_failure{};

  /// Nothing was asked of the start in hand yet.
  void begin_anew() {
    has_moved = std::exchange(is_to_move, false);
    stopping = leaving = false;
    vacates.reset();
  }
  /// It ends already, or was asked to make way as strongly.
  bool is_asked(protocol::stop_how how) const { return stopping || (vacates ? *vacates >= how : leaving); }
  /// The next start of it is to be elsewhere.
  void leave_for(protocol::stop_how how, const std::string& why) {
    leaving = true;
    vacates = how;
    why_vacates = why;
  }
};

/// How many workers there are, for `dlrun status`.
struct worker_counts {
  std::uint32_t wanted = 0;
  std::uint32_t present = 0; ///< have joined, and stay
  std::uint32_t leaving = 0;
};

/// Pure: by child id, which is to_string(role_name), and in start order. The first one is the
/// coordinator.
class managed_roles {
public:
  /// Of a role that is there already: it is wanted again.
  void add(const protocol::role_name& role, bool is_replaceable) {
    const auto id = protocol::to_string(role);
    const auto [at, is_new] = roles_.try_emplace(id);
    at->second.name = role;
    at->second.is_replaceable = is_replaceable;
    at->second.dismissed = false;
    if (is_new) order_.push_back(id);
  }
  /// R35: that start of it runs already. A coordinator is up when it has joined. @returns false
  /// when there is no such role.
  bool adopt(const protocol::running_start& one) {
    auto* role = find(one.role);
    if (role == nullptr) return false;
    role->current = one.self;
    role->pid = one.pid;
    role->up = one.role.kind != protocol::role_kind::coordinator;
    return true;
  }
  managed_role& coordinator() { return roles_.at(order_.front()); }
  const managed_role& coordinator() const { return roles_.at(order_.front()); }
  const std::string& coordinator_id() const { return order_.front(); }

  /// Null unless that is the start in hand.
  managed_role* find(const protocol::role_name& role, const protocol::fence& self) {
    auto* found = find(role);
    return found != nullptr && found->current == self ? found : nullptr;
  }
  bool runs(const protocol::role_name& role, const protocol::fence& self) const {
    const auto found = roles_.find(protocol::to_string(role));
    return found != roles_.end() && found->second.current == self;
  }
  const managed_role* find(const protocol::role_name& role) const {
    const auto found = roles_.find(protocol::to_string(role));
    return found == roles_.end() ? nullptr : &found->second;
  }
  managed_role* find(const protocol::role_name& role) {
    const auto found = roles_.find(protocol::to_string(role));
    return found == roles_.end() ? nullptr : &found->second;
  }
  /// A PS shard that was asked to leave is told so no more. One that ends all the same, since it
  /// has not heard that yet, has left.
  void let_stay(const protocol::role_name& shard) {
    if (auto* role = find(shard)) role->is_to_move = false;
  }
  /// A PS shard that was told no more that it is to move says that it stays. It had one answer at a
  /// time, so none is on its way that says otherwise.
  void hear_staying(const protocol::heartbeat& beat) {
    auto* role = beat.role.kind == protocol::role_kind::ps_shard ? find(beat.role, beat.self) : nullptr;
    if (role == nullptr || role->is_to_move || beat.copies.is_moving ||
        role->vacates != protocol::stop_how::leave)
      return;
    role->leaving = false;
    role->vacates.reset();
  }
  managed_role& of_child(const std::string& id) {
    const auto found = roles_.find(id);
    DLRUN_CHECK(found != roles_.end(), "the supervisor knows only our children, not '{}'", id);
    return found->second;
  }
  const std::map<std::string, managed_role>& all() const { return roles_; }

  /// As `dlrun status` shows them; without workers that have left for good.
  std::vector<role_view> views(const role_reports& reports) const {
    std::vector<role_view> all;
    for (const auto& id : order_) {
      const auto& role = roles_.at(id);
      if (role.dismissed && !role.current) continue;
      all.push_back({role.name, role.pid, role.current ? role.current->incarnation : dlrun::incarnation{},
                     role.dismissed ? "leaving" : reports.state(role.name)});
      all.back().is_leaving = role.leaving;
      if (role.current) reports.add_details(all.back());
      const auto& dispatcher = reports.dispatcher(); // lives in the coordinator's process
      if (role.name.kind != protocol::role_kind::coordinator || !dispatcher) continue;
      all.push_back({dispatcher->role, role.pid, dispatcher->self.incarnation,
                     role.up ? dispatcher->state : all.back().state});
    }
    return all;
  }
  worker_counts count(const role_reports& reports) const {
    worker_counts sum;
    for (const auto& [id, role] : roles_) {
      if (role.name.kind != protocol::role_kind::worker) continue;
      if (!role.dismissed) ++sum.wanted;
      if (!role.current) continue;
      const auto state = reports.state(role.name);
      if (role.dismissed || state == "leaving")
        ++sum.leaving;
      else if (role.up && state != "starting")
        ++sum.present;
    }
    return sum;
  }

private:
  std::map<std::string, managed_role> roles_;
  std::vector<std::string> order_;
};

} // namespace dlrun::agent
