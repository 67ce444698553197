/// The door at which hosts join a job that runs.
#pragma once

#include "actors/agent/enrolment/admission.hpp"
#include "actors/agent/enrolment/join_key.hpp"
#include "actors/agent/enrolment/join_wire.hpp"
#include "base/unique_fd.hpp"
#include "proto/enrolment.pb.h"
#include "security/tls_context.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace dlrun::agent {

/// A socket that listens, and where: "10.0.0.1:7700".
struct enrolment_listener {
  base::unique_fd socket;
  std::string address;
};
/// @param address number of an interface of this host, and a port; 0: a free one
/// @returns bad_usage, with the way out, when it is none of this host or in use.
result<enrolment_listener> listen_for_enrolments(const std::string& address);

struct enrolment_options {
  std::shared_ptr<security::tls_context> door{}; ///< tls_context::make_door() of the root's credentials
  std::string pin{};                             ///< of the job's authority
  std::string version{};                         ///< of dlrun; that of a host must be the same
  /// Who proves that it has this one needs no token; null: there is none.
  std::shared_ptr<const join_key> key{};
  /// Who has not said in that time what it wants is dropped.
  std::chrono::milliseconds request_deadline{5000};
  /// What a host is given may be 64 MiB.
  std::chrono::milliseconds given_deadline{60'000};
  /// Connections of whom has no good token or key, each of which holds under 64 KiB; more wait in
  /// the backlog of the listening socket.
  std::size_t strangers_max = 256;
  /// Between two that are told of strangers that were dropped.
  std::chrono::milliseconds strangers_told_each{10'000};
};

/// All are called on the server's thread and must not block on a peer.
struct enrolment_events {
  using decided = std::function<void(result<admission>)>;
  /// May this host join, which has proved itself? Answered once, on any thread. A refusal with
  /// in_use lets it try again.
  std::function<void(const bootstrap::JoinRequest& who, decided done)> admit;
  /// A message of bundle_word: what a host is to run that was let in.
  std::function<result<std::string>(const bootstrap::JoinRequest& who, const admission& as)> bundle;
  /// It has gone before let_go(), with the reason.
  std::function<void(const admission& who, const std::string& why)> ended;
  /// Somebody was refused, for the user.
  std::function<void(const std::string& text)> refused;
};

/// Makes tokens, and lets in who shows one: over TLS 1.3, in which the root proves itself by the
/// certificate of its job's authority, and the host by the secret of the token, which is kept as
/// its SHA-256 alone. With a key it lets in who has that, to whom the root proves itself by it too.
/// Strangers hold up nobody. Thread-safe.
class enrolment_server {
public:
  static result<std::unique_ptr<enrolment_server>>
  start(enrolment_listener listener, const enrolment_options& options, enrolment_events events);
  /// Ends all connections. Not to be called on its thread.
  ~enrolment_server();
  enrolment_server(const enrolment_server&) = delete;
  enrolment_server& operator=(const enrolment_server&) = delete;

  /// Where hosts join.
  const std::string& address() const;
  /// One that is good for one host, for so long. @returns limit_exceeded, system.
  result<security::secret_text> make_token(std::chrono::seconds lifetime);
  /// The agent of that host is there, or is not waited for any more.
  void let_go(const std::string& host);

private:
  class loop;
  explicit enrolment_server(std::unique_ptr<loop> loop);
  std::unique_ptr<loop> loop_;
};

} // namespace dlrun::agent
