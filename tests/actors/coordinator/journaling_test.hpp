// coordinator_core with a journal that answers at once.
#pragma once

#include "actors/coordinator/coordinator_core.hpp"

#include <gtest/gtest.h>
#include <map>

namespace dlrun::coordinator {

/// The coordinator of a job with one worker and one PS shard of one block.
class journaling_test : public testing::Test {
protected:
  static constexpr std::uint64_t agent = 1;

  coordinator_core_config config(std::uint64_t self) {
    coordinator_core_config made;
    made.self = {self};
    made.blocks_of_shard = {{0, 1}};
    made.steps = 10;
    made.is_durable = true;
    made.agent = agent;
    made.random = [this] { return ++token; };
    return made;
  }
  /// What journal and agent know after these actions. @returns them and what followed.
  coordinator_actions perform(coordinator_core& core, coordinator_actions actions) {
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const auto action = actions[i]; // they grow
      if (const auto* one = std::get_if<send_grant>(&action)) granted[one->grant.role] = one->grant.fences;
      if (const auto* one = std::get_if<journal_end>(&action)) journal.ended = one->ended;
      if (!journal_answers) continue;
      coordinator_actions more;
      if (const auto* order = std::get_if<journal_fences>(&action)) {
        keep(order->roles);
        more = core.on_fences_journaled(order->id);
      } else if (const auto* number = std::get_if<journal_workers>(&action)) {
        journal.workers = number->what;
        more = core.on_workers_journaled(number->what);
      }
      append(actions, std::move(more));
    }
    return actions;
  }
  void keep(const std::vector<journaled_role>& roles) {
    for (const auto& role : roles) {
      std::erase_if(journal.roles, [&](const auto& one) { return one.role == role.role; });
      journal.roles.push_back(role);
    }
  }

  std::uint64_t token = 1000;
  bool journal_answers = true;
  journaled_job journal;
  std::map<protocol::role_name, std::vector<protocol::fence>> granted;
  protocol::time_point now{std::chrono::hours(1)};
};

} // namespace dlrun::coordinator
