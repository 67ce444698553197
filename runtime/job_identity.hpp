/// Who the processes of a job of several hosts are to each other.
#pragma once

#include "actors/link/gatekeeper.hpp"
#include "actors/protocol/host_messages.hpp"
#include "security/certificate_authority.hpp"

#include <chrono>
#include <memory>
#include <mutex>
#include <string>

namespace dlrun::runtime {

/// The same for a TLS context.
security::credentials to_credentials(const protocol::role_credentials& made);

/// What a process with these credentials needs, to be reached by other hosts at `address`, a
/// number.
/// @returns bad_usage when the credentials are not what they should be.
result<link::remote_access> make_remote_access(const protocol::role_credentials& credentials,
                                               const std::string& address);

/// Issues the certificates by which the processes of one run know each other. Only the root has
/// one. Thread-safe.
class job_identity {
public:
  /// @param job what its certificates are for  @param authority of that job
  /// @param lifetime of the certificates that it issues. @returns bad_usage when these texts are no
  /// authority.
  static result<std::shared_ptr<job_identity>>
  make(const std::string& job, const security::certificate_authority::pem_texts& authority,
       std::chrono::seconds lifetime);

  /// A key and a certificate for one start of a role on a host.
  result<protocol::role_credentials> issue(const protocol::role_name& role, const std::string& host) const;

private:
  job_identity(security::certificate_authority authority, std::chrono::seconds lifetime)
      : authority_{std::move(authority)}
      , lifetime_{lifetime} {}

  mutable std::mutex mutex_;
  security::certificate_authority authority_; ///< guarded by mutex_
  std::chrono::seconds lifetime_;
};

} // namespace dlrun::runtime
