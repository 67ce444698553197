/// supervisor: keeps children running, with the semantics of Erlang/OTP.
#pragma once

#include "actors/common/supervisor_action.hpp"
#include "actors/common/supervisor_spec.hpp"

#include <deque>
#include <optional>
#include <string_view>

namespace dlrun::supervision {

/// Decides which children are started, stopped and restarted, and when to give up.
///
/// Pure: no clock, no process, no actor; same calls, same answers. Each event returns the actions
/// that follow from it, to be carried out in order by the owner, who reports back by further
/// events. Semantics are those of OTP 25's supervisor under one_for_one; actors/common/README.md
/// names the few differences. Not thread-safe.
///
/// - Children start in order, each when the one before is up; they stop in reverse order, each when
/// the one after is gone.
/// - A child that ends is restarted alone; several may be restarting at a time.
/// - A start that fails at the beginning ends the supervisor; one that fails in a restart counts as
/// one more restart.
/// - `now` must not run backwards.
class supervisor {
public:
  /// @returns bad_usage as validate() does.
  static result<supervisor> create(supervisor_options options, std::vector<child_spec> children);

  /// Starts the children. To be called once.
  actions start(time_point now);
  /// Stops the children, then the supervisor. Repeating it changes nothing.
  actions shutdown(time_point now);
  /// Has the child running from now on: a new one, last in the order of starts, or one that was
  /// dismissed. A start of it that fails is a restart like any other (OTP: start_child,
  /// restart_child).
  actions add(child_spec spec, time_point now);
  /// The child is to leave, and is killed when it has not within `grace`. It is not started again
  /// until it is added again (OTP: terminate_child).
  actions dismiss(std::string_view id, milliseconds grace, time_point now);
  /// To be called often: turns late terminations into kills and ends restart delays.
  actions tick(time_point now);

  /// Events of unknown children and of older generations are ignored, as is everything after the
  /// last action.
  actions child_started(std::string_view id, generation number, time_point now);
  actions child_start_failed(std::string_view id, generation number, std::string detail, time_point now);
  actions child_exited(std::string_view id, generation number, child_exit how, time_point now);

  /// Why it has given up, as escalate says once all children are gone; nothing if it has not.
  const std::optional<std::string>& gave_up() const { return gave_up_; }

private:
  enum class phase : std::uint8_t { created, running, stopping, finished };
  enum class child_state : std::uint8_t { absent, starting, up, stopping };

  struct child {
    child_spec spec;
    generation number = 0;
    child_state state = child_state::absent;
    bool has_been_up = false;  ///< The failure of its first start ends the supervisor.
    bool wanted = false;       ///< To be started as soon as that is allowed.
    bool in_order = false;     ///< Its first start waits for earlier children with in_order to be up.
    bool stop_pending = false; ///< To be stopped when its turn comes.
    bool killed = false;
    time_point kill_at = time_point::max();  ///< While stopping.
    time_point start_at = time_point::min(); ///< End of the restart delay.
    std::size_t delays = 0;                  ///< Restarts in a row that were delayed.
    std::string why;                         ///< Reason of the start to come.

    bool live() const { return state != child_state::absent; }
  };

  supervisor(supervisor_options options, std::vector<child_spec> children);

  child* find(std::string_view id);
  /// The child if `number` is its present start and the supervisor still cares.
  child* current(std::string_view id, generation number);

  static void note_up(child& which);
  void ended_by_itself(child& which, const child_exit& how);
  void start_failed(child& which, const child_exit& how);
  void restart(child& which, const child_exit& how);
  bool count_restart();
  void delay_restart(child& which, bool settled);
  void stop_everything();

  actions advance();
  void issue_stop(actions& out);
  void issue_starts(actions& out);
  void issue_end(actions& out);
  void issue_kills(actions& out);
  void stop(child& which, stop_child::kind how, milliseconds patience, actions& out);
  void start(child& which, actions& out);

  supervisor_options options_;
  std::vector<child> children_; ///< In start order.
  phase phase_ = phase::created;
  std::optional<std::string> gave_up_; ///< Why; nothing in a shutdown that was asked for.
  std::deque<time_point> restarts_;    ///< Within the period, oldest first.
  time_point now_ = time_point::min();
};

} // namespace dlrun::supervision
