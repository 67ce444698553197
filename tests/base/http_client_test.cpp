#include "base/http_client.hpp"

#include "tests/base/scripted_server.hpp"

#include <future>
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

TEST(http_client, hands_an_answer_on_with_its_status_and_sends_others_before_and_after) {
  const test::scripted_server server([](const http_request& one) {
    return http_answer{one.url == "/gone" ? 410 : 200, one.url};
  });
  http_client client({});
  for (const auto& [path, status] : {std::pair{"/a", 200}, {"/gone", 410}}) {
    std::string taken;
    long seen = 0;
    const http_request request{.method = "GET", .url = server.endpoint() + path};
    const auto ended = client.stream(request, {.take = [&](long code, std::string_view part) {
                                       seen = code;
                                       taken += part;
                                       return true;
                                     }});
    ASSERT_TRUE(ended) << ended.error().message;
    EXPECT_EQ(ended->status, status);
    EXPECT_EQ(seen, status);
    EXPECT_EQ(taken, path);
    EXPECT_EQ(ended->body, "");
    EXPECT_EQ(client.send(request, patience)->body, path);
  }
}

TEST(http_client, breaks_a_stream_off_that_nobody_wants) {
  const test::scripted_server server([](const http_request&) { return http_answer{200, "much"}; });
  http_client client({});
  const http_request request{.method = "GET", .url = server.endpoint() + "/"};
  EXPECT_FALSE(client.stream(request, {.take = [](auto, auto) { return false; }}));
  const auto ended =
      client.stream(request, {.take = [](auto, auto) { return true; }, .goes_on = [] { return false; }});
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, error_code::interrupted);
  EXPECT_TRUE(client.send(request, patience));
}

/// Whose server says nothing is given up by the bound of silence, not by that of all of it.
TEST(http_client, gives_a_silent_stream_up) {
  std::promise<void> over;
  const test::scripted_server server([waits = over.get_future().share()](const http_request&) {
    waits.wait();
    return http_answer{200, ""};
  });
  http_client client({});
  const auto ended =
      client.stream({.method = "GET", .url = server.endpoint() + "/"},
                    {.silence_max = 1s, .lasts_max = 600s, .take = [](auto, auto) { return true; }});
  over.set_value();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, error_code::timed_out);
}

TEST(http_client, waits_for_a_connection_as_long_as_for_an_answer) {
  constexpr auto deadline = 300ms;
  const test::scripted_server server([](const http_request&) { return http_answer{200, ""}; });
  auto endpoint = server.endpoint();
  endpoint.replace(0, std::string{"http"}.size(), "https"); // whose handshake it never answers
  http_client client({});
  const auto begun = std::chrono::steady_clock::now();
  const auto sent = client.send({.method = "GET", .url = endpoint + "/"}, deadline);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, error_code::timed_out) << sent.error().message;
  EXPECT_GE(std::chrono::steady_clock::now() - begun, deadline);
}

TEST(http_client, that_nobody_answers_is_an_error_and_no_status) {
  http_client client({});
  const auto sent = client.send({.method = "GET", .url = "http://127.0.0.1:1/"}, patience);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, error_code::system);
}

} // namespace
} // namespace dlrun::base
