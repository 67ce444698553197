// Strangers: each is refused, is told so, and the operator reads why.
#include "security/certificate_authority.hpp"
#include "tests/security/raw_peers.hpp"

#include <cstring>
#include <gmock/gmock.h>

namespace dlrun::security {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::AnyOf;
using testing::bytes;
using testing::bytes_of;
using ::testing::HasSubstr;
using testing::raw_authority;
using testing::raw_client;
using testing::session_pair;
using testing::shard_name;
using testing::take_wire;
using testing::wish;
using testing::worker_name;

class tls_refusal : public ::testing::Test {
protected:
  tls_session serve() const { return tls_session::start(*server, tls_session::side::server).value(); }

  /// How a server refuses a client that shows `mine`.
  error refusal_of(const std::optional<credentials>& mine, int version = TLS1_3_VERSION) const {
    raw_client client(mine, version);
    auto session = serve();
    const auto carried = carry(client, session);
    EXPECT_FALSE(carried);
    EXPECT_FALSE(session.is_established());
    return carried ? error{} : carried.error();
  }
  error refusal_of(const wish& what) const { return refusal_of(authority.issue(what)); }
  /// How a server refuses one that sends `some`.
  error refusal_of_bytes(const bytes& some) const {
    auto session = serve();
    bytes read;
    const auto fed = session.feed(some, read);
    EXPECT_FALSE(fed);
    return fed ? error{} : fed.error();
  }
  static wish named(const std::string& names) {
    wish one;
    one.names = names;
    return one;
  }
  static std::string uri(const certificate_name& name) { return "URI:" + to_uri(name); }

  raw_authority authority;
  std::shared_ptr<tls_context> server = tls_context::make(authority.issue(shard_name)).value();
};

// ---- certificates

TEST_F(tls_refusal, a_raw_client_with_a_good_certificate_is_served) {
  raw_client client(authority.issue(worker_name));
  auto session = serve();
  ASSERT_TRUE(carry(client, session));
  EXPECT_EQ(session.peer(), worker_name);
}

TEST_F(tls_refusal, no_certificate) {
  const auto why = refusal_of(std::nullopt);
  EXPECT_EQ(why.code, error_code::fenced);
  EXPECT_THAT(why.message, HasSubstr("no certificate"));
}

TEST_F(tls_refusal, a_certificate_signed_by_itself) {
  auto one = named(uri(worker_name));
  one.is_self_signed = true;
  const auto why = refusal_of(one);
  EXPECT_EQ(why.code, error_code::fenced);
  EXPECT_THAT(why.message, HasSubstr("signed by itself"));
}

TEST_F(tls_refusal, a_certificate_of_another_jobs_authority) {
  const auto other = certificate_authority::make("j1").value();
  const auto why = refusal_of(other.issue(worker_name).value());
  EXPECT_EQ(why.code, error_code::fenced);
  EXPECT_THAT(why.message, AllOf(HasSubstr(describe(worker_name)), HasSubstr("not of this job's authority")));
  EXPECT_THAT(refusal_of(raw_authority().issue(worker_name)).message,
              HasSubstr("not of this job's authority"))
      << "of the same name too";
}

TEST_F(tls_refusal, an_expired_certificate_and_one_of_tomorrow) {
  auto one = named(uri(worker_name));
  one.valid_from = -2h;
  one.valid_to = -1h;
  const auto late = refusal_of(one);
  EXPECT_EQ(late.code, error_code::fenced);
  EXPECT_THAT(late.message,
              AllOf(HasSubstr(describe(worker_name)), HasSubstr("expired at 2"), HasSubstr("UTC"),
                    HasSubstr("the clock of the root's host said 2"), HasSubstr("here it is 2")));
  one.valid_from = 1h;
  one.valid_to = 2h;
  const auto early = refusal_of(one);
  EXPECT_EQ(early.code, error_code::fenced);
  EXPECT_THAT(early.message,
              AllOf(HasSubstr("not valid before 2"), HasSubstr("the clock of the root's host said 2"),
                    HasSubstr("here it is 2"), HasSubstr("set the clock that is wrong")));
}

TEST_F(tls_refusal, a_certificate_of_another_job_by_the_same_authority) {
  const certificate_name other{"j2", "worker", 3, "b"};
  const auto why = refusal_of(named(uri(other)));
  EXPECT_EQ(why.code, error_code::fenced);
  EXPECT_THAT(why.message, AllOf(HasSubstr(describe(other)), HasSubstr("this is job j1")));
}

TEST_F(tls_refusal, a_certificate_with_another_form_of_name_or_several) {
  for (const std::string& names :
       {std::string("DNS:b"), std::string("URI:https://b/"), uri(worker_name) + "/x",
        std::string("IP:10.0.0.1"), std::string(), uri(worker_name) + "," + uri(shard_name),
        uri(worker_name) + ",DNS:b", uri(worker_name) + "," + uri(worker_name)}) {
    const auto why = refusal_of(named(names));
    EXPECT_EQ(why.code, error_code::fenced) << names;
    EXPECT_THAT(why.message, HasSubstr("name")) << names;
  }
}

TEST_F(tls_refusal, a_certificate_that_is_not_for_clients) {
  auto one = named(uri(worker_name));
  one.usage = "serverAuth";
  EXPECT_EQ(refusal_of(one).code, error_code::fenced);
}

// ---- both ends hear of it

TEST_F(tls_refusal, a_client_hears_why_it_was_refused) {
  const auto heard = [&](const wish& what) {
    const auto context = tls_context::make(authority.issue(what)).value();
    session_pair pair(*context, *server);
    EXPECT_FALSE(pair.carry());
    return pair.client.feed({}, pair.at_client).error();
  };
  auto one = named(uri(worker_name));
  one.valid_to = -1s;
  EXPECT_EQ(heard(one).code, error_code::fenced);
  EXPECT_THAT(heard(one).message,
              AllOf(HasSubstr("our certificate has expired"),
                    HasSubstr("the clock of the root's host said 2"), HasSubstr("here it is 2")));
  one.valid_from = 1h; // the other end only says that it is bad
  one.valid_to = 2h;
  EXPECT_THAT(heard(one).message, AllOf(HasSubstr("does not accept our certificate"),
                                        HasSubstr("compare that with the clock of the other end")));
  const auto other_job = heard(named(uri({"j2", "worker", 3, "b"})));
  EXPECT_EQ(other_job.code, error_code::fenced);
}

TEST_F(tls_refusal, a_client_refuses_a_server_of_another_authority_or_job) {
  const auto own = tls_context::make(authority.issue(worker_name)).value();
  const auto refusal = [&](const credentials& of_server) {
    const auto context = tls_context::make(of_server).value();
    session_pair pair(*own, *context);
    EXPECT_FALSE(pair.carry());
    EXPECT_FALSE(pair.server.is_established());
    EXPECT_FALSE(pair.server.feed({}, pair.at_server)) << "it hears of it";
    return pair.client.feed({}, pair.at_client).error();
  };
  const auto stranger = refusal(raw_authority().issue(shard_name));
  EXPECT_EQ(stranger.code, error_code::fenced);
  EXPECT_THAT(stranger.message, HasSubstr("not of this job's authority"));
  const auto other_job = refusal(authority.issue(certificate_name{"j2", "ps_shard", 0, "a"}));
  EXPECT_THAT(other_job.message, HasSubstr("this is job j1"));
}

// ---- what is no TLS 1.3

TEST_F(tls_refusal, tls_1_2) {
  const auto why = refusal_of(authority.issue(worker_name), TLS1_2_VERSION);
  EXPECT_EQ(why.code, error_code::protocol);
  EXPECT_THAT(why.message, HasSubstr("does not speak TLS 1.3"));
}

TEST_F(tls_refusal, garbage_and_other_protocols) {
  EXPECT_THAT(refusal_of_bytes(bytes_of("GET / HTTP/1.1\r\nHost: b\r\n\r\n")).message, HasSubstr("HTTP"));
  EXPECT_THAT(refusal_of_bytes(bytes_of("SSH-2.0-OpenSSH_9.2 and so on")).message,
              HasSubstr("does not speak TLS"));
  EXPECT_EQ(refusal_of_bytes(bytes(2000, std::byte{0xff})).code, error_code::protocol);
  EXPECT_EQ(refusal_of_bytes(bytes(2000)).code, error_code::protocol);
}

TEST_F(tls_refusal, records_that_are_too_long) {
  auto session = serve();
  bytes read;
  const bytes head{std::byte{22}, std::byte{3}, std::byte{1}, std::byte{0xff}, std::byte{0xff}};
  EXPECT_EQ(session.feed(head, read).error().code, error_code::protocol) << "before the record has come";
  raw_client client(authority.issue(worker_name));
  auto served = serve();
  ASSERT_TRUE(carry(client, served));
  const bytes later{std::byte{23}, std::byte{3}, std::byte{3}, std::byte{0x7f}, std::byte{0xff}};
  EXPECT_THAT(served.feed(later, read).error().message, HasSubstr("longer than TLS allows"));
}

/// A greeting that claims 120,000 bytes, in records of 4,000 that are in order.
TEST_F(tls_refusal, whoever_does_not_show_who_it_is_may_send_so_much_and_no_more) {
  auto session = serve();
  bytes read;
  std::size_t sent = 0;
  result<void> fed;
  for (bool is_first = true; fed && sent < 4 * handshake_bytes_max; is_first = false) {
    bytes record(5 + 4000);
    const unsigned char head[] = {
        22, 3, 1, 4000 / 256, 4000 % 256, 1, 120'000 / 65'536, 120'000 / 256 % 256, 120'000 % 256};
    std::memcpy(record.data(), head, is_first ? sizeof head : 5);
    fed = session.feed(record, read);
    sent += record.size();
  }
  ASSERT_FALSE(fed);
  EXPECT_EQ(fed.error().code, error_code::limit_exceeded);
  EXPECT_THAT(fed.error().message, HasSubstr("not shown who it is"));
  EXPECT_LE(sent, handshake_bytes_max + 2 * 4096);
}

TEST_F(tls_refusal, what_a_refused_client_sent_after_the_handshake_is_not_read) {
  raw_client client(std::nullopt);
  auto session = serve();
  bytes read;
  ASSERT_TRUE(session.feed(client.take(), read));
  client.feed(take_wire(session));
  client.write(bytes_of("obey"));
  EXPECT_FALSE(session.feed(client.take(), read));
  EXPECT_TRUE(read.empty());
}

} // namespace
} // namespace dlrun::security
