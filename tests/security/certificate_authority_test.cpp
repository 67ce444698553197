// What an authority issues, looked at with OpenSSL.
#include "security/certificate_authority.hpp"
#include "security/openssl_objects.hpp"
#include "tests/security/raw_peers.hpp"

#include <gmock/gmock.h>
#include <openssl/bn.h>
#include <set>

namespace dlrun::security {
namespace {

using namespace std::chrono_literals;
using std::chrono::system_clock;
using testing::worker_name;

openssl::certificate certificate_in(const credentials& of) {
  return openssl::read_certificate(of.certificate_pem, "it").value();
}

/// From now to `when`.
std::chrono::seconds until(const ASN1_TIME* when) {
  int days = 0;
  int seconds = 0;
  EXPECT_EQ(ASN1_TIME_diff(&days, &seconds, nullptr, when), 1);
  return std::chrono::hours{24} * days + std::chrono::seconds{seconds};
}

class certificate_authority_ : public ::testing::Test {
protected:
  certificate_authority authority = certificate_authority::make("j1").value();
};

TEST_F(certificate_authority_, a_certificate_has_its_name_and_nothing_beside_it) {
  const auto made = certificate_in(authority.issue(worker_name).value());
  EXPECT_EQ(openssl::name_of(made.get()).value(), worker_name);
  EXPECT_EQ(X509_NAME_entry_count(X509_get_subject_name(made.get())), 0);
  EXPECT_EQ(X509_get_version(made.get()), X509_VERSION_3);
}

TEST_F(certificate_authority_, a_certificate_is_for_both_ends_and_certifies_nobody) {
  const auto made = certificate_in(authority.issue(worker_name).value());
  EXPECT_EQ(X509_check_ca(made.get()), 0);
  EXPECT_EQ(X509_get_key_usage(made.get()), KU_DIGITAL_SIGNATURE);
  EXPECT_EQ(X509_get_extended_key_usage(made.get()), XKU_SSL_SERVER | XKU_SSL_CLIENT);
  const auto own = openssl::read_certificate(authority.certificate_pem(), "it").value();
  EXPECT_EQ(X509_check_ca(own.get()), 1);
  EXPECT_EQ(X509_get_pathlen(own.get()), 0);
  EXPECT_EQ(X509_verify(made.get(), X509_get0_pubkey(own.get())), 1);
}

TEST_F(certificate_authority_, a_certificate_begins_before_it_was_issued_and_ends_after_a_day) {
  const auto made = certificate_in(authority.issue(worker_name).value());
  EXPECT_LE(until(X509_get0_notBefore(made.get())), -clock_skew);
  EXPECT_LT(until(X509_get0_notBefore(made.get())), -1h) << "a clock may be an hour behind";
  EXPECT_GT(until(X509_get0_notBefore(made.get())), -clock_skew - 60s);
  EXPECT_LE(until(X509_get0_notAfter(made.get())), 24h);
  EXPECT_GT(until(X509_get0_notAfter(made.get())), 24h - 60s);
  const auto brief = certificate_in(authority.issue(worker_name, {system_clock::now() + 1h, 30s}).value());
  EXPECT_GT(until(X509_get0_notBefore(brief.get())), 1h - clock_skew - 60s);
  EXPECT_LE(until(X509_get0_notAfter(brief.get())), 1h + 30s);
}

TEST_F(certificate_authority_, serial_numbers_are_random_and_of_128_bits) {
  std::set<std::string> seen;
  int bits_max = 0;
  for (int i = 0; i < 32; ++i) {
    const auto made = certificate_in(authority.issue(worker_name).value());
    const std::unique_ptr<BIGNUM, openssl::freed_by<BN_free>> number(
        ASN1_INTEGER_to_BN(X509_get0_serialNumber(made.get()), nullptr));
    bits_max = std::max(bits_max, BN_num_bits(number.get()));
    const std::unique_ptr<char, void (*)(char*)> digits(BN_bn2hex(number.get()),
                                                        [](char* text) { OPENSSL_free(text); });
    seen.insert(digits.get());
  }
  EXPECT_EQ(seen.size(), 32U);
  EXPECT_LE(bits_max, 128);
  EXPECT_GT(bits_max, 120);
}

TEST_F(certificate_authority_, every_certificate_has_a_key_of_its_own) {
  const auto a = authority.issue(worker_name).value();
  const auto b = authority.issue(worker_name).value();
  EXPECT_NE(a.key_pem.reveal(), b.key_pem.reveal());
  EXPECT_EQ(a.authority_pem, authority.certificate_pem());
  const auto key = openssl::read_key(a.key_pem.reveal()).value();
  EXPECT_EQ(X509_check_private_key(certificate_in(a).get(), key.get()), 1);
  EXPECT_EQ(X509_check_private_key(certificate_in(b).get(), key.get()), 0);
}

TEST_F(certificate_authority_, what_it_cannot_certify_is_refused) {
  const auto code_of = [&](const certificate_name& name, std::chrono::seconds lifetime) {
    return authority.issue(name, {system_clock::now(), lifetime}).error().code;
  };
  EXPECT_EQ(code_of({"j2", "worker", 3, "b"}, 1h), error_code::bad_usage);
  EXPECT_EQ(code_of({"j1", "worker", 3, "b,URI:x"}, 1h), error_code::bad_usage);
  EXPECT_EQ(code_of(worker_name, 0s), error_code::bad_usage);
  EXPECT_EQ(certificate_authority::make("a job").error().code, error_code::bad_usage);
}

TEST_F(certificate_authority_, another_process_makes_it_again_of_its_texts) {
  const auto texts = authority.pem().value();
  const auto again = certificate_authority::restore("j1", texts).value();
  const auto made = certificate_in(again.issue(worker_name).value());
  const auto own = openssl::read_certificate(authority.certificate_pem(), "it").value();
  EXPECT_EQ(X509_verify(made.get(), X509_get0_pubkey(own.get())), 1);
  auto foreign = texts;
  foreign.certificate = certificate_authority::make("j1").value().certificate_pem();
  EXPECT_EQ(certificate_authority::restore("j1", foreign).error().code, error_code::bad_usage);
  EXPECT_EQ(certificate_authority::restore("j1", {texts.certificate, secret_text{"none"}}).error().code,
            error_code::bad_usage);
}

} // namespace
} // namespace dlrun::security
