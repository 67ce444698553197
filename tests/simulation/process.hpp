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
  process(world& where, protocol::role_name role, protocol::fence self)
      : world_(where)
      , role_(role)
      , self_(self) {}
  virtual ~process() = default;
  process(const process&) = delete;
  process& operator=(const process&) = delete;

  virtual void start() = 0;
  virtual void receive(const message& what) = 0;
  /// Its memory goes with it.
  virtual void died() {}

  const protocol::role_name& role() const { return role_; }
  const protocol::fence& self() const { return self_; }
  /// Whether they hear each other.
  bool reaches(const process& other) const { return group == other.group; }
  std::string name() const { return fmt::format("{}/{}", protocol::to_string(role_), self_.incarnation); }

  bool alive = true;
  bool frozen = false;
  bool taken_for_dead = false; ///< its agent has replaced it
  int group = 0;               ///< of the partition; only equal ones hear each other
  std::vector<event> deferred; ///< while it is frozen

protected:
  void send(protocol::role_name to, message what);
  void after(protocol::duration delay, std::function<void()> what);
  /// Now, and again and again.
  void every(protocol::duration period, std::function<void()> what);
  world& world_;

private:
  protocol::role_name role_;
  protocol::fence self_;
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
  /// The core says that a newer start exists.
  void end_fenced(incarnation newest);

private:
  void ask_to_join();
  bool admitted_ = false;
  incarnation coordinator_{}; ///< that it has joined
  incarnation joining_{};     ///< that the agent knows; 0 = none is up
};

} // namespace dlrun::simulation
