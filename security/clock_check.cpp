#include "security/clock_check.hpp"

#include "security/openssl_objects.hpp"

#include <fmt/format.h>
#include <openssl/x509.h>

namespace dlrun::security {

result<void> check_clock(const credentials& mine) {
  const auto read = openssl::read_certificate(mine.certificate_pem, "the certificate");
  if (!read) return tl::unexpected(read.error());
  const auto* const certificate = read->get();
  const bool has_begun = X509_cmp_current_time(X509_get0_notBefore(certificate)) < 0;
  const bool has_ended = X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0;
  if (has_begun && !has_ended) return {};
  return fail(error_code::bad_usage,
              fmt::format("the clocks differ: here it is {}, and on the root's host it was {} when that made "
                          "the certificate of this host, which is valid from {} to {}: set the clock that is "
                          "wrong ('dlrun doctor' compares them)",
                          openssl::now_text(), openssl::issue_time_of(certificate),
                          openssl::to_string(X509_get0_notBefore(certificate)),
                          openssl::to_string(X509_get0_notAfter(certificate))));
}

} // namespace dlrun::security
