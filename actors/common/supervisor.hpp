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
/// events. Semantics are those of OTP 25's supervisor; actors/common/README.md names the few
/// differences. Not thread-safe.
///
/// - Children start in order, each when the one before is up; they stop in reverse order, each when
/// the one after is gone.
/// - A start that fails at the beginning ends the supervisor; one that fails in a restart counts as
/// one more restart.
/// - Under one_for_one several children may be restarting at a time; under the other strategies all
/// who must go are gone
///   before the first is started again.
/// - `now` must not run backwards.
class supervisor {
public:
  /// @returns bad_usage as validate() does.
  static result<supervisor> create(supervisor_options options, std::vector<child_spec> children);

  /// Starts the children. To be called once.
  actions start(time_point now);
  /// Stops the children, then the supervisor. Repeating it changes nothing.
  actions shutdown(time_point now);
  /// To be called at next_tick() or later: turns late terminations into kills and ends restart
  /// delays.
  actions tick(time_point now);
  /// When tick() has something to do; nothing if only events can change anything.
  std::optional<time_point> next_tick() const;

  /// Events of unknown children and of older generations are ignored, as is everything after the
  /// last action.
  actions child_started(std::string_view id, generation number, time_point now);
  actions child_start_failed(std::string_view id, generation number, std::string detail, time_point now);
  actions child_exited(std::string_view id, generation number, child_exit how, time_point now);

  /// Adds a child behind all others and starts it; if this first start fails, the child is
  /// forgotten again.
  /// @returns bad_usage for an id in use or a wrong spec, interrupted when the supervisor is
  ///   stopping.
  result<actions> add_child(child_spec spec, time_point now);
  /// Stops the child, if it runs, and forgets it. @returns bad_usage for an unknown id.
  result<actions> remove_child(std::string_view id, time_point now);

  /// True after the last action (escalate or supervisor_stopped).
  bool finished() const { return phase_ == phase::finished; }
  /// Ids in start order.
  std::vector<std::string> children() const;
  /// True if the child is up and not being stopped.
  bool is_up(std::string_view id) const;
  /// Restarts that count now, and would not be exceeded by options.intensity.
  std::size_t recent_restarts() const { return restarts_.size(); }

private:
  enum class phase : std::uint8_t { created, running, stopping, finished };
  enum class child_state : std::uint8_t { absent, starting, up, stopping };
  /// What a start is part of, which decides what its failure means.
  enum class start_kind : std::uint8_t { initial, added, restart };

  struct child {
    child_spec spec;
    generation number = 0;
    child_state state = child_state::absent;
    start_kind kind = start_kind::initial;
    bool wanted = false;       ///< To be started as soon as that is allowed.
    bool in_order = false;     ///< Its start waits for earlier children with in_order, and they for being up.
    bool stop_pending = false; ///< To be stopped when its turn comes.
    bool group_stop = false;   ///< Its end is waited for by the restart of a group.
    bool removing = false;     ///< Forgotten when it is gone.
    bool killed = false;
    time_point kill_at = time_point::max();  ///< While stopping.
    time_point start_at = time_point::min(); ///< End of the restart delay.
    std::size_t delays = 0;                  ///< Restarts in a row that were delayed.
    std::string why;                         ///< Reason of the start or stop to come.

    bool live() const { return state != child_state::absent; }
  };

  supervisor(supervisor_options options, std::vector<child_spec> children);

  child* find(std::string_view id);
  /// The child if `number` is its present start and the supervisor still cares.
  child* current(std::string_view id, generation number);

  void ended_by_itself(child& which, const child_exit& how);
  void start_failed(child& which, const std::string& detail);
  void restart(child& which, const child_exit& how);
  bool count_restart();
  void delay_restart(child& which, bool settled);
  void restart_group(std::size_t first, time_point start_at, const std::string& why);
  void stop_everything(bool giving_up, const std::string& why);
  void check_auto_shutdown(bool significant, const std::string& id);
  void forget_absent(child& which);

  actions advance();
  void issue_stop(actions& out);
  void issue_starts(actions& out);
  void issue_end(actions& out);
  void issue_kills(actions& out);
  void stop(child& which, actions& out);
  void start(child& which, actions& out);

  supervisor_options options_;
  std::vector<child> children_; ///< In start order.
  phase phase_ = phase::created;
  bool announced_ = false; ///< supervisor_started was issued.
  bool giving_up_ = false;
  std::string end_reason_;
  generation highest_removed_ = 0;  ///< Of the starts of children that are forgotten.
  std::deque<time_point> restarts_; ///< Within the period, oldest first.
  time_point now_ = time_point::min();
};

} // namespace dlrun::supervision
