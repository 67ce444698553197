/// What the agent of another host does: runs what the agent of the job orders, and says what became
/// of it.
#pragma once

#include "actors/agent/beats/sighting.hpp"
#include "actors/agent/role_end.hpp"
#include "actors/protocol/host_messages.hpp"
#include "actors/protocol/planted_bug.hpp"
#include "actors/protocol/time.hpp"
#include "base/own_machine.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace dlrun::agent {

/// Reasons of a dismissal begin with this when the job goes on without the host.
inline constexpr std::string_view given_up = "the host was given up";
/// Reasons begin with this when no host is needed any more. After any other the host may come back.
inline constexpr std::string_view job_over = "the job is over";

struct host_agent_config {
  std::string host;
  std::uint64_t boot = 0; ///< random number of this start
  /// How long its roles keep going without a link to the agent of the job, or when that answers no
  /// beats.
  protocol::duration orphan_grace = std::chrono::seconds(60);
  /// How long it may take, once it is to leave, until the agent of the job lets it go.
  protocol::duration leave_grace = std::chrono::seconds(30);
  /// Between two reports of the same end.
  protocol::duration repeat_after = std::chrono::milliseconds(500);
  protocol::planted_bug bug = protocol::planted_bug::none; ///< for the simulator
};

// ---- what the shell must do

/// Start it here; answer with on_started() or on_start_failed(), and on_exited() when it is over.
struct launch_role {
  protocol::start_order order;
};
struct end_role {
  protocol::role_name role;
  protocol::fence self;
  protocol::stop_how how = protocol::stop_how::end;
};
/// To the agent of the job.
struct tell_agent {
  protocol::start_report report;
};
enum class leave_kind : std::uint8_t {
  lost,    ///< the job goes on, or may, without this host
  for_now, ///< this host was asked to leave, or the job was stopped; it may come back
  for_good ///< the job is over
};
/// End this process, and with it all that it started. Given once.
struct leave {
  std::string reason;
  leave_kind kind = leave_kind::lost;
};
using host_agent_action = std::variant<launch_role, end_role, tell_agent, leave>;
using host_agent_actions = std::vector<host_agent_action>;

/// Pure: decides what the agent of another host starts, ends and reports. It makes each start once,
/// however often it is ordered, and never after a later start of the same role.
class host_agent_core {
public:
  host_agent_core(host_agent_config config, protocol::time_point now)
      : config_{std::move(config)}
      , link_lost_since_{now} {}

  host_agent_actions on_start_order(const protocol::start_order& order, protocol::time_point now);
  host_agent_actions on_stop_order(const protocol::stop_order& order);
  void on_start_told(const protocol::start_told& told);
  host_agent_actions on_dismissal(const protocol::dismissal& dismissal);

  host_agent_actions on_started(const protocol::role_name& role, const protocol::fence& self,
                                std::int32_t pid, protocol::time_point now);
  host_agent_actions on_start_failed(const protocol::role_name& role, const protocol::fence& self,
                                     const error& why, protocol::time_point now);
  host_agent_actions on_exited(const protocol::role_name& role, const protocol::fence& self,
                               const role_end& how, protocol::time_point now);

  /// The agent of the job has let this host in: reports everything that it may not know. @param
  /// root random number of its process; orders of an earlier root count no more (R35)  @param
  /// knows_leave it was told that this host is to leave
  host_agent_actions on_link(protocol::time_point now, std::uint64_t root = 0, bool knows_leave = false);
  void on_link_lost(protocol::time_point now);
  /// What beats say of the agent of the job (R29). Where no beat ever passed, the link alone
  /// counts.
  void on_sighting(const sighting& seen, protocol::time_point now);
  /// The host is asked to leave the job (SIGTERM): its workers first hand back their work. Asked a
  /// second time, it leaves at once.
  host_agent_actions on_notice(protocol::time_point now);
  host_agent_actions on_tick(protocol::time_point now);

  bool has_link() const { return !link_lost_since_; }
  /// The starts that run here, for the agent of whichever root is there.
  std::vector<protocol::running_start> running() const;
  bool is_leaving() const { return leaves_since_.has_value(); }
  /// The agent of the job is to be told so, and can be.
  bool has_leave_to_tell() const { return is_leaving() && has_link() && !is_leave_known_; }
  /// A sign of life, with what workers do and memory of the host, as far as the shell saw it.
  protocol::work_report work_report(const std::vector<seen_work>& seen, const base::memory_use& memory = {});

private:
  using start_key = std::pair<protocol::role_name, dlrun::incarnation>;
  struct start {
    protocol::start_report report;
    bool is_answered = false; ///< there is something to report
    bool is_over = false;
    protocol::time_point reported{};
  };

  /// R24.
  bool is_mine(std::uint64_t boot) const {
    return (boot == config_.boot || is_planted(config_.bug, protocol::planted_bug::forged_id)) && !left_;
  }
  start* find(const protocol::role_name& role, const protocol::fence& self);
  host_agent_actions report(start& which, protocol::time_point now);
  host_agent_actions end(std::string reason, leave_kind kind = leave_kind::lost);

  host_agent_config config_;
  std::map<start_key, start> starts_; ///< that run, or whose end is not known to the agent yet
  std::uint64_t root_ = 0;            ///< to whom there is, or was last, a link
  std::map<protocol::role_name, dlrun::incarnation> newest_; ///< ever ordered by that
  std::optional<protocol::time_point> link_lost_since_;
  std::optional<protocol::time_point> silent_since_{};
  std::optional<protocol::time_point> leaves_since_{};
  bool is_leave_known_ = false; ///< to whom there is a link
  std::size_t next_worker_ = 0; ///< of those whose turn it is in a work_report
  bool left_ = false;
};

} // namespace dlrun::agent
