#include "security/tls_errors.hpp"

#include "security/openssl_objects.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <span>

namespace dlrun::security::openssl {
namespace {

/// How long a peer's word (from an X509 name) may be in a message is bounded by check_name().
std::string owner_of(X509* shown) {
  const auto name = shown != nullptr ? name_of(shown) : fail(error_code::protocol, "");
  return name ? fmt::format(" (it says: {})", describe(*name)) : "";
}

struct known_reason {
  int reason;
  error_code code;
  const char* text;
};

/// Of the errors that an alert of the other end makes.
constexpr known_reason refused_by_peer[] = {
    {SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, error_code::fenced, "wants a certificate"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, error_code::fenced, "says that our certificate has expired"},
    {SSL_R_TLSV1_ALERT_UNKNOWN_CA, error_code::fenced,
     "does not trust the authority of our certificate: another job?"},
    {SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, error_code::fenced, "does not accept our certificate"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, error_code::fenced, "does not accept our certificate"},
    {SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE, error_code::fenced, "does not accept our certificate"},
    {SSL_R_TLSV1_ALERT_ACCESS_DENIED, error_code::fenced, "does not accept our certificate"},
    {SSL_R_TLSV1_ALERT_DECRYPT_ERROR, error_code::fenced, "does not accept the signature of our certificate"},
    {SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, error_code::protocol, "does not speak TLS 1.3"},
    {SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE, error_code::protocol, "has no TLS 1.3 in common with us"},
};

constexpr known_reason found_here[] = {
    {SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, error_code::fenced, "the other end shows no certificate"},
    {SSL_R_UNSUPPORTED_PROTOCOL, error_code::protocol, "the other end does not speak TLS 1.3"},
    {SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, error_code::protocol,
     "the other end has no ECDSA P-256 certificate"},
    {SSL_R_NO_SHARED_CIPHER, error_code::protocol, "the other end offers no AES-GCM"},
    {SSL_R_HTTP_REQUEST, error_code::protocol, "the other end does not speak TLS but HTTP"},
    {SSL_R_WRONG_VERSION_NUMBER, error_code::protocol, "the other end does not speak TLS"},
    {SSL_R_UNEXPECTED_MESSAGE, error_code::protocol, "the other end does not speak TLS as it should"},
    {SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC, error_code::protocol,
     "what the other end sent was changed on its way"},
    {SSL_R_PACKET_LENGTH_TOO_LONG, error_code::protocol,
     "the other end sends records longer than TLS allows"},
    {SSL_R_ENCRYPTED_LENGTH_TOO_LONG, error_code::protocol,
     "the other end sends records longer than TLS allows"},
    {SSL_R_DATA_LENGTH_TOO_LONG, error_code::protocol, "the other end sends records longer than TLS allows"},
};

const known_reason* find_reason(std::span<const known_reason> among, int reason) {
  for (const auto& one : among)
    if (one.reason == reason) return &one;
  return nullptr;
}

/// What the clocks have to do with it, where the other end does not say whether they have.
std::string tell_times(int reason, const X509* own) {
  const bool may_be_time =
      reason == SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED || reason == SSL_R_SSLV3_ALERT_BAD_CERTIFICATE;
  if (!may_be_time || own == nullptr) return "";
  return fmt::format(
      ": it was made when the clock of the root's host said {}, it expires at {}, and here it is "
      "{}: compare that with the clock of the other end",
      issue_time_of(own), to_string(X509_get0_notAfter(own)), now_text());
}

error describe_reason(unsigned long number, const X509* own) {
  const auto reason = ERR_GET_REASON(number);
  const auto* const words = ERR_reason_error_string(number);
  const std::string spoken = words != nullptr ? words : "no reason given";
  if (ERR_GET_LIB(number) != ERR_LIB_SSL)
    return {ERR_GET_REASON(number) == ERR_R_MALLOC_FAILURE ? error_code::system : error_code::protocol,
            fmt::format("TLS with the other end failed: {}", spoken)};
  if (const auto* known = find_reason(refused_by_peer, reason))
    return {known->code, fmt::format("the other end {}{}", known->text, tell_times(reason, own))};
  if (const auto* known = find_reason(found_here, reason)) return {known->code, known->text};
  if (reason >= SSL_AD_REASON_OFFSET)
    return {error_code::protocol, fmt::format("the other end has ended the TLS session: {}", spoken)};
  return {error_code::protocol, fmt::format("the other end does not speak TLS as it should: {}", spoken)};
}

} // namespace

std::string refusal_of(X509* shown, int reason) {
  const auto of = owner_of(shown);
  switch (reason) {
  case X509_V_ERR_CERT_HAS_EXPIRED:
    return fmt::format(
        "the other end's certificate{} expired at {}: it was made when the clock of the root's host "
        "said {}, and here it is {}: renew it, or set the clock that is wrong",
        of, to_string(X509_get0_notAfter(shown)), issue_time_of(shown), now_text());
  case X509_V_ERR_CERT_NOT_YET_VALID:
    return fmt::format(
        "the other end's certificate{} is not valid before {}: it was made when the clock of the "
        "root's host said {}, and here it is {}: set the clock that is wrong",
        of, to_string(X509_get0_notBefore(shown)), issue_time_of(shown), now_text());
  case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    return fmt::format("the other end's certificate{} is signed by itself, not by the job's authority", of);
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
  case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
  case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
  case X509_V_ERR_CERT_SIGNATURE_FAILURE:
  case X509_V_ERR_CERT_CHAIN_TOO_LONG:
    return fmt::format("the other end's certificate{} is not of this job's authority", of);
  default:
    return fmt::format("the other end's certificate{} is refused: {}", of,
                       X509_verify_cert_error_string(reason));
  }
}

bool is_untimely(int reason) {
  return reason == X509_V_ERR_CERT_HAS_EXPIRED || reason == X509_V_ERR_CERT_NOT_YET_VALID;
}

error session_error(const std::string& refusal, const X509* own) {
  const auto first = ERR_get_error();
  ERR_clear_error();
  if (!refusal.empty()) return {error_code::fenced, refusal};
  if (first == 0) return {error_code::protocol, "the TLS session ended without a reason"};
  return describe_reason(first, own);
}

} // namespace dlrun::security::openssl
