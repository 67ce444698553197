// Credentials that do not belong together, and rotation.
#include "security/certificate_authority.hpp"
#include "tests/security/raw_peers.hpp"

#include <gmock/gmock.h>

namespace dlrun::security {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::raw_authority;
using testing::session_pair;
using testing::shard_name;
using testing::worker_name;

class tls_context_ : public ::testing::Test {
protected:
  /// The text that refuses `what`, without a word of its key.
  static std::string refusal_of(const credentials& what) {
    const auto made = tls_context::make(what);
    EXPECT_FALSE(made);
    if (made) return "";
    EXPECT_EQ(made.error().code, error_code::bad_usage);
    const auto key = what.key_pem.reveal();
    if (key.size() > 80) {
      EXPECT_THAT(made.error().message, Not(HasSubstr(key.substr(30, 20))));
    }
    return made.error().message;
  }

  certificate_authority authority = certificate_authority::make("j1").value();
  credentials good = authority.issue(worker_name).value();
};

TEST_F(tls_context_, it_knows_whom_it_speaks_for) {
  EXPECT_EQ(tls_context::make(good).value()->name(), worker_name);
}

TEST_F(tls_context_, texts_that_are_no_pem_are_refused_and_not_repeated) {
  auto one = good;
  one.certificate_pem = "nothing";
  EXPECT_THAT(refusal_of(one), HasSubstr("the certificate is no PEM"));
  one = good;
  one.authority_pem = one.key_pem.reveal();
  EXPECT_THAT(refusal_of(one), HasSubstr("the authority's certificate is no PEM"));
  one = good;
  one.key_pem = secret_text(one.key_pem.reveal().substr(0, 120));
  EXPECT_THAT(refusal_of(one), HasSubstr("private key"));
  one = good;
  one.authority_pem += one.authority_pem;
  EXPECT_THAT(refusal_of(one), HasSubstr("more than one"));
}

TEST_F(tls_context_, what_does_not_belong_together_is_refused) {
  auto one = good;
  one.key_pem = authority.issue(worker_name).value().key_pem;
  EXPECT_THAT(refusal_of(one), HasSubstr("not that of the certificate"));
  one = good;
  one.authority_pem = certificate_authority::make("j1").value().certificate_pem();
  EXPECT_THAT(refusal_of(one), HasSubstr("not of this authority"));
  EXPECT_THAT(refusal_of(raw_authority().issue(testing::wish{"DNS:b"})), HasSubstr("not a URI"));
}

TEST_F(tls_context_, new_sessions_use_what_was_renewed_and_running_ones_go_on) {
  const auto context = tls_context::make(good).value();
  const auto other = tls_context::make(authority.issue(shard_name).value()).value();
  session_pair before(*context, *other);
  ASSERT_TRUE(before.carry());

  const certificate_authority successor = certificate_authority::make("j1").value();
  ASSERT_TRUE(context->renew(successor.issue(worker_name).value()));
  ASSERT_TRUE(before.client.write(testing::bytes_of("goes on")));
  ASSERT_TRUE(before.carry());
  EXPECT_EQ(testing::text_of(before.at_server), "goes on");

  session_pair mixed(*context, *other);
  EXPECT_THAT(mixed.carry().error().message, HasSubstr("not of this job's authority"));
  ASSERT_TRUE(other->renew(successor.issue(shard_name).value()));
  session_pair after(*context, *other);
  EXPECT_TRUE(after.carry());
  EXPECT_EQ(after.server.peer(), worker_name);
}

TEST_F(tls_context_, what_is_renewed_keeps_its_name) {
  const auto context = tls_context::make(good).value();
  const auto refused = context->renew(authority.issue(shard_name).value());
  EXPECT_EQ(refused.error().code, error_code::bad_usage);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr(describe(shard_name)), HasSubstr(describe(worker_name))));
  EXPECT_FALSE(context->renew({}));
}

// ---- a door, and who knows it by the certificate of its authority

class door_ : public tls_context_ {
protected:
  const certificate_name root_name{"j1", "agent", 0, "a"};
  std::shared_ptr<tls_context> door = tls_context::make_door(authority.issue(root_name).value()).value();
  std::shared_ptr<tls_context> client =
      tls_context::make_pinned(pin_of(authority.certificate_pem()).value(), "agent").value();
};

TEST_F(door_, lets_a_client_in_that_has_no_certificate_and_shows_it_who_it_is) {
  session_pair pair(*client, *door);
  ASSERT_TRUE(pair.carry());
  EXPECT_TRUE(pair.server.is_established());
  EXPECT_EQ(pair.client.peer(), root_name);
  ASSERT_TRUE(pair.client.write(testing::bytes_of("a secret")));
  ASSERT_TRUE(pair.carry());
  EXPECT_EQ(testing::text_of(pair.at_server), "a secret");
}

TEST_F(door_, is_not_believed_with_another_authority_of_the_same_name) {
  const auto other = certificate_authority::make("j1").value();
  const auto wrong = tls_context::make_door(other.issue(root_name).value()).value();
  session_pair pair(*client, *wrong);
  const auto refused = pair.carry();
  ASSERT_FALSE(refused);
  EXPECT_THAT(pair.client.end_of_wire().error().message, HasSubstr("is not of this job's authority"));
}

TEST_F(door_, is_not_believed_by_the_certificate_of_another_role_or_one_that_has_expired) {
  for (const auto& name :
       {certificate_name{"j1", "worker", 0, "a"}, certificate_name{"j1", "agent", 1, "a"}}) {
    session_pair pair(*client, *tls_context::make_door(authority.issue(name).value()).value());
    EXPECT_FALSE(pair.carry());
    EXPECT_THAT(pair.client.end_of_wire().error().message, HasSubstr("not the agent"));
  }
  const auto long_ago = std::chrono::system_clock::now() - std::chrono::hours{48};
  const auto expired =
      authority.issue(root_name, {.from = long_ago, .lifetime = std::chrono::hours{1}}).value();
  session_pair pair(*client, *tls_context::make_door(expired).value());
  EXPECT_FALSE(pair.carry());
  EXPECT_THAT(pair.client.end_of_wire().error().message, HasSubstr("expired"));
}

TEST_F(door_, stays_one_when_its_certificate_is_renewed) {
  ASSERT_TRUE(door->renew(authority.issue(root_name).value()));
  session_pair pair(*client, *door);
  EXPECT_TRUE(pair.carry());
  EXPECT_TRUE(pair.server.is_established());
}

TEST_F(door_, who_asks_for_certificates_lets_no_client_in_that_has_none) {
  const auto mutual = tls_context::make(authority.issue(root_name).value()).value();
  session_pair pair(*client, *mutual);
  EXPECT_FALSE(pair.carry());
  EXPECT_FALSE(pair.server.is_established());
}

// ---- two that know nothing of each other

TEST_F(door_, whoever_is_behind_it_a_client_that_verifies_nobody_talks_to) {
  const auto anybody = tls_context::make_unverified().value();
  const auto other = certificate_authority::make("j2").value();
  const auto wrong = tls_context::make_door(other.issue({"j2", "worker", 1, "x"}).value()).value();
  for (const auto& server : {door, wrong}) {
    session_pair pair(*anybody, *server);
    ASSERT_TRUE(pair.carry());
    ASSERT_TRUE(pair.client.is_established() && pair.server.is_established());
    EXPECT_EQ(pair.client.binding().value(), pair.server.binding().value());
  }
}

TEST_F(door_, what_binds_a_session_is_never_that_of_another) {
  const auto anybody = tls_context::make_unverified().value();
  std::vector<channel_binding> all;
  for (const auto& one : {anybody, anybody, client}) {
    session_pair pair(*one, *door);
    ASSERT_TRUE(pair.carry());
    all.push_back(pair.client.binding().value());
    ASSERT_TRUE(pair.client.write(testing::bytes_of("much")));
    ASSERT_TRUE(pair.carry());
    EXPECT_EQ(pair.client.binding().value(), all.back()); // it stays
    EXPECT_EQ(pair.server.binding().value(), all.back());
  }
  EXPECT_NE(all[0], all[1]);
  EXPECT_NE(all[0], all[2]);
  EXPECT_NE(all[1], all[2]);
}

TEST_F(door_, who_asks_for_certificates_lets_none_in_that_verifies_nobody) {
  const auto anybody = tls_context::make_unverified().value();
  const auto mutual = tls_context::make(authority.issue(root_name).value()).value();
  session_pair pair(*anybody, *mutual);
  EXPECT_FALSE(pair.carry());
  EXPECT_FALSE(pair.server.is_established());
}

TEST_F(door_, a_pin_is_that_of_a_certificate) {
  EXPECT_EQ(pin_of(authority.certificate_pem())->size(), 32U);
  EXPECT_FALSE(pin_of("nothing"));
}

} // namespace
} // namespace dlrun::security
