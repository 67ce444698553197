// Two hosts are two addresses of loopback: what is not on one's own is reached by TLS.
#include "security/certificate_authority.hpp"
#include "tests/actors/link/gate_test.hpp"

#include <gmock/gmock.h>

namespace dlrun::link {
namespace {

using namespace std::chrono_literals;
using protocol::role_kind;

const peer_id the_agent{{role_kind::agent, 0}, {1}};
const peer_id worker_1{{role_kind::worker, 1}, {8}};

class remote_gatekeeper_test : public test::gate_test {
protected:
  /// A process that says it is `self`, with the certificate of `shown`.
  std::unique_ptr<gatekeeper> open(const peer_id& self, const std::string& host, const peer_id& shown) {
    const security::certificate_name name{"j1", std::string{protocol::to_string(shown.role.kind)},
                                          shown.role.index, "host"};
    auto identity = security::tls_context::make(authority.issue(name).value()).value();
    return start({.token = {{1, 2, 3}},
                  .self = self,
                  .greeting_deadline = 500ms,
                  .remote = remote_access{host, std::move(identity)}});
  }
  std::unique_ptr<gatekeeper> open(const peer_id& self, const std::string& host) {
    return open(self, host, self);
  }

  security::certificate_authority authority = security::certificate_authority::make("j1").value();
};

TEST_F(remote_gatekeeper_test, processes_of_two_hosts_reach_each_other) {
  const auto here = open(the_agent, "127.0.0.1");
  const auto there = open(worker_1, "127.0.0.2");
  const auto dialled = dial(*there, here->address(), the_agent);
  ASSERT_TRUE(dialled.has_value()) << dialled.error().message;
  EXPECT_EQ(wait_for_one().peer, worker_1);
}

TEST_F(remote_gatekeeper_test, those_of_one_host_meet_on_its_own_socket) {
  const auto here = open(the_agent, "127.0.0.1");
  const auto there = open(worker_1, "127.0.0.1");
  // Nobody listens on that port: only the name is used.
  const auto name = here->address().substr(0, here->address().find('@'));
  EXPECT_TRUE(dial(*there, name + "@127.0.0.1:1", the_agent).has_value());
}

TEST_F(remote_gatekeeper_test, a_certificate_of_another_role_opens_no_door) {
  const auto here = open(the_agent, "127.0.0.1");
  for (const auto& shown : {peer_id{{role_kind::worker, 2}, {8}}, peer_id{{role_kind::ps_shard, 1}, {8}}}) {
    const auto impostor = open(worker_1, "127.0.0.2", shown);
    EXPECT_FALSE(dial(*impostor, here->address(), the_agent).has_value());
  }
  EXPECT_EQ(count(), 0U);
}

TEST_F(remote_gatekeeper_test, nobody_talks_to_another_role_than_the_one_that_was_wanted) {
  const auto impostor = open(the_agent, "127.0.0.1", worker_1); // says that it is the agent
  const auto there = open(worker_1, "127.0.0.2");
  const auto dialled = dial(*there, impostor->address(), the_agent);
  ASSERT_FALSE(dialled.has_value());
  EXPECT_EQ(dialled.error().code, error_code::fenced);
  EXPECT_THAT(dialled.error().message, testing::HasSubstr("agent 0"));
}

TEST_F(remote_gatekeeper_test, a_host_on_which_nobody_listens_is_an_error) {
  const auto there = open(worker_1, "127.0.0.2");
  const auto dialled = dial(*there, "dlrun-gone@127.0.0.1:1", the_agent);
  ASSERT_FALSE(dialled.has_value());
  EXPECT_EQ(dialled.error().code, error_code::system);
}

} // namespace
} // namespace dlrun::link
