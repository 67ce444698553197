#include "actors/agent/enrolment/join_key.hpp"

#include "base/hex.hpp"

#include <cctype>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

namespace dlrun::agent {
namespace {

using side = join_key::side;

const std::string digits = "00112233445566778899aabbccddeeff0123456789abcdefFEDCBA9876543210";

security::channel_binding session(int number) {
  security::channel_binding made{};
  made.back() = static_cast<std::byte>(number);
  return made;
}

std::string text_of(const base::hmac_key& proof) {
  return {reinterpret_cast<const char*>(proof.data()), proof.size()};
}

TEST(join_key, is_64_digits_whatever_space_is_around_them) {
  const auto key = join_key::parse(digits);
  ASSERT_TRUE(key) << key.error().message;
  const auto proof = key->proof(side::host, session(1));
  EXPECT_EQ(join_key::parse(" " + digits + "\r\n")->proof(side::host, session(1)), proof);
  auto lower = digits;
  for (auto& one : lower) one = static_cast<char>(std::tolower(one));
  EXPECT_EQ(join_key::parse(lower)->proof(side::host, session(1)), proof);
}

TEST(join_key, refuses_any_other_text_and_says_what_one_looks_like) {
  for (const auto& wrong :
       {std::string{}, std::string{"\n"}, digits.substr(1), digits + "0", digits.substr(0, 63) + "g",
        digits.substr(0, 32) + " " + digits.substr(33), "0x" + digits.substr(2), digits + "\n" + digits}) {
    const auto key = join_key::parse(wrong);
    ASSERT_FALSE(key) << wrong;
    EXPECT_EQ(key.error().code, error_code::bad_usage);
    EXPECT_THAT(key.error().message, testing::HasSubstr("64 hexadecimal digits"));
    EXPECT_THAT(key.error().message, testing::HasSubstr("openssl rand -hex 32"));
  }
}

// From RFC 2104 alone, by Python's hmac: a host of another build has to make the same.
TEST(join_key, makes_the_proofs_of_the_first_release) {
  const auto key = join_key::parse(digits).value();
  EXPECT_EQ(base::to_hex(key.proof(side::host, session(7))),
            "279ea4af589bc5d80e3d7db41ae1e4e45b5c0534df973435f7c485d55ad2262b");
  EXPECT_EQ(base::to_hex(key.proof(side::root, session(7))),
            "1a97b2a53545767b7a03269a0e1c0f97e238130ab4e1622ea12403490c065cd4");
}

TEST(join_key, a_proof_is_good_in_one_session_and_one_direction_for_one_key) {
  const auto key = join_key::parse(digits).value(), other = join_key::parse(std::string(64, '0')).value();
  std::set<std::string> all;
  for (const auto* const one : {&key, &other})
    for (const auto who : {side::host, side::root})
      for (const int number : {1, 2}) {
        const auto proof = text_of(one->proof(who, session(number)));
        all.insert(proof);
        for (const auto of : {side::host, side::root})
          for (const int in : {1, 2})
            EXPECT_EQ(key.is_proof(proof, of, session(in)), one == &key && of == who && in == number);
      }
  EXPECT_EQ(all.size(), 8U);
}

TEST(join_key, what_is_no_proof_at_all_is_none) {
  const auto key = join_key::parse(digits).value();
  const auto proof = text_of(key.proof(side::host, session(1)));
  ASSERT_EQ(proof.size(), join_proof_bytes);
  for (const auto& shown :
       {std::string{}, proof.substr(1), proof.substr(0, 31), proof + "x", std::string(32, '\0')})
    EXPECT_FALSE(key.is_proof(shown, side::host, session(1)));
  for (std::size_t bit = 0; bit < 8 * proof.size(); ++bit) {
    auto changed = proof;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(key.is_proof(changed, side::host, session(1)));
  }
}

} // namespace
} // namespace dlrun::agent
