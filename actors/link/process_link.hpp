/// The control link of a process: how its role and those of other processes reach each other.
#pragma once

#include "actors/link/connection.hpp"
#include "actors/link/gatekeeper.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace dlrun::link {

struct process_link_options {
  transport::run_token token; ///< of the run
  peer_id self;
  std::optional<remote_access> remote{}; ///< nothing: processes of this host alone
  /// Called when a peer sends what no correct peer sends. On any thread.
  std::function<void(const std::string&)> warn;
};

/// Connects the role of this process with the roles of others. A remote role becomes an actor of
/// this process behind its ordinary handle: messages and requests to it travel as frames, and its
/// monitors are told when it or the connection ends. There is one connection for each pair of
/// processes; the gatekeeper makes it, and a broker runs it on the thread of the sockets.
/// Thread-safe. Destroy it before the actor system.
class process_link {
public:
  /// @returns system when a socket, an eventfd or a thread cannot be had.
  static result<std::unique_ptr<process_link>> create(caf::actor_system& system,
                                                      process_link_options options);
  /// Ends all connections.
  ~process_link();
  process_link(const process_link&) = delete;
  process_link& operator=(const process_link&) = delete;

  /// Where other processes reach this one.
  const std::string& address() const { return gate_->address(); }

  /// From now on peers reach `role`, which is what `self` of the options says. Its end ends all
  /// connections. To be called once.
  template <class Handle>
  void publish(const Handle& role) {
    open_door({caf::actor_cast<caf::strong_actor_ptr>(role), &table_of<Handle>()});
  }

  /// Dials the process at `address`, unless there is a connection already. `done` gets the handle
  /// of the role there, or what gatekeeper::dial() says; once, on some thread.
  template <class Handle>
  void connect(const std::string& address, const peer_id& wanted, std::function<void(result<Handle>)> done) {
    reach(address, wanted, [done = std::move(done)](const result<std::shared_ptr<connection>>& there) {
      if (!there) return done(tl::unexpected(there.error()));
      if (!(*there)->is_open()) return done(fail(error_code::role_lost, "the connection has ended"));
      done((*there)->borrow<Handle>(door_number));
    });
  }

  /// Ends the connection that was dialled to `peer`, if there is one: both ends hear that it is
  /// lost.
  void leave(const peer_id& peer);

private:
  /// With a connection on the thread of the sockets, with an error on any.
  using reached = std::function<void(const result<std::shared_ptr<connection>>&)>;
  struct state;
  struct opening;

  explicit process_link(std::shared_ptr<state> shared);
  void open_door(lent_actor role);
  void reach(const std::string& address, const peer_id& wanted, reached done);

  std::shared_ptr<state> state_; ///< shared with the brokers
  std::unique_ptr<gatekeeper> gate_;
};

} // namespace dlrun::link
