#include "observability/metrics_server.hpp"

#include "tests/observability/connect_to.hpp"
#include "tests/observability/watched_run.hpp"

#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

namespace dlrun::observability {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// The whole answer, up to the end of the connection.
std::string get(std::uint16_t port, const std::string& path) {
  const auto fd = test::connect_to("127.0.0.1", port);
  const auto request = "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
  if (!fd || ::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return "";
  std::string answer;
  char part[4096];
  for (auto size = ::recv(fd.get(), part, sizeof part, 0); size > 0;
       size = ::recv(fd.get(), part, sizeof part, 0))
    answer.append(part, static_cast<std::size_t>(size));
  return answer;
}

TEST(metrics_server, serves_the_run_as_text) {
  const auto server = metrics_server::start({}).value();
  const auto metrics = std::make_shared<run_metrics>(test::watched_run("run"));
  metrics->update(test::at_step(20), test::begin);
  server->serve(metrics);
  const auto answer = get(server->port(), "/metrics");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain"));
  EXPECT_THAT(answer, HasSubstr("# TYPE dlrun_step gauge\ndlrun_step 20\n"));
  metrics->update(test::at_step(21), test::begin);
  EXPECT_THAT(get(server->port(), "/metrics"), HasSubstr("\ndlrun_step 21\n"));
}

TEST(metrics_server, serves_nothing_else) {
  const auto server = metrics_server::start({}).value();
  server->serve(std::make_shared<run_metrics>(test::watched_run("run")));
  for (const auto* path : {"/", "/../etc/passwd", "/metric"})
    EXPECT_THAT(get(server->port(), path), StartsWith("HTTP/1.1 404")) << path;
}

TEST(metrics_server, listens_on_127_0_0_1_alone) {
  const auto server = metrics_server::start({}).value();
  EXPECT_TRUE(test::connect_to("127.0.0.1", server->port()));
  EXPECT_FALSE(test::connect_to("127.0.0.2", server->port())) << "which is this host too";
}

TEST(metrics_server, a_port_in_use_is_refused_naming_it_and_the_way_out) {
  const auto first = metrics_server::start({}).value();
  const auto second = metrics_server::start({.port = first->port()});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, error_code::bad_usage);
  EXPECT_THAT(second.error().message,
              HasSubstr("observability.prometheus_port: cannot listen on 127.0.0.1:" +
                        std::to_string(first->port()) + ": Address already in use; choose another"));
}

TEST(metrics_server, a_port_is_free_again_when_it_is_closed) {
  const auto server = metrics_server::start({}).value();
  server->serve(std::make_shared<run_metrics>(test::watched_run("run")));
  const auto port = server->port();
  get(port, "/metrics");
  server->close();
  EXPECT_EQ(server->port(), 0);
  EXPECT_FALSE(test::connect_to("127.0.0.1", port));
  EXPECT_TRUE(metrics_server::start({.port = port}));
}

TEST(metrics_server, leaves_the_signal_mask_of_the_program_alone) {
  sigset_t before{}, after{};
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  const auto server = metrics_server::start({});
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (const int one : {SIGINT, SIGTERM, SIGPIPE})
    EXPECT_EQ(sigismember(&after, one), sigismember(&before, one)) << one;
}

} // namespace
} // namespace dlrun::observability
