// A child for tests of actors/agent/process. The first argument says what it does; all output is
// one line.
#include "actors/agent/process/bootstrap.hpp"
#include "actors/agent/process/parent_bond.hpp"
#include "actors/agent/process/process_spawner.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <future>
#include <set>
#include <span>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using namespace dlrun;

void say(const std::string& text) {
  const auto line = text + "\n";
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) std::_Exit(90);
}

[[noreturn]] void wait_for_ever() {
  while (true) ::pause();
}

/// The number that follows `option`.
int number_after(std::span<const std::string> arguments, std::string_view option) {
  const auto found = std::ranges::find(arguments, option);
  return found == arguments.end() ? -1 : std::atoi((found + 1)->c_str());
}

/// What the process got: arguments, open descriptors, blocked and ignored signals, process group,
/// standard input.
int describe_self(std::span<const std::string> arguments) {
  std::set<int> open;
  for (int fd = 0; fd < 256; ++fd)
    if (::fcntl(fd, F_GETFD) >= 0) open.insert(fd);
  sigset_t blocked;
  sigprocmask(SIG_SETMASK, nullptr, &blocked);
  struct sigaction pipe_action {};
  ::sigaction(SIGPIPE, nullptr, &pipe_action);
  struct stat input {};
  struct stat null {};
  ::fstat(STDIN_FILENO, &input);
  ::stat("/dev/null", &null);
  const char* added = std::getenv("DLRUN_TEST_ADDED");
  say(fmt::format("arguments={} open={} blocked={} sigpipe={} leader={} null={} added={} home={}",
                  fmt::join(arguments, ","), fmt::join(open, ","), sigismember(&blocked, SIGTERM),
                  pipe_action.sa_handler == SIG_DFL ? "default" : "other", ::getpgrp() == ::getpid(),
                  input.st_rdev == null.st_rdev, added == nullptr ? "-" : added,
                  std::getenv("HOME") == nullptr ? "unset" : "set"));
  return 0;
}

int bind_and_wait(pid_t parent) {
  const auto bound = agent::bind_to_parent(parent);
  say(bound ? "bound" : "orphan");
  if (!bound) return 5;
  wait_for_ever();
}

/// A parent in the middle: starts a child that is bound to it, which shares its standard output.
int be_parent(const std::string& self) {
  const auto spawner = agent::process_spawner::create().value();
  agent::child_command spec;
  spec.program = {self, self};
  spec.arguments = {"bind", std::to_string(::getpid())};
  if (!spawner->spawn(
          spec, [](auto, auto) {}, [](auto, const auto&) {}))
    return 6;
  wait_for_ever();
}

/// Starts itself again, which says its name, after `file`, its own, was removed.
int start_again_without(const std::string& file) {
  std::filesystem::remove(file);
  const auto self = agent::own_executable();
  if (!self) return 9;
  const auto spawner = agent::process_spawner::create().value();
  agent::child_command spec;
  spec.program = *self;
  spec.arguments = {"name"};
  std::promise<bool> ended;
  const auto id = spawner->spawn(
      spec,
      [&](auto, const auto& pid) {
        if (!pid) ended.set_value(false);
      },
      [&](auto, const auto& report) { ended.set_value(agent::describe(report) == "exited with code 0"); });
  return id && ended.get_future().get() ? 0 : 10;
}

int watch_lifeline(int fd) {
  const auto line = agent::lifeline::watch(base::unique_fd(fd), [] {
    say("root gone");
    std::_Exit(7);
  });
  if (!line) return 8;
  say("watching");
  wait_for_ever();
}

} // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto& verb = arguments.at(0);
  if (verb == "describe") return describe_self(arguments);
  if (verb == "exit") return std::atoi(arguments.at(1).c_str());
  if (verb == "bind") return bind_and_wait(std::atoi(arguments.at(1).c_str()));
  if (verb == "again-without-its-file") return start_again_without(arguments.at(1));
  if (verb == "name") {
    say(argv[0]);
    return 0;
  }
  if (verb == "parent") return be_parent(argv[0]);
  if (verb == "lifeline") return watch_lifeline(number_after(arguments, "--lifeline-fd"));
  if (verb == "bootstrap") {
    const auto bytes = dlrun::agent::read_bootstrap(number_after(arguments, "--bootstrap-fd"));
    say(bytes ? *bytes : bytes.error().message);
    return 0;
  }
  if (verb == "deaf") std::signal(SIGTERM, SIG_IGN);
  say("ready");
  wait_for_ever();
}
