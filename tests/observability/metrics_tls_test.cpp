/// metrics_server for other hosts: who is let in, and files that are replaced.
#include "observability/metrics_server.hpp"
#include "tests/data/files.hpp"
#include "tests/observability/connect_to.hpp"
#include "tests/observability/watched_run.hpp"
#include "tests/security/raw_peers.hpp"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

namespace dlrun::observability {
namespace {

using security::credentials;
using security::testing::raw_authority;
using security::testing::wish;
using testing::HasSubstr;

constexpr auto address = "127.0.0.1";

wish wished(std::string names, std::string usage = "serverAuth,clientAuth") {
  wish made{.names = std::move(names)};
  made.usage = std::move(usage);
  return made;
}
const wish anybody = wished(""), server_wish = wished("IP:127.0.0.1"), for_servers = wished("", "serverAuth");
const wish expired = [] {
  auto made = wished("");
  made.valid_to = std::chrono::seconds{-30};
  return made;
}();

class metrics_tls : public ::testing::Test {
protected:
  metrics_tls() { write(own.issue(server_wish)); }

  void write(const credentials& what) const {
    write("tls.crt", what.certificate_pem);
    write("tls.key", what.key_pem.reveal());
    write("ca.crt", what.authority_pem);
  }
  void write(const char* name, const std::string& text) const {
    std::ofstream(folder.path() / name, std::ios::trunc) << text;
  }
  std::string file(const char* name) const { return (folder.path() / name).string(); }

  result<std::unique_ptr<metrics_server>> start() const {
    return metrics_server::start(
        {.address = address, .files = certificate_files{file("tls.crt"), file("tls.key"), file("ca.crt")}});
  }

  /// Scrapes as `client`, which knows servers of `trusted`. @returns the status, 0: not let in
  static int scrape(std::uint16_t port, const std::optional<credentials>& client,
                    const raw_authority& trusted) {
    const test::temporary_folder place;
    const auto put = [&](const char* name, const std::string& text) {
      std::ofstream(place.path() / name) << text;
      return (place.path() / name).string();
    };
    const auto shown = client
                           ? std::pair{put("c", client->certificate_pem), put("k", client->key_pem.reveal())}
                           : std::pair{std::string{}, std::string{}};
    httplib::SSLClient asking(address, port, shown.first, shown.second);
    asking.set_ca_cert_path(put("a", trusted.issue(anybody).authority_pem).c_str());
    asking.enable_server_certificate_verification(true);
    const auto answer = asking.Get("/metrics");
    return answer ? answer->status : 0;
  }

  test::temporary_folder folder;
  raw_authority own, other;
};

TEST_F(metrics_tls, lets_in_who_has_a_certificate_of_the_authority_and_nobody_else) {
  const auto server = start().value();
  server->serve(std::make_shared<run_metrics>(test::watched_run("run")));
  EXPECT_EQ(scrape(server->port(), own.issue(anybody), own), 200);
  EXPECT_EQ(scrape(server->port(), std::nullopt, own), 0);
  EXPECT_EQ(scrape(server->port(), other.issue(anybody), own), 0);
  EXPECT_EQ(scrape(server->port(), own.issue(for_servers), own), 0) << "which is for servers alone";
  EXPECT_EQ(scrape(server->port(), own.issue(expired), own), 0) << "expired";
  httplib::Client in_clear(address, server->port());
  EXPECT_FALSE(in_clear.Get("/metrics"));
  EXPECT_EQ(scrape(server->port(), own.issue(anybody), own), 200) << "after all of these";
}

TEST_F(metrics_tls, takes_the_files_that_are_there_when_somebody_asks) {
  const auto server = start().value();
  write(other.issue(server_wish));
  EXPECT_EQ(scrape(server->port(), other.issue(anybody), other), 200);
  EXPECT_EQ(scrape(server->port(), own.issue(anybody), own), 0) << "which is no authority any more";
  EXPECT_EQ(scrape(server->port(), own.issue(anybody), other), 0);
  write("tls.key", own.issue(anybody).key_pem.reveal());
  EXPECT_EQ(scrape(server->port(), other.issue(anybody), other), 200) << "half of a new set";
  std::filesystem::remove(file("ca.crt"));
  EXPECT_EQ(scrape(server->port(), other.issue(anybody), other), 200);
  write(own.issue(server_wish));
  EXPECT_EQ(scrape(server->port(), own.issue(anybody), own), 200);
}

TEST_F(metrics_tls, a_client_that_says_nothing_keeps_nobody_from_the_end) {
  auto server = start().value();
  const auto silent = test::connect_to(address, server->port());
  EXPECT_EQ(scrape(server->port(), own.issue(anybody), own), 200);
  server->close();
  EXPECT_EQ(server->port(), 0);
}

TEST_F(metrics_tls, refuses_files_that_do_not_serve_naming_key_and_file) {
  const auto complaint = [&] {
    const auto server = start();
    return server ? std::string{} : server.error().message;
  };
  const auto key = [](const char* name) { return std::string{"observability.prometheus_tls."} + name; };
  write("tls.key", other.issue(anybody).key_pem.reveal());
  EXPECT_EQ(complaint(), key("key_file: '") + file("tls.key") + "' is not the key of the certificate in '" +
                             file("tls.crt") + "'");
  write("tls.key", "none");
  EXPECT_THAT(complaint(), HasSubstr("has no PEM private key without a password"));
  std::filesystem::remove(file("tls.key"));
  EXPECT_THAT(complaint(), HasSubstr(key("key_file: '") + file("tls.key") +
                                     "' cannot be read (No such file or directory)"));
  write("ca.crt", "none");
  write("tls.key", other.issue(anybody).key_pem.reveal());
  EXPECT_THAT(complaint(), HasSubstr(key("ca_file: '") + file("ca.crt") + "' has no PEM certificate"));
  write("tls.crt", "");
  EXPECT_THAT(complaint(), HasSubstr(key("certificate_file: '") + file("tls.crt") +
                                     "' cannot be read (it is empty, or a folder)"));
  write("tls.crt", std::string(65 * 1024, 'x'));
  EXPECT_THAT(complaint(), HasSubstr("has more than 64 KiB"));
}

TEST_F(metrics_tls, refuses_an_address_that_is_not_of_this_host) {
  const auto server =
      metrics_server::start({.address = "203.0.113.1",
                             .files = certificate_files{file("tls.crt"), file("tls.key"), file("ca.crt")}});
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().message,
            "observability.prometheus_port: cannot listen on 203.0.113.1:0: Cannot assign requested address; "
            "choose another port or observability.prometheus_tls.address, or 0 for none");
}

} // namespace
} // namespace dlrun::observability
