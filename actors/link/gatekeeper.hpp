/// gatekeeper: the thread on which connections begin, so that no actor waits for strangers or for
/// peers that hang.
#pragma once

#include "actors/link/greeting.hpp"
#include "base/unique_fd.hpp"
#include "security/tls_context.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::link {

/// How processes of other hosts reach this one, and this one them.
struct remote_access {
  std::string host; ///< number of this host's address
  /// Its name says which role this process runs, as peer_id does.
  std::shared_ptr<security::tls_context> identity;
  std::uint16_t port = 0; ///< of that address, to listen on; 0: a free one
};

struct gatekeeper_options {
  transport::run_token token{}; ///< of the run; who does not know it stays outside
  peer_id self{};
  /// A connection that has not greeted for so long is dropped.
  std::chrono::milliseconds greeting_deadline{5000};
  /// Connections that have not greeted yet, each of which holds under 1 KiB; more wait in the
  /// backlog of the listening socket.
  std::size_t strangers_max = 256;
  std::optional<remote_access> remote{}; ///< nothing: this host alone
};

/// A connection whose ends have identified each other.
struct open_socket {
  base::unique_fd socket; ///< does not block
  peer_id peer;
  std::vector<char> rest; ///< what came after the greeting
};

/// Begins connections: accepts on an abstract Unix socket with a random name, and dials those of
/// other processes. Both ends check that the other runs as the same user. With remote_access it
/// also connects to processes of other hosts, in TLS: both ends check that the other's certificate
/// is that of the role which the other claims, or has to have. Thread-safe; no call blocks on a
/// peer.
class gatekeeper {
public:
  struct events {
    /// Whether this process is, now, who is wanted. Called on the gatekeeper's thread, as are all.
    std::function<bool(const peer_id& wanted)> is_here;
    std::function<void(open_socket)> accepted;
  };
  using dialled = std::function<void(result<open_socket>)>;

  /// @returns system when a socket, an eventfd or a thread cannot be had.
  static result<std::unique_ptr<gatekeeper>> start(const gatekeeper_options& options, events told);
  /// Ends all dialling with error_code::interrupted. Not to be called on its thread.
  ~gatekeeper();
  gatekeeper(const gatekeeper&) = delete;
  gatekeeper& operator=(const gatekeeper&) = delete;

  /// Where others dial: the name of the socket, and with remote_access "@NUMBER:PORT".
  const std::string& address() const;

  /// Connects to the process at `address` if it is `wanted`; `done` is called once. Errors: system
  /// when nobody listens there, timed_out after the greeting deadline, and those of
  /// check_welcome().
  void dial(std::string address, const peer_id& wanted, dialled done);

private:
  class loop;
  explicit gatekeeper(std::unique_ptr<loop> loop);
  std::unique_ptr<loop> loop_;
};

} // namespace dlrun::link
