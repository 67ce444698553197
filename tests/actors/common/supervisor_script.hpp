/// A small language for cases of the supervisor, so that each case reads as one story.
#pragma once

#include "actors/common/supervisor.hpp"

#include <map>
#include <string>
#include <vector>

namespace dlrun::supervision::testing {

/// One event and the actions it must bring, e.g. {"c fails", "start c#2"}. Events:
///   start | shutdown            of the supervisor
///   a up                        child_started of the present start
///   a ends                      child_exited
///   a breaks                    child_exited, after it had settled
///   a excused                   child_exited, by somebody else's fault: it does not count
///   a ran                       child_exited, of one that had been up, whether that was heard or not
///   a nostart                   child_start_failed
///   a#1 up, a#1 ends, ...       the same of an older start
///   add d                       a child that is wanted from now on, or again
///   dismiss a                   it is not wanted any more; it has 500 ms to leave
///   +1500                       1500 ms pass, and tick() is called
///   ~1500                       1500 ms pass, nobody calls
/// Actions are joined by ", ": start a#1, dismiss a#1, terminate a#1, kill a#1, escalate, stopped.
struct step {
  std::string event;
  std::string actions;
};

/// Builds options from words: "2/5000" (intensity/period in ms), "delay=100-400".
supervisor_options options_of(const std::string& words);

/// Builds a child from "id:temporary:timeout=300".
child_spec child_of(const std::string& words);
/// The same for several, separated by spaces.
std::vector<child_spec> children_of(const std::string& words);

/// Runs events against one supervisor and keeps the time.
class player {
public:
  player(const std::string& options, const std::string& children);

  /// Carries out the event. @returns the actions, joined.
  std::string play(const std::string& event);
  /// Starts, and answers every start until all children are up.
  void bring_all_up();

  const actions& last() const { return last_; }

private:
  actions child_event(const std::string& child, const std::string& what);
  actions dispatch(const std::string& event);

  std::vector<child_spec> children_;
  supervision::supervisor core_;
  time_point now_{std::chrono::hours(1)};
  std::map<std::string, generation> newest_; ///< Of each child, from the start actions.
  actions last_;
};

} // namespace dlrun::supervision::testing
