/// A root of a running job that a test plays, and the verbs of the command line that ask it.
#pragma once

#include "actors/agent/control_socket.hpp"
#include "cli/verbs.hpp"
#include "tests/data/files.hpp"

#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::cli {

class played_root_test : public ::testing::Test {
protected:
  using add_verb = void (*)(CLI::App&, verb&);

  /// Its answers to `status` one after the other, the last again and again; `answer` to all else.
  void start_root(std::vector<std::string> statuses, std::string answer = "{}") {
    auto made = agent::control_server::start(
        folder.path(), [this, statuses = std::move(statuses),
                        answer = std::move(answer)](const std::string& request, auto reply) {
          ++asked;
          if (request != "status") return reply(answer);
          reply(statuses.at(std::min<std::size_t>(looks++, statuses.size() - 1)));
        });
    ASSERT_TRUE(made) << made.error().message;
    root = std::move(*made);
  }
  /// The root is gone after `count` looks at its status.
  void end_root_after(std::size_t count) {
    while (looks < count) std::this_thread::yield();
    root.reset();
  }
  /// `words` begin with the name of the verb, whose first argument is the run folder.
  /// @returns the exit code; what it says is in `said` and `complaint`.
  int ask(add_verb add, std::vector<std::string> words) {
    CLI::App app;
    verb chosen;
    add(app, chosen);
    words.insert(words.begin() + 1, folder.path().string());
    std::ranges::reverse(words);
    app.parse(words);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = chosen();
    complaint = testing::internal::GetCapturedStderr();
    said = testing::internal::GetCapturedStdout();
    return code;
  }

  test::temporary_folder folder;
  std::atomic<std::size_t> asked{0};
  std::atomic<std::size_t> looks{0};
  std::string said;
  std::string complaint;
  std::unique_ptr<agent::control_server> root;
};

} // namespace dlrun::cli
