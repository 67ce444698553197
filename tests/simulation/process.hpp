/// One start of a role in the simulated cluster.
#pragma once

#include "tests/simulation/event_queue.hpp"
#include "tests/simulation/message.hpp"

#include <functional>
#include <string>
#include <vector>

namespace dlrun::simulation {

inline constexpr protocol::role_name agent_role{protocol::role_kind::agent, 0};
inline constexpr protocol::role_name coordinator_role{protocol::role_kind::coordinator, 0};
inline constexpr protocol::role_name dispatcher_role{protocol::role_kind::data_dispatcher, 0};

class world;

/// Thin: it carries out what the product's core says, with symbolic values and virtual time. A dead
/// process does nothing; a frozen one does everything later.
class process {
public:
  process(world& where, protocol::role_name role, protocol::fence self, std::uint32_t host = 0)
      : world_(where)
      , role_(role)
      , self_(self)
      , host_(host) {}
  virtual ~process() = default;
  process(const process&) = delete;
  process& operator=(const process&) = delete;

  virtual void start() = 0;
  virtual void receive(const message& what) = 0;
  /// Its memory goes with it.
  virtual void died() {}
  /// What was sent over the connection with `other` did not get through: both ends notice.
  virtual void connection_broken(const process& /*other*/) {}
  /// Whether what it sends to the role of `receiver` is for that start.
  virtual bool addresses(const process& /*receiver*/) const { return true; }

  const protocol::role_name& role() const { return role_; }
  const protocol::fence& self() const { return self_; }
  /// By number; 0 is the root's.
  std::uint32_t host() const { return host_; }
  /// The token stands for the random number of a process.
  protocol::endpoint endpoint() const { return {"somewhere", self_.token, {}}; }
  /// Whether the other one hears now what it said at `sent`.
  bool reaches(const process& other, protocol::time_point sent) const;
  bool reaches(const process& other) const;
  std::string name() const { return fmt::format("{}/{}", protocol::to_string(role_), self_.incarnation); }

  /// SIGSTOP and SIGCONT.
  void freeze();
  void thaw();

  bool alive = true;
  bool frozen = false;
  bool taken_for_dead = false; ///< its agent has replaced it
  bool given_up = false;       ///< an agent has counted it as lost
  int group = 0;               ///< of the partition; only equal ones hear each other
  std::vector<event> deferred; ///< while it is frozen
  /// To whoever started it on one of several hosts.
  std::function<void(process& which, std::string_view why)> on_end;

protected:
  void send(protocol::role_name to, message what);
  void after(protocol::duration delay, std::function<void()> what);
  /// Now, and again and again.
  void every(protocol::duration period, std::function<void()> what);
  /// By the clock of its host.
  protocol::time_point now() const;
  world& world_;

private:
  protocol::role_name role_;
  protocol::fence self_;
  std::uint32_t host_;
};

/// A process that must be admitted by the coordinator before it takes part.
class member_process : public process {
public:
  using process::process;
  void start() override;
  void receive(const message& what) final;

protected:
  bool admitted() const { return admitted_; }
  virtual void begin() = 0;
  virtual void hear(const message& what) = 0;
  /// Of a PS shard.
  virtual protocol::opened_store opened() const { return {}; }
  virtual void renew_store() {}
  /// The core says that a newer start exists.
  void end_fenced(incarnation newest);

private:
  void ask_to_join();
  void give_sign_of_life();
  void follow(const protocol::known_coordinator& newest);
  bool admitted_ = false;
  incarnation coordinator_{};             ///< that it has joined
  protocol::known_coordinator joining_{}; ///< that the agent knows; 0 = none is up
};

} // namespace dlrun::simulation
