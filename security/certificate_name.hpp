/// certificate_name: who a certificate speaks for.
#pragma once

#include <cstdint>
#include <dlrun/error.hpp>
#include <string>
#include <string_view>

namespace dlrun::security {

/// Whom a certificate speaks for: a role of one job on one host. It is the certificate's only
/// subject alternative name, the URI `dlrun:job/<job>/role/<role>/<index>/host/<host>`.
///
/// `job` and `role` have 1 to 64, `host` 1 to 253 characters; all consist of letters, digits, '.',
/// '_' and '-'.
struct certificate_name {
  std::string job;         ///< id of the job
  std::string role;        ///< "worker", "ps_shard", "coordinator", "agent", ...
  std::uint32_t index = 0; ///< which of the role, 0-based; 0 where there is one
  std::string host;        ///< name of the host within the job

  bool operator==(const certificate_name&) const = default;
};

/// The URI. `name` must be one that check_name() accepts.
std::string to_uri(const certificate_name& name);

/// For people: "worker 3 on host b of job j1".
std::string describe(const certificate_name& name);

/// @returns bad_usage with the field that is empty, too long, or has other characters.
result<void> check_name(const certificate_name& name);

/// The inverse of to_uri(), and of nothing else: no other scheme, field, order, sign or leading
/// zero is accepted.
/// @returns protocol.
result<certificate_name> parse_uri(std::string_view uri);

} // namespace dlrun::security
