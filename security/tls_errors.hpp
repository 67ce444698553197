/// What OpenSSL says of a TLS session that failed, in words for an operator.
#pragma once

#include <dlrun/error.hpp>
#include <openssl/types.h>
#include <string>

namespace dlrun::security::openssl {

/// Why the peer's certificate was not accepted: `reason` is one of X509_V_ERR_*, `shown` may be
/// null.
std::string refusal_of(X509* shown, int reason);

/// Is the certificate refused by the clock here alone? `reason` as above.
bool is_untimely(int reason);

/// Takes the errors that OpenSSL has queued for this thread. `refusal` is what was found wrong with
/// the peer's certificate, if anything was; `own` is what the peer was shown, which may be null.
error session_error(const std::string& refusal, const X509* own);

} // namespace dlrun::security::openssl
