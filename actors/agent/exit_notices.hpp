/// Which ends of roles the coordinator has been told of.
#pragma once

#include "actors/protocol/messages.hpp"

#include <deque>
#include <utility>
#include <vector>

namespace dlrun::agent {

/// Pure: keeps an end while no coordinator is up, and the newest of those that one has heard of for
/// the next: it may have died before they were in its journal.
class exit_notices {
public:
  /// More than the restarts that a job has before one coordinator comes back from the next.
  static constexpr std::size_t told_max = 1000;

  /// A role's end. @returns whether to tell the coordinator now: it is up.
  bool add(const protocol::role_exited& exited, bool coordinator_is_up) {
    if (!coordinator_is_up) {
      untold_.push_back(exited);
      return false;
    }
    told_.push_back(exited);
    if (told_.size() > told_max) told_.pop_front();
    return true;
  }
  /// A coordinator has come up. @returns what to tell it, in order: first what others were told.
  std::vector<protocol::role_exited> for_new_coordinator() {
    std::vector<protocol::role_exited> all{told_.begin(), told_.end()};
    for (auto& one : all) one.again = true;
    for (const auto& one : std::exchange(untold_, {})) {
      add(one, true);
      all.push_back(one);
    }
    return all;
  }

private:
  std::vector<protocol::role_exited> untold_;
  std::deque<protocol::role_exited> told_;
};

} // namespace dlrun::agent
