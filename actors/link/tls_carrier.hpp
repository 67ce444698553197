/// tls_carrier: connections between processes of different hosts.
#pragma once

#include "base/unique_fd.hpp"
#include "security/tls_context.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace dlrun::link {

struct tls_carrier_options {
  std::string host;       ///< number of an interface of this host
  std::uint16_t port = 0; ///< of it, to listen on; 0: a free one
  std::shared_ptr<security::tls_context> identity;
  /// A peer that has not shown its certificate within this time is dropped.
  std::chrono::milliseconds handshake_deadline{5000};
  /// Connections whose peer is not known yet, each of which holds under 64 KiB; more wait in the
  /// backlog of the listening socket.
  std::size_t strangers_max = 256;
};

/// A local socket, which leads to a process of another host.
struct carried_socket {
  base::unique_fd socket; ///< a stream; does not block
  security::certificate_name peer;
};

/// Carries connections to other hosts in TLS, with certificates of the job at both ends, and hands
/// each out as a local socket, so that its user need not know. When the connection is lost, it
/// closes that socket. A peer that reads nothing for 3 s, or whose host is silent for 3 s, is lost.
/// Thread-safe; no call blocks on a peer.
class tls_carrier {
public:
  /// Both are called on the carrier's thread and must not block.
  using accepted = std::function<void(carried_socket)>;
  using dialled = std::function<void(result<carried_socket>)>;

  /// @returns bad_usage when `host` is no number of this machine, system when a socket, an eventfd
  /// or a thread cannot be had.
  static result<std::unique_ptr<tls_carrier>> start(const tls_carrier_options& options, accepted take);
  /// Ends all connections, and all dialling with error_code::interrupted. Not to be called on its
  /// thread.
  ~tls_carrier();
  tls_carrier(const tls_carrier&) = delete;
  tls_carrier& operator=(const tls_carrier&) = delete;

  /// Where others dial: "NUMBER:PORT".
  const std::string& address() const;
  /// Whether that is the address of a process of the same host.
  bool is_here(const std::string& address) const;

  /// Connects to the process at `address`; `done` is called once. The peer is known and of the same
  /// job, but need not be whom the caller wants. Errors: bad_usage for what is no address, system
  /// when nobody listens there, timed_out, and those of security::tls_session.
  void dial(const std::string& address, dialled done);

private:
  class loop;
  explicit tls_carrier(std::unique_ptr<loop> loop);
  std::unique_ptr<loop> loop_;
};

} // namespace dlrun::link
