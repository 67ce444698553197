/// One control connection to another process, as the broker that runs it and the proxies of what is
/// behind it see it.
#pragma once

#include "actors/link/frame.hpp"
#include "actors/link/greeting.hpp"
#include "actors/link/message_table.hpp"

#include <caf/all.hpp>
#include <caf/io/all.hpp>
#include <map>
#include <memory>

namespace dlrun::link {

/// The number of a process's role.
inline constexpr std::uint64_t door_number = 0;

/// An actor of this process to which a peer may send messages, and which messages.
struct lent_actor {
  caf::strong_actor_ptr actor;
  const message_table* table = nullptr;
};

/// What a new connection is given.
struct connection_setup {
  peer_id peer;
  /// The role of this process, as it is now; null before there is one.
  std::function<lent_actor()> door;
  std::function<void(const std::string&)> warn;
};

/// One control connection: sends messages of this process's actors as frames, and delivers frames
/// of the peer to actors. The peer reaches the role of this process, and actors whose handle it was
/// given, nothing else. All calls are on the thread of the sockets.
class connection : public std::enable_shared_from_this<connection> {
public:
  connection(caf::io::broker& broker, caf::io::connection_handle socket, connection_setup setup);

  const peer_id& peer() const { return setup_.peer; }
  bool is_open() const { return broker_ != nullptr; }
  /// Only while open.
  caf::io::broker& broker() { return *broker_; }

  // ---- for proxies
  using answer_reader = result<void> (*)(connection&, std::span<const char> payload, caf::response_promise&);

  /// What cannot be sent is lost, as messages may be.
  void send(std::uint64_t actor, std::uint16_t message, std::span<const char> payload);
  /// The same; `promise` is kept with what `read` makes of the answer, or with an error.
  void request(std::uint64_t actor, std::uint16_t message, std::span<const char> payload,
               caf::response_promise promise, answer_reader read);

  // ---- for requests of the peer
  void answer(std::uint64_t call, std::span<const char> payload);
  void refuse(std::uint64_t call, const std::string& why);

  // ---- handles in messages
  /// The number by which the peer knows an actor of this process from now on.
  std::uint64_t lend(const caf::strong_actor_ptr& actor, const message_table& table);
  /// The proxy of the peer's actor `number`. @returns protocol when the peer has given it as
  /// another kind of actor before.
  template <class Handle>
  result<Handle> borrow(std::uint64_t number);
  /// The proxy of the peer's role; null when there is none for its kind.
  caf::strong_actor_ptr peer_door();

  // ---- for the broker
  /// What came. @returns protocol for what no correct peer sends.
  result<void> take(std::span<const char> bytes);
  void on_down(const caf::down_msg& down);
  /// Ends all proxies and open requests with `why`. Nothing is sent or taken afterwards.
  void end(const std::string& why);

private:
  struct open_call {
    caf::response_promise promise;
    answer_reader read = nullptr;
  };
  struct borrowed_actor {
    caf::strong_actor_ptr proxy;
    const message_table* table = nullptr;
  };

  bool write(const frame_header& header, std::span<const char> payload);
  result<void> on_frame(const frame& what);
  result<void> deliver(const frame& what);
  result<void> settle(const frame& what);
  void on_gone(std::uint64_t number);
  lent_actor lent(std::uint64_t number) const;

  caf::io::broker* broker_; ///< null once it has ended
  caf::io::connection_handle socket_;
  connection_setup setup_;
  frame_reader reader_;
  std::map<std::uint64_t, lent_actor> lent_; ///< without the door
  std::map<std::uint64_t, borrowed_actor> borrowed_;
  std::map<std::uint64_t, open_call> calls_;
  std::uint64_t last_call_ = 0;
};

} // namespace dlrun::link
