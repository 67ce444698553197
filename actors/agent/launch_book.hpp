/// The starts of roles on this host and on others that were ordered: who hears what becomes of
/// them, and what certificates they have.
#pragma once

#include "actors/agent/hosted_actions.hpp"
#include "actors/agent/hosted_starts.hpp"
#include "actors/agent/role_launcher.hpp"
#include "actors/protocol/host_messages.hpp"
#include "actors/protocol/roles.hpp"

#include <dlrun/error.hpp>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace dlrun::agent {

/// One that was ordered.
struct kept_launch {
  launch_order order;
  launch_events events;    ///< who hears what becomes of it
  std::string certified{}; ///< for which host the credentials of the order are; "" without any
};

/// Keeps each start that was ordered until it is over or was handed to another launcher. Its
/// certificate is made once for each host that it is sent to; the next one of a role is for the
/// start that got the last.
class launch_book {
public:
  /// Makes the credentials of a start of a role on a host.
  using issuer = std::function<result<protocol::role_credentials>(const protocol::role_name& role,
                                                                  const std::string& host)>;

  explicit launch_book(issuer issue)
      : issue_(std::move(issue)) {}

  void put(const launch_order& order, const launch_events& events);
  /// R35. It runs on that host, with credentials that an earlier root made.
  void adopt(const protocol::running_start& one, const launch_events& events, const std::string& host);
  /// Null: it is not in the book.
  kept_launch* find(const protocol::role_name& role, dlrun::incarnation incarnation);
  /// Takes it out of the book.
  std::optional<kept_launch> take(const protocol::role_name& role, dlrun::incarnation incarnation);
  /// Sees that its order has credentials for that host. @returns why they could not be made
  result<void> certify(kept_launch& one, const std::string& host);
  /// The next credentials of a start, for where it has its first. @returns fenced where another
  /// start of the role was certified since
  result<protocol::role_credentials> renew(const protocol::role_name& role,
                                           dlrun::incarnation incarnation) const;
  /// What became of one; of one that is not in the book nobody hears. One that is over is taken
  /// out.
  void tell(const tell_launch& news);

private:
  struct certified_start {
    dlrun::incarnation incarnation;
    std::string host;
  };

  issuer issue_;
  std::map<start_key, kept_launch> all_;
  std::map<protocol::role_name, certified_start> certified_; ///< last of each role
};

} // namespace dlrun::agent
