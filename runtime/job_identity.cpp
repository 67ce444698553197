#include "runtime/job_identity.hpp"

#include "security/tls_context.hpp"

namespace dlrun::runtime {

security::credentials to_credentials(const protocol::role_credentials& made) {
  return {made.certificate, security::secret_text{made.key}, made.authority};
}

result<link::remote_access> make_remote_access(const protocol::role_credentials& credentials,
                                               const std::string& address) {
  auto identity = security::tls_context::make(to_credentials(credentials));
  if (!identity) return tl::unexpected(identity.error());
  return link::remote_access{address, std::move(*identity)};
}

result<std::shared_ptr<job_identity>>
job_identity::make(const std::string& job, const security::certificate_authority::pem_texts& authority,
                   std::chrono::seconds lifetime) {
  auto restored = security::certificate_authority::restore(job, authority);
  if (!restored) return tl::unexpected(restored.error());
  return std::shared_ptr<job_identity>{new job_identity(std::move(*restored), lifetime)};
}

result<protocol::role_credentials> job_identity::issue(const protocol::role_name& role,
                                                       const std::string& host) const {
  const std::scoped_lock lock{mutex_};
  const auto made =
      authority_.issue({authority_.job(), std::string{protocol::to_string(role.kind)}, role.index, host},
                       {.lifetime = lifetime_});
  if (!made) return tl::unexpected(made.error());
  return protocol::role_credentials{made->certificate_pem, made->key_pem.reveal(), made->authority_pem,
                                    static_cast<std::uint32_t>(lifetime_.count())};
}

} // namespace dlrun::runtime
