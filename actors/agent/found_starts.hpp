/// What runs on other hosts by order of an earlier root (rules R35, R38).
#pragma once

#include "actors/agent/hosted_actions.hpp"
#include "actors/agent/hosted_starts.hpp"
#include "actors/agent/last_stores.hpp"
#include "actors/agent/placement.hpp"
#include "actors/protocol/host_messages.hpp"
#include "actors/protocol/time.hpp"

#include <map>
#include <vector>

namespace dlrun::agent {

/// Pure: of what hosts tell that runs there, the newest start of each role is taken over. What was
/// not chosen is to end.
class found_starts {
public:
  /// A start of the host's agent that is new to this root tells what runs there: that is in hand
  /// from now on. After take_over() nothing is: it is for end_late().
  void note(const protocol::host_joined& joined, hosted_starts& starts);
  /// Of what runs still. To be called once, before this root orders anything. @returns what is
  /// taken over
  std::vector<protocol::running_start> take_over(hosted_starts& starts, placement& places,
                                                 protocol::time_point now, hosted_actions& out);

private:
  std::map<start_key, protocol::running_start> found_;
  bool has_chosen_ = false;
};

/// Pure. A start runs that is not in hand: the choice was made before it was heard of. It ends; a
/// PS shard that has no place yet has it where that start leaves its store.
void end_late(const protocol::start_report& report, placement& places, hosted_actions& out);

/// Pure. The job is complete (R38): what runs on that host, which is in hand, is to be killed, with
/// the next word to it. A PS shard that runs has the last version, and its copy may.
void end_found(const protocol::host_joined& joined, const last_stores& last, hosted_starts& starts,
               placement& places);

} // namespace dlrun::agent
