/// How a host enrols: `dlrun agent --join`.
#pragma once

#include "actors/agent/enrolment/join_key.hpp"
#include "actors/agent/enrolment/join_wire.hpp"
#include "base/unique_fd.hpp"
#include "proto/enrolment.pb.h"
#include "security/tls_session.hpp"

#include <chrono>
#include <memory>
#include <netinet/in.h>
#include <optional>
#include <span>
#include <string>

namespace dlrun::agent {

struct enrolment_wish {
  std::string root; ///< "HOST:PORT", a name or number
  join_token token; ///< not looked at where there is a key
  std::optional<join_key> key{};
  std::string version;       ///< of dlrun
  bootstrap::JoinRequest as; ///< without the secret; "" as its address: that from which the root is reached
  std::size_t bundle_bytes_max = 0;
  std::chrono::milliseconds connect_deadline{10'000};
  std::chrono::milliseconds answer_deadline{60'000};
  int stop = -1; ///< descriptor that can be read when nobody wants it any more
};

/// The connection over which a host was let in. The root waits on it until the host's agent is
/// there.
class enrolment_line {
public:
  enrolment_line(base::unique_fd socket, security::tls_session session)
      : socket_{std::move(socket)}
      , session_{std::move(session)} {}

  /// Why the agent cannot begin. What the root does not take within 2 s is not waited for.
  void tell_end(const std::string& why);

private:
  base::unique_fd socket_;
  security::tls_session session_;
};

struct enrolled_host {
  base::unique_fd bundle; ///< of bundle_word, with its line, as from a file
  enrolment_line line;
};

/// Blocks. @returns bad_usage when the root refuses it, with the root's words, or is not that of
/// the token; in_use when the root says that it may try again, which a token is told as bad_usage;
/// system, timed_out, protocol when it is not reached, or who answers is no root or does not prove
/// that it has the key; interrupted by `stop`. A name is looked up anew each time, and all
/// addresses that it has are tried.
result<enrolled_host> enrol(const enrolment_wish& wish);
/// The same where the addresses of the root's name are known: the first that is the root's counts.
result<enrolled_host> enrol_at(std::span<const sockaddr_in> roots, const enrolment_wish& wish);

/// For people: how this host goes there, "from 10.0.0.2 to 10.0.0.1:7700", of all addresses of the
/// root's name; or why nobody knows one. Sends nothing but to the name service.
std::string way_to(const std::string& root);

} // namespace dlrun::agent
