#include "actors/common/progress_word.hpp"

#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace dlrun::common {
namespace {

using protocol::slot_progress;

constexpr slot_progress computed{{{7}, {2}}};
constexpr slot_progress read_ahead{{{8}, {1}}};

/// Runs `what` in a child process, on a thread of that name, and says what its word tells of its
/// end.
template <class What>
std::optional<slot_progress> slot_of_death_of(const char* thread_name, What what, int* status = nullptr) {
  auto word = progress_word::create().value();
  const pid_t child = ::fork();
  if (child == 0) {
    auto own = progress_word::open(base::unique_fd{::dup(word.fd())}).value();
    own.watch_the_end();
    own.enter(work_lane::computing, computed);
    own.enter(work_lane::reading, read_ahead);
    std::thread thread([&] {
      ::pthread_setname_np(::pthread_self(), thread_name);
      progress_word::survive_stack_overflow();
      what(own);
    });
    thread.join();
    ::_exit(0);
  }
  int ended = 0;
  ::waitpid(child, &ended, 0);
  if (status != nullptr) *status = ended;
  return word.slot_of_death({WIFSIGNALED(ended), WIFSIGNALED(ended) ? WTERMSIG(ended) : WEXITSTATUS(ended)});
}

TEST(progress_word, a_fatal_signal_of_the_computing_thread_names_its_slot_and_keeps_its_effect) {
  int status = 0;
  EXPECT_EQ(slot_of_death_of(
                "compute", [](auto&) { ::abort(); }, &status),
            computed);
  EXPECT_EQ(WTERMSIG(status), SIGABRT);
  EXPECT_EQ(slot_of_death_of(
                "compute", [](auto&) { ::raise(SIGSEGV); }, &status),
            computed);
  EXPECT_EQ(WTERMSIG(status), SIGSEGV);
  EXPECT_EQ(slot_of_death_of(
                "compute", [](auto&) { ::raise(SIGUSR1); }, &status),
            computed);
  EXPECT_EQ(WTERMSIG(status), SIGUSR1);
}

TEST(progress_word, a_thread_that_the_computing_one_started_counts_as_it) {
  EXPECT_EQ(slot_of_death_of("compute", [](auto&) { std::thread([] { ::abort(); }).join(); }), computed);
}

TEST(progress_word, who_reads_ahead_dies_of_what_he_reads) {
  EXPECT_EQ(slot_of_death_of("prefetch", [](auto&) { ::abort(); }), read_ahead);
}

TEST(progress_word, a_death_in_another_part_of_the_process_is_no_slots_doing) {
  EXPECT_EQ(slot_of_death_of("evaluation", [](auto&) { ::abort(); }), std::nullopt);
  EXPECT_EQ(slot_of_death_of("caf.worker", [](auto&) { ::exit(1); }), std::nullopt);
}

TEST(progress_word, who_is_killed_from_outside_is_no_slots_doing_whatever_the_signal) {
  for (const int number : {SIGKILL, SIGSEGV, SIGABRT, SIGUSR2}) {
    const auto killed = [number](auto&) {
      if (::fork() == 0) {
        ::kill(::getppid(), number);
        ::_exit(0);
      }
      for (;;) ::pause();
    };
    EXPECT_EQ(slot_of_death_of("compute", killed), std::nullopt) << number;
  }
}

TEST(progress_word, what_the_kernel_kills_for_want_of_memory_is) {
  auto word = progress_word::create().value();
  word.enter(work_lane::computing, computed);
  EXPECT_EQ(word.slot_of_death({true, SIGKILL, true}), computed);
  EXPECT_EQ(word.slot_of_death({true, SIGKILL, false}), std::nullopt);
}

TEST(progress_word, exit_in_the_middle_of_a_slot_counts_and_exit_elsewhere_does_not) {
  EXPECT_EQ(slot_of_death_of("compute", [](auto&) { ::exit(0); }), computed);
  EXPECT_EQ(slot_of_death_of("compute", [](auto&) { ::_exit(3); }), computed);
  EXPECT_EQ(slot_of_death_of("compute",
                             [](progress_word& word) {
                               word.leave(work_lane::computing);
                               ::exit(3);
                             }),
            std::nullopt);
}

TEST(progress_word, an_error_by_which_the_worker_ends_in_order_counts) {
  EXPECT_EQ(slot_of_death_of("main",
                             [](progress_word& word) {
                               word.note_failure();
                               ::exit(1);
                             }),
            computed);
}

TEST(progress_word, a_stack_that_runs_out_is_the_slots_doing) {
  struct deep {
    static int call(int level) { // the volatile keeps it a call
      volatile char frame[4096] = {};
      frame[level % 4096] = static_cast<char>(level);
      return level == INT32_MAX ? 0 : call(level + 1) + frame[level % 4096];
    }
  };
  EXPECT_EQ(slot_of_death_of("compute", [](auto&) { deep::call(0); }), computed);
}

TEST(progress_word, is_seen_from_outside_and_changes_its_sequence_with_what_it_is_at) {
  auto word = progress_word::create().value();
  EXPECT_EQ(word.look().at, std::nullopt);
  auto worker = progress_word::open(base::unique_fd{::dup(word.fd())}).value();
  worker.enter(work_lane::computing, {{{7}, {2}, 5}, true});
  const auto seen = word.look();
  EXPECT_EQ(seen.at, (slot_progress{{{7}, {2}, 5}, true}));
  EXPECT_EQ(word.look().sequence, seen.sequence);
  worker.enter(work_lane::computing, {{{7}, {2}, 5}, true});
  EXPECT_NE(word.look().sequence, seen.sequence);
}

TEST(progress_word, a_gpu_that_failed_is_seen_from_outside_and_no_slots_doing) {
  auto word = progress_word::create().value();
  auto worker = progress_word::open(base::unique_fd{::dup(word.fd())}).value();
  worker.enter(work_lane::computing, computed);
  EXPECT_FALSE(word.gpu_failed());
  worker.note_gpu_failure();
  EXPECT_TRUE(word.gpu_failed());
  worker.leave(work_lane::computing);
  EXPECT_EQ(word.slot_of_death({.signaled = false, .code_or_signal = 1}), std::nullopt);
}

TEST(progress_word, what_is_no_word_is_refused) {
  EXPECT_FALSE(progress_word::open(base::unique_fd{::open("/dev/null", O_RDWR)}));
}

} // namespace
} // namespace dlrun::common
