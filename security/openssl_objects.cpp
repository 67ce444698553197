#include "security/openssl_objects.hpp"

#include "security/certificate_authority.hpp"

#include <chrono>
#include <ctime>
#include <fmt/chrono.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>

namespace dlrun::security::openssl {
namespace {

/// A PEM text that wants a password has none for us; OpenSSL would ask the terminal.
int no_password(char*, int, int, void*) { return -1; }

bio reader_of(const std::string& text) {
  return bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

result<std::string> text_in(BIO* memory) {
  char* text = nullptr;
  const auto size = BIO_get_mem_data(memory, &text);
  if (size <= 0) return fail_openssl(error_code::system, "OpenSSL wrote no PEM text");
  return std::string(text, static_cast<std::size_t>(size));
}

} // namespace

tl::unexpected<error> fail_openssl(error_code code, std::string_view what) {
  std::string text{what};
  for (auto number = ERR_get_error(); number != 0; number = ERR_get_error()) {
    const auto* reason = ERR_reason_error_string(number);
    text += fmt::format(": {}", reason != nullptr ? reason : "no reason given");
  }
  return fail(code, std::move(text));
}

result<key> make_key() {
  key made(EVP_EC_gen("P-256"));
  if (!made) return fail_openssl(error_code::system, "OpenSSL cannot make a key of ECDSA P-256");
  return made;
}

result<std::string> to_pem(X509* from) {
  const bio memory(BIO_new(BIO_s_mem()));
  if (!memory || PEM_write_bio_X509(memory.get(), from) != 1)
    return fail_openssl(error_code::system, "OpenSSL cannot write a certificate");
  return text_in(memory.get());
}

result<std::string> to_pem(EVP_PKEY* from) {
  const bio memory(BIO_new(BIO_s_secmem()));
  if (!memory || PEM_write_bio_PrivateKey(memory.get(), from, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return fail_openssl(error_code::system, "OpenSSL cannot write a private key");
  return text_in(memory.get());
}

result<certificate> read_certificate(const std::string& pem, std::string_view what) {
  const auto from = reader_of(pem);
  certificate read(from ? PEM_read_bio_X509(from.get(), nullptr, &no_password, nullptr) : nullptr);
  if (!read) return fail_openssl(error_code::bad_usage, fmt::format("{} is no PEM certificate", what));
  const certificate second(PEM_read_bio_X509(from.get(), nullptr, &no_password, nullptr));
  ERR_clear_error(); // there is no second one, as it should be
  if (second) return fail(error_code::bad_usage, fmt::format("{} has more than one certificate", what));
  return read;
}

std::vector<certificate> read_certificates(const std::string& pem) {
  std::vector<certificate> all;
  const auto from = reader_of(pem);
  while (from) {
    certificate next(PEM_read_bio_X509(from.get(), nullptr, &no_password, nullptr));
    if (!next) break;
    all.push_back(std::move(next));
  }
  ERR_clear_error(); // behind the last one there is none
  return all;
}

result<std::string> digest_of(X509* certificate) {
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  if (X509_digest(certificate, EVP_sha256(), reinterpret_cast<unsigned char*>(digest.data()), &size) != 1)
    return fail_openssl(error_code::system, "OpenSSL cannot hash a certificate");
  digest.resize(size);
  return digest;
}

result<key> read_key(const std::string& pem) {
  const auto from = reader_of(pem);
  key read(from ? PEM_read_bio_PrivateKey(from.get(), nullptr, &no_password, nullptr) : nullptr);
  if (!read)
    return fail_openssl(error_code::bad_usage, "the private key is no PEM private key without a password");
  return read;
}

result<certificate_name> name_of(X509* from) {
  int found = 0; // -1: there is none, -2: there are several extensions
  const general_names names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(from, NID_subject_alt_name, &found, nullptr)));
  const auto count = names ? sk_GENERAL_NAME_num(names.get()) : 0;
  if (count != 1)
    return fail(error_code::protocol, found == -2 || count > 1 ? "it has more than one name"
                                                               : "it has no name that says whose it is");
  int kind = 0;
  const auto* value =
      static_cast<ASN1_IA5STRING*>(GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names.get(), 0), &kind));
  if (kind != GEN_URI) return fail(error_code::protocol, "its name is not a URI");
  return parse_uri({reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
                    static_cast<std::size_t>(ASN1_STRING_length(value))});
}

namespace {

std::string text_of(std::time_t when) { return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(when)); }

std::string text_after(const ASN1_TIME* when, std::chrono::seconds later) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(when, &parts) != 1) return "an unreadable time";
  return text_of(static_cast<std::time_t>(::timegm(&parts) + later.count()));
}

} // namespace

std::string to_string(const ASN1_TIME* when) { return text_after(when, std::chrono::seconds{0}); }

std::string now_text() { return text_of(std::time(nullptr)); }

std::string issue_time_of(const X509* certificate) {
  return text_after(X509_get0_notBefore(certificate), clock_skew);
}

} // namespace dlrun::security::openssl
