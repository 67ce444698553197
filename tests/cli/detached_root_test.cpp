#include "cli/detached_root.hpp"

#include "tests/data/files.hpp"

#include <csignal>
#include <filesystem>
#include <future>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

namespace dlrun::cli {
namespace {

using testing::ExitedWithCode;
using testing::KilledBySignal;

/// In a process of its own, as the command would: it forks, and both come back.
[[noreturn]] void run_as_command(const std::function<int(const begun_hook&)>& root) {
  std::_Exit(run_detached(false, root));
}

class detached_root_test : public testing::Test {
protected:
  detached_root_test() { std::filesystem::create_directory(folder.path() / "logs"); }

  test::temporary_folder folder;
};

TEST_F(detached_root_test, before_the_job_has_begun_its_word_and_its_code_are_those_of_the_command) {
  EXPECT_EXIT(run_as_command([](const auto&) {
                std::fputs("the data is bad\n", stderr);
                return 2;
              }),
              ExitedWithCode(2), "^the data is bad\n$");
}

TEST_F(detached_root_test, its_end_is_seen_also_where_those_of_children_were_ignored) {
  EXPECT_EXIT(
      {
        std::signal(SIGCHLD, SIG_IGN);
        run_as_command([](const auto&) { return 3; });
      },
      ExitedWithCode(3), "^$");
}

TEST_F(detached_root_test, one_that_is_killed_before_is_no_silence) {
  EXPECT_EXIT(
      run_as_command([](const auto&) { return ::raise(SIGKILL); }), ExitedWithCode(1),
      "the root of the run \\(process [0-9]+\\) was killed by signal 9 \\(KILL\\) before the job had begun");
}

TEST_F(detached_root_test, a_signal_to_the_command_ends_both) {
  EXPECT_EXIT(run_as_command([](const auto&) {
                ::kill(::getppid(), SIGTERM);
                return ::pause();
              }),
              KilledBySignal(SIGTERM), "^$");
}

TEST_F(detached_root_test, the_command_is_done_when_the_job_has_begun_whatever_comes_of_it) {
  EXPECT_EXIT(run_as_command([this](const begun_hook& begun) {
                if (!begun(folder.path())) return 2;
                std::fputs("a loss is NaN\n", stderr);
                std::fflush(stderr);
                return 1;
              }),
              ExitedWithCode(0), "^$");
}

TEST_F(detached_root_test, one_that_cannot_write_its_log_does_not_begin) {
  std::filesystem::remove(folder.path() / "logs");
  EXPECT_EXIT(run_as_command([this](const begun_hook& begun) {
                const auto done = begun(folder.path());
                if (!done) std::fputs(done.error().message.c_str(), stderr);
                return done ? 0 : 1;
              }),
              ExitedWithCode(1), "cannot write '.*logs/root.log'");
}

TEST_F(detached_root_test, a_program_that_has_threads_is_refused) {
  std::promise<void> done;
  std::thread other{[gone = done.get_future()] { gone.wait(); }};
  EXPECT_EQ(run_detached(false, [](const auto&) -> int { std::abort(); }), 2);
  done.set_value();
  other.join();
}

} // namespace
} // namespace dlrun::cli
