#include "base/http_client.hpp"

#include "tests/base/scripted_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::base {
namespace {

using testing::Contains;
using testing::Not;
using testing::StartsWith;
using namespace std::chrono_literals;

constexpr auto patience = 5s;

TEST(http_client, sends_each_method_with_its_headers_and_its_body) {
  ASSERT_TRUE(http_client::check_installed("this test"));
  std::vector<http_request> asked;
  const test::scripted_server server([&](const http_request& one) {
    asked.push_back(one);
    return http_answer{200, "yes"};
  });
  http_client client({});
  for (const auto* method : {"POST", "GET", "PATCH", "DELETE", "GET"})
    ASSERT_EQ(client
                  .send({.method = method,
                         .url = server.endpoint() + "/a?b=c",
                         .headers = {"Authorization: me"},
                         .body = method == std::string_view{"GET"} ? "" : "body"},
                        patience)
                  ->body,
              "yes");
  ASSERT_EQ(asked.size(), 5U);
  EXPECT_EQ(asked[2].method, "PATCH");
  for (const auto& one : asked) {
    EXPECT_EQ(one.url, "/a?b=c");
    EXPECT_EQ(one.body, one.method == "GET" ? "" : "body") << one.method;
    EXPECT_THAT(one.headers, Contains("Authorization: me"));
    EXPECT_THAT(one.headers, Not(Contains(StartsWith("Expect"))));
  }
}

TEST(http_client, hands_on_how_patient_the_server_wants_it_to_be_each_time) {
  int asked = 0;
  const test::scripted_server server([&](const http_request&) {
    return ++asked == 1 ? http_answer{429, "", 7s} : http_answer{200, ""};
  });
  http_client client({});
  const http_request request{.method = "GET", .url = server.endpoint() + "/"};
  const auto first = client.send(request, patience);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->status, 429);
  EXPECT_EQ(first->retry_after, 7s);
  EXPECT_EQ(client.send(request, patience)->retry_after, std::nullopt);
}

TEST(http_client, that_nobody_answers_is_an_error_and_no_status) {
  http_client client({});
  const auto sent = client.send({.method = "GET", .url = "http://127.0.0.1:1/"}, patience);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, error_code::system);
}

} // namespace
} // namespace dlrun::base
