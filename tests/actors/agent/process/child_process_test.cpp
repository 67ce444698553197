// Real child processes: what they get, how they end, and who is told.
#include "tests/actors/agent/process/child_process_fixture.hpp"

#include "actors/agent/process/bootstrap.hpp"

#include <csignal>
#include <filesystem>
#include <gmock/gmock.h>
#include <iterator>
#include <sys/mman.h>
#include <thread>

namespace dlrun::agent::testing {
namespace {

using ::testing::HasSubstr;
using clock = std::chrono::steady_clock;

TEST_F(child_processes, an_exit_code_is_reported) {
  auto child = spawn(program({"exit", "3"}));
  const auto pid = child.started.get().value();
  const auto report = child.report();
  EXPECT_EQ(report.pid, pid);
  EXPECT_FALSE(report.signaled);
  EXPECT_EQ(report.code_or_signal, 3);
  EXPECT_EQ(describe(report), "exited with code 3");
  EXPECT_EQ(describe(spawn(program({"exit", "0"})).report()), "exited with code 0");
}

TEST_F(child_processes, a_kill_is_reported_within_milliseconds) {
  output_pipe out;
  auto child = spawn_and_hear({"wait"}, out, "ready");
  const auto before = clock::now();
  ASSERT_EQ(::kill(child.started.get().value(), SIGKILL), 0);
  const auto report = child.report();
  const auto after = clock::now() - before;
  EXPECT_TRUE(report.signaled);
  EXPECT_EQ(report.code_or_signal, SIGKILL);
  EXPECT_EQ(describe(report), "killed by signal 9 (KILL)");
  EXPECT_LT(after, std::chrono::seconds(2)); // milliseconds on a machine that is not overloaded
  RecordProperty("seen_after_us", std::to_string(after / std::chrono::microseconds(1)));
}

TEST_F(child_processes, are_signalled_in_the_order_of_the_calls) {
  output_pipe out;
  auto child = spawn_and_hear({"deaf"}, out, "ready");
  EXPECT_TRUE(spawner->signal(child.id, SIGTERM)); // ignored there
  EXPECT_TRUE(spawner->signal(child.id, SIGKILL));
  EXPECT_EQ(child.report().code_or_signal, SIGKILL);
}

TEST_F(child_processes, a_signal_right_after_spawn_reaches_the_child) {
  auto child = spawn(program({"wait"}));
  EXPECT_TRUE(spawner->signal(child.id, SIGTERM));
  EXPECT_EQ(child.report().code_or_signal, SIGTERM);
}

TEST_F(child_processes, a_stopped_child_is_not_reported_but_can_be_killed) {
  output_pipe out;
  auto child = spawn_and_hear({"wait"}, out, "ready");
  EXPECT_TRUE(spawner->signal(child.id, SIGSTOP));
  EXPECT_TRUE(spawner->signal(child.id, SIGKILL));
  EXPECT_EQ(child.report().code_or_signal, SIGKILL);
}

TEST_F(child_processes, signals_to_ended_or_unknown_children_hit_nobody) {
  auto child = spawn(program({"exit", "0"}));
  child.report();
  EXPECT_TRUE(spawner->signal(child.id, SIGKILL));
  EXPECT_TRUE(spawner->signal(child_id{999}, SIGKILL));
  EXPECT_EQ(spawner->signal(child.id, 0).error().code, error_code::bad_usage);
  EXPECT_EQ(spawner->signal(child.id, 999).error().code, error_code::bad_usage);
  EXPECT_EQ(describe(spawn(program({"exit", "0"})).report()), "exited with code 0");
}

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

TEST_F(child_processes, leave_nothing_open_here_that_was_prepared_for_them) {
  output_pipe out;
  const auto before = open_descriptors();
  auto spec = program({"wait"});
  spec.bootstrap = "what it is told";
  spec.standard_output = out.write_end.get();
  const auto child = spawn(std::move(spec));
  EXPECT_EQ(out.line(), "ready"); // our write end is closed, and the child is watched by a new descriptor
  const auto deadline = clock::now() + patience;
  while (open_descriptors() != before && clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(child_processes, a_program_that_is_not_there_is_an_error_with_its_name) {
  child_command spec;
  spec.program = {"/nonexistent/dlrun", "/nonexistent/dlrun"};
  auto child = spawn(spec);
  const auto started = child.started.get();
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("/nonexistent/dlrun"));
  EXPECT_THAT(started.error().message, HasSubstr("No such file"));
}

TEST_F(child_processes, get_exactly_what_was_named_for_them) {
  const base::unique_fd leak(::open("/dev/null", O_RDONLY)); // not close-on-exec
  const base::unique_fd wanted(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  output_pipe out;
  auto spec = program({"describe"});
  spec.standard_output = out.write_end.get();
  spec.inherit = {{wanted.get(), "--first-fd"}, {wanted.get(), ""}, {wanted.get(), "--third-fd"}};
  spec.environment = {{"DLRUN_TEST_ADDED", "yes"}, {"HOME", std::nullopt}};
  spawn(std::move(spec)).report();
  EXPECT_EQ(out.line(),
            "arguments=describe,--first-fd,3,--third-fd,5 open=0,1,2,3,4,5 blocked=0 sigpipe=default "
            "leader=true null=true added=yes home=unset");
}

TEST_F(child_processes, read_what_is_named_as_their_standard_input) {
  const base::unique_fd input(::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC));
  output_pipe out;
  auto spec = program({"describe"});
  spec.standard_input = input.get();
  spec.standard_output = out.write_end.get();
  spawn(std::move(spec)).report();
  EXPECT_THAT(out.line(), ::testing::AllOf(HasSubstr("open=0,1,2 "), HasSubstr("null=false")));
}

TEST_F(child_processes, can_stay_in_our_process_group) {
  output_pipe out;
  auto spec = program({"describe"});
  spec.standard_output = out.write_end.get();
  spec.own_process_group = false;
  spawn(std::move(spec)).report();
  EXPECT_THAT(out.line(), HasSubstr("leader=false"));
}

TEST_F(child_processes, inherit_descriptors_whatever_their_numbers_here) {
  output_pipe out; // its ends have low numbers, which are the very ones that the child uses
  auto spec = program({"wait"});
  spec.standard_output = out.write_end.get();
  spec.standard_error = out.write_end.get();
  for (int fd = 5; fd >= 3; --fd)
    if (::fcntl(fd, F_GETFD) >= 0) spec.inherit.push_back({fd, ""});
  auto child = spawn(std::move(spec));
  EXPECT_EQ(out.line(), "ready");
  EXPECT_TRUE(spawner->signal(child.id, SIGKILL));
  child.report();
}

TEST_F(child_processes, a_descriptor_that_is_not_open_is_refused_at_once) {
  auto spec = program({"wait"});
  spec.inherit = {{9'999, "--fd"}};
  const auto refused = spawner->spawn(
      spec, [](auto, auto) { FAIL(); }, [](auto, const auto&) { FAIL(); });
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("9999"));
}

TEST_F(child_processes, read_their_bootstrap_data_which_is_not_in_argv) {
  std::string secret(100'000, 's');
  secret[7] = '\0';
  output_pipe out;
  auto spec = program({"bootstrap"});
  spec.standard_output = out.write_end.get();
  spec.bootstrap = secret;
  auto child = spawn(std::move(spec));
  EXPECT_EQ(out.line(), secret);
  EXPECT_EQ(describe(child.report()), "exited with code 0");
}

TEST_F(child_processes, many_at_once_are_all_seen_to_end) {
  std::vector<spawned> children;
  for (int i = 0; i < 20; ++i) children.push_back(spawn(program({"exit", std::to_string(i)})));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(children[static_cast<std::size_t>(i)].report().code_or_signal, i);
}

TEST_F(child_processes, a_callback_may_spawn_the_successor) {
  std::promise<int> second;
  const auto first = spawner->spawn(
      program({"exit", "1"}), [](auto, auto) {},
      [&](child_id, const exit_report&) {
        EXPECT_TRUE(spawner->spawn(
            program({"exit", "2"}), [](auto, auto) {},
            [&](child_id, const exit_report& report) { second.set_value(report.code_or_signal); }));
      });
  ASSERT_TRUE(first);
  EXPECT_EQ(second.get_future().get(), 2);
}

TEST_F(child_processes, end_with_their_spawner_and_are_reported) {
  output_pipe out;
  auto child = spawn_and_hear({"deaf"}, out, "ready");
  spawner.reset();
  EXPECT_EQ(child.report().code_or_signal, SIGKILL);
  EXPECT_EQ(out.line(), "(end)");
}

TEST_F(child_processes, exit_statuses_survive_an_ignored_sigchld) {
  spawner.reset();
  std::signal(SIGCHLD, SIG_IGN);
  spawner = process_spawner::create().value();
  EXPECT_EQ(spawn(program({"exit", "4"})).report().code_or_signal, 4);
}

TEST(own_executable_file, is_the_running_program_by_name) {
  EXPECT_THAT(own_executable().value().name, ::testing::EndsWith("child_process_test"));
}

TEST_F(child_processes, start_from_the_running_program_when_its_file_is_gone) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("dlrun-gone-{}", ::getpid());
  std::filesystem::create_directory(folder);
  const auto copy = folder / "a program";
  std::filesystem::copy_file(DLRUN_TEST_CHILD, copy);
  output_pipe out;
  child_command spec;
  spec.program = {copy, copy};
  spec.arguments = {"again-without-its-file", copy};
  spec.standard_output = out.write_end.get();
  auto parent = spawn(std::move(spec));
  EXPECT_EQ(out.line(), copy.string()) << "argv[0] of the grandchild";
  EXPECT_EQ(describe(parent.report()), "exited with code 0");
  std::filesystem::remove_all(folder);
}

TEST_F(child_processes, what_no_further_try_can_start_is_told_from_what_one_can) {
  for (const auto* path : {"/nonexistent/dlrun", "/etc/passwd", "/"}) {
    child_command spec;
    spec.program = {path, path};
    EXPECT_EQ(spawn(std::move(spec)).started.get().error().code, error_code::bad_usage) << path;
  }
}

TEST(bootstrap_data, cannot_be_changed_by_anyone) {
  const auto fd = make_bootstrap("hello").value();
  EXPECT_LT(::pwrite(fd.get(), "x", 1, 0), 0);
  EXPECT_LT(::ftruncate(fd.get(), 1), 0);
}

TEST(bootstrap_data, is_read_whole_and_closed) {
  auto fd = make_bootstrap("hello").value();
  const int number = fd.release();
  EXPECT_EQ(read_bootstrap(number).value(), "hello");
  EXPECT_LT(::fcntl(number, F_GETFD), 0);
}

TEST(bootstrap_data, above_its_bound_is_refused) {
  EXPECT_EQ(read_bootstrap(make_bootstrap("hello").value().release(), 4).error().code,
            error_code::limit_exceeded);
}

TEST(bootstrap_data, from_anything_else_is_refused) {
  const base::unique_fd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const base::unique_fd unsealed(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  for (const int fd : {file.get(), unsealed.get(), -1, 0, 9'999})
    EXPECT_EQ(read_bootstrap(fd).error().code, error_code::bad_usage) << fd;
  EXPECT_GE(::fcntl(file.get(), F_GETFD), 0); // not ours to close
}

} // namespace
} // namespace dlrun::agent::testing
