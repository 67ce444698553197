/// Which ends of roles the coordinator has been told of.
#pragma once

#include "actors/protocol/start_messages.hpp"
#include "actors/protocol/time.hpp"

#include <cstdint>
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

  /// A role's end, noticed now. @returns whether to tell the coordinator now: it is up.
  bool add(const protocol::role_exited& exited, bool coordinator_is_up, protocol::time_point now) {
    if (!coordinator_is_up) {
      untold_.push_back({exited, now});
      return false;
    }
    keep({exited, now});
    return true;
  }
  /// A coordinator has come up. @returns what to tell it, in order: first what others were told.
  std::vector<protocol::role_exited> for_new_coordinator(protocol::time_point now) {
    std::vector<protocol::role_exited> all;
    const auto say = [&](const notice& one, bool again) {
      all.push_back(one.exited);
      all.back().again = again;
      all.back().age_us = static_cast<std::uint64_t>((now - one.noticed).count());
    };
    for (const auto& one : told_) say(one, true);
    for (const auto& one : std::exchange(untold_, {})) {
      say(one, false);
      keep(one);
    }
    return all;
  }

private:
  struct notice {
    protocol::role_exited exited;
    protocol::time_point noticed;
  };

  void keep(const notice& one) {
    told_.push_back(one);
    if (told_.size() > told_max) told_.pop_front();
  }

  std::vector<notice> untold_;
  std::deque<notice> told_;
};

} // namespace dlrun::agent
