#include "runtime/examined_host.hpp"

#include "runtime/host_examination.hpp"

#include <csignal>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::runtime {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

/// Larger than the buffer of any pipe.
const std::string large_bundle(std::size_t{2} << 20, 'x');

class examined_host_test : public testing::Test {
protected:
  examined_host_test()
      : before_(std::signal(SIGPIPE, SIG_IGN)) {} // as the verb does
  ~examined_host_test() override { std::signal(SIGPIPE, before_); }

  /// Its agent is this script of a shell.
  std::unique_ptr<examined_host> start(const std::string& script, const std::string& bundle) {
    auto made = examined_host::start(*spawner_, {"/bin/sh", "-c", script}, bundle);
    return std::move(made).value();
  }

private:
  void (*before_)(int);
  std::unique_ptr<agent::process_spawner> spawner_ = agent::process_spawner::create().value();
};

TEST_F(examined_host_test, an_agent_is_told_all_of_a_large_bundle_and_questions_behind_it) {
  const auto host =
      start(fmt::format("head -c {} | wc -c; read question; echo '{}{{\"asked\": \"'\"$question\"'\"}}'",
                        large_bundle.size(), examination_mark),
            large_bundle);
  EXPECT_EQ(host->ask("time", 60s).value().at("asked"), "time");
}

TEST_F(examined_host_test, one_that_reads_nothing_is_waited_for_no_longer_than_one_that_says_nothing) {
  const auto host = start("exec sleep 1000", large_bundle);
  EXPECT_EQ(host->hear(50ms).error().code, error_code::timed_out);
  EXPECT_EQ(host->ask("time", 50ms).error().code, error_code::timed_out);
}

TEST_F(examined_host_test, of_one_that_ended_the_last_words_are_told) {
  const auto host = start("echo 'no such host' >&2; exit 255", large_bundle);
  const auto heard = host->hear(60s);
  ASSERT_FALSE(heard);
  EXPECT_EQ(heard.error().code, error_code::bad_usage);
  EXPECT_THAT(heard.error().message, HasSubstr("no such host"));
  EXPECT_THAT(host->ask("time", 60s).error().message, HasSubstr("no such host"));
}

} // namespace
} // namespace dlrun::runtime
