// dlrun drain, asked of a root that the test plays.
#include "actors/agent/control_socket.hpp"
#include "cli/verbs.hpp"
#include "tests/data/files.hpp"

#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::cli {
namespace {

using testing::HasSubstr;

class drain_verb_test : public testing::Test {
protected:
  void start_root(std::string status) {
    auto made = agent::control_server::start(
        folder.path(), [this, status = std::move(status)](const std::string& request, auto reply) {
          ++asked;
          if (request == "status") ++looks;
          reply(request == "status" ? status : R"({"host":"beta"})");
        });
    ASSERT_TRUE(made) << made.error().message;
    root = std::move(*made);
  }
  /// @returns the exit code; what it says on stderr is in `complaint`.
  int drain(std::vector<std::string> words) {
    CLI::App app;
    verb chosen;
    add_drain(app, chosen);
    words.insert(words.begin(), {"drain", folder.path().string()});
    std::ranges::reverse(words);
    app.parse(words);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = chosen();
    complaint = testing::internal::GetCapturedStderr();
    testing::internal::GetCapturedStdout();
    return code;
  }

  test::temporary_folder folder;
  std::atomic<int> asked{0};
  std::atomic<int> looks{0};
  std::string complaint;
  std::unique_ptr<agent::control_server> root;
};

TEST_F(drain_verb_test, what_can_be_no_name_of_a_host_is_refused_before_the_root_is_asked) {
  start_root("{}");
  for (const auto* name : {"\xff", "", "be ta", "beta\n", "-", "b\x1b[2J"}) {
    EXPECT_EQ(drain({"--", name}), 2) << name;
    EXPECT_THAT(complaint, HasSubstr("cannot be a host's: letters, digits"));
    EXPECT_THAT(complaint, testing::Not(HasSubstr("\x1b")));
  }
  EXPECT_EQ(drain({"\xff"}), 2);
  EXPECT_THAT(complaint, HasSubstr("\"\\xff\""));
  EXPECT_EQ(asked, 0);
}

TEST_F(drain_verb_test, a_wait_says_so_when_the_root_is_gone_between_two_looks) {
  start_root(R"({"status":"running","hosts":[{"name":"beta","state":"draining","waits_for":"worker 1"}]})");
  std::thread ending{[this] {
    while (looks < 2) std::this_thread::yield(); // the first asks whether it is drained already
    root.reset();
  }};
  EXPECT_EQ(drain({"beta", "--wait"}), 1);
  ending.join();
  EXPECT_THAT(complaint, HasSubstr("dlrun: the job ended meanwhile\n"));
}

} // namespace
} // namespace dlrun::cli
