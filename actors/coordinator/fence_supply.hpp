/// The fences that the agent is given for the starts to come (rules R4, R15, R35).
#pragma once

#include "actors/coordinator/coordinator_actions.hpp"
#include "actors/coordinator/fence_book.hpp"
#include "actors/protocol/roles.hpp"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace dlrun::coordinator {

struct fence_supply_config {
  fence_book_config book{};
  /// What the agent holds in advance for each role, beside the one in use, and for the coordinator
  /// itself (coordinator_core_config).
  std::uint32_t spare = 2;
  std::uint32_t spare_of_coordinator = 10;
};

/// Pure: issues what the agent lacks, orders that it is journaled, and grants what is. There is one
/// write at a time; what is issued meanwhile goes with the next.
class fence_supply {
public:
  fence_supply(fence_supply_config config, const std::vector<protocol::role_name>& roles)
      : config_(std::move(config))
      , book_(config_.book, roles) {}

  /// What has become of each fence.
  fence_book& book() { return book_; }
  const fence_book& book() const { return book_; }

  /// The agent is there; before that nothing is granted. @param agent random number of its process,
  /// if it may be another agent than before. @returns whether it is (R35)
  bool on_agent(std::optional<std::uint64_t> agent);
  /// Issues what the role lacks: one more when none of its starts runs. @returns whether that can
  /// be granted at once
  bool issue(const protocol::role_name& role, bool is_running);
  /// R41: the journal is older than what runs; `highest` as fence_book::begin_anew() has it. The
  /// next write says so of the course too. When it is done the user is told, and the dispatcher
  /// started anew: who was followed and thinks so cannot write.
  void begin_anew(dlrun::incarnation highest, const journal_is_older& why) {
    book_.begin_anew(highest);
    older_ = why;
  }
  void grant(const protocol::role_name& role, coordinator_actions& out) const;
  /// Orders a write of what is issued and not journaled, if there is any.
  void journal(coordinator_actions& out);
  /// The write with this id is done, and those before. @param grants what it held is granted
  void on_journaled(std::uint64_t id, bool grants, coordinator_actions& out);

private:
  fence_supply_config config_;
  fence_book book_;
  bool agent_is_there_ = false;
  std::optional<journal_is_older> older_{};   ///< R41: and that is not ordered to be written yet
  std::optional<journal_is_older> writing_{}; ///< R41: the newest order has it
  std::uint64_t last_write_ = 0;              ///< id of the newest order
};

} // namespace dlrun::coordinator
