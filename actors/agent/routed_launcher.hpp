/// Starts each role where it is placed: here, or through the agent of another host.
#pragma once

#include "actors/agent/beats/beat_exchange.hpp"
#include "actors/agent/hosted_roles.hpp"
#include "actors/agent/hosts_wait.hpp"
#include "actors/agent/launch_book.hpp"
#include "actors/agent/linked_hosts.hpp"
#include "actors/agent/role_launcher.hpp"
#include "actors/common/clock.hpp"
#include "actors/protocol/handles.hpp"

#include <functional>
#include <map>
#include <memory>

namespace dlrun::agent {

/// Starts the agents of other hosts.
class host_starter {
public:
  virtual ~host_starter() = default;
  /// Never blocks. `ended` is called once, on any thread: how the command ended, or that it could
  /// not be started.
  virtual void run(const std::string& host, std::function<void(std::string why)> ended) = 0;
  /// Kills the command of that host; nothing happens if none runs.
  virtual void kill(const std::string& host) = 0;
  /// Asks it to end; who does not, is killed when this goes.
  virtual void ask_to_end(const std::string& host) = 0;
};

struct routed_launcher_options {
  hosted_roles_config hosts;
  std::shared_ptr<role_launcher> here; ///< for roles on this host
  std::shared_ptr<host_starter> starter;
  /// What a host joined by is not needed any more: its agent is there, or is not waited for.
  std::function<void(const std::string& host)> end_enrolment = [](const std::string&) {};
  launch_book::issuer issue;
  std::shared_ptr<beat_service> beats; ///< with the agents of other hosts
  base::hmac_key beat_key{};           ///< of the run, which no host is given
  /// Now and then: whether the agent's own certificate is to be renewed.
  std::function<void(protocol::time_point now)> keep_own_fresh = [](protocol::time_point) {};
  /// Which other hosts give the job's data now: tensor servers, by host.
  std::function<void(const std::map<std::string, std::string>&)> data_givers_are = [](const auto&) {};
  /// Asked before anything else of a host that wants to join.
  join_check may_join = [](const arriving_host&) { return result<void>{}; };
  std::function<protocol::time_point()> now = common::now;
  std::filesystem::path run_dir{}; ///< with the stores of PS shards on this host
  /// Where a host of the job keeps what is of this run; "" for what is none of its hosts.
  std::function<std::string(const std::string& host)> folder_of = [](const auto&) { return std::string{}; };
};

/// All calls but waiting() are the agent actor's, on its own thread.
///
///   start, stop ──> hosted_roles ──> start_here ──> the launcher of this host
///   what hosts say ─┘        │└────> to_host ──> linked_hosts ──> their agents
///                            └─────> tell_launch ──> launch_book ──> who ordered the start
class routed_launcher final : public role_launcher {
public:
  explicit routed_launcher(routed_launcher_options options);

  /// Before anything else: runs `task` on the agent actor, from any thread; and tells the user.
  void agent_is(std::function<void(std::function<void()>)> post,
                std::function<void(const protocol::job_event&)> tell) {
    post_ = std::move(post);
    tell_ = std::move(tell);
  }
  /// Starts the agents of all hosts.
  void begin();
  /// Any thread.
  hosts_wait& waiting() { return waiting_; }

  void start(const launch_order& order, const launch_events& events) override;
  /// R35. What runs on other hosts by order of an earlier root: from now on as if start() had been
  /// called for it. Once, before all others.
  std::vector<protocol::running_start> take_over(const launch_events& events);
  std::vector<seen_work> look() override;
  void stop(const protocol::role_name& role, const protocol::fence& self, protocol::stop_how how) override;

  // what hosts say
  protocol::join_reply on_joined(const protocol::host_joined& joined, const protocol::host_agent_actor& who);
  void on_report(const protocol::start_report& report);
  void on_heartbeat(const protocol::heartbeat& beat) { hosts_.on_heartbeat(beat); }
  void on_work(const protocol::work_report& work) { hosts_.on_work(work, options_.now()); }
  /// A host with a good token wants to join. @returns bad_usage with the reason.
  result<admission> admit(const arriving_host& who);
  /// It has gone before its agent was there.
  void on_enrolment_ended(const admission& who, const std::string& why);
  /// The next certificate of a process that says who it is, as its connection does. @returns
  /// fenced where that start is not the newest.
  result<protocol::role_credentials> on_credentials_wanted(const protocol::credentials_wanted& wanted);
  /// The connection to an agent of a host is lost, or that agent has ended.
  void on_down(const caf::actor_addr& who);
  void tick();
  /// R37. The host is being drained, is drained, or in use again.
  void set_drain(const std::string& host, drain_stage stage) {
    carry_out(hosts_.set_drain(host, stage, options_.now()));
  }
  /// R38: the job is complete, and its stores are not brought yet.
  void hold_hosts() { hosts_.hold_hosts(); }
  /// Through whom the other hosts are reached.
  const linked_hosts& links() const { return linked_; }
  const hosted_roles& roles() const { return hosts_; }
  /// The job is over.
  void dismiss(const std::string& reason);

private:
  bool certify(kept_launch& launch, const std::string& host);
  void carry_out(const hosted_actions& actions);
  void carry_out(const to_host& action);
  void send(const protocol::host_agent_actor& to, protocol::start_order order, const std::string& host);
  void carry_out(const start_here& action);
  void carry_out(const run_command& action);
  void carry_out(const watch_beats& action);

  routed_launcher_options options_;
  hosted_roles hosts_;
  std::function<void(std::function<void()>)> post_;
  std::function<void(const protocol::job_event&)> tell_;
  launch_book launches_;
  linked_hosts linked_;
  std::map<std::string, std::string> data_givers_; ///< tensor servers, by host
  hosts_wait waiting_;
};

} // namespace dlrun::agent
