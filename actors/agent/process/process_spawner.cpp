#include "actors/agent/process/process_spawner.hpp"

#include "actors/agent/process/launch.hpp"
#include "base/call_queue.hpp"
#include "base/os_error.hpp"
#include "base/service_loop.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <optional>
#include <sys/wait.h>

extern "C" { // glibc 2.36 forgets to say so itself
#include <sys/pidfd.h>
}

namespace dlrun::agent {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t commands_max = 1024;
/// How long the destructor waits for killed children; longer means that the kernel itself hangs in
/// one of them.
constexpr std::chrono::seconds reap_patience{5};

/// A start if `child` is there, else a signal.
struct command {
  child_id id;
  std::optional<prepared_child> child;
  process_spawner::started_callback on_started;
  process_spawner::exit_callback on_exit;
  int signal_number = 0;
};

struct running_child {
  child_id id;
  pid_t pid = -1;
  base::unique_fd pidfd;
  process_spawner::exit_callback on_exit;
};

/// Without this the kernel drops the exit status of every child.
void keep_exit_statuses() {
  struct sigaction now {};
  if (::sigaction(SIGCHLD, nullptr, &now) == 0 &&
      (now.sa_handler == SIG_IGN || (now.sa_flags & SA_NOCLDWAIT) != 0)) {
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    ::sigaction(SIGCHLD, &standard, nullptr);
  }
}

exit_report reap(const running_child& child) {
  siginfo_t info{};
  while (::waitid(P_PIDFD, static_cast<id_t>(child.pidfd.get()), &info, WEXITED) != 0 && errno == EINTR) {
  }
  return {child.pid, info.si_code != CLD_EXITED, info.si_status};
}

/// A descriptor that means this process until it is reaped, whatever happens to its number.
result<base::unique_fd> watchable(pid_t pid) {
  base::unique_fd pidfd(::pidfd_open(pid, 0));
  if (pidfd) return pidfd;
  auto why = base::fail_errno(fmt::format("cannot watch the child process {} (it was killed)", pid));
  ::kill(pid, SIGKILL); // not reaped yet, so the number is still its own
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return why;
}

} // namespace

class process_spawner::loop final : base::polled_service {
public:
  result<void> start() { return thread_.start("dlrun-spawner", "the process spawner", *this); }

  result<child_id> enqueue(command what) {
    if (what.child) what.id = child_id{next_id_++};
    const auto id = what.id;
    if (auto ok = commands_.add(std::move(what)); !ok) return tl::unexpected(ok.error());
    thread_.wake();
    return id;
  }

private:
  clock::time_point watch(std::vector<pollfd>& fds) override {
    for (auto& c : commands_.take()) {
      commands_.count_answered();
      execute(c);
    }
    list_children(fds);
    return clock::time_point::max();
  }

  void list_children(std::vector<pollfd>& fds) const {
    for (const auto& child : children_) fds.push_back({child.pidfd.get(), POLLIN, 0});
  }

  /// Reports the children that have ended.
  void serve(std::span<const pollfd> fds) override {
    for (const auto& fd : fds)
      if (fd.revents != 0) report_end(fd.fd);
  }

  /// Refuses the starts that still wait, and kills the children that are left.
  void end() override {
    commands_.close();
    for (auto& c : commands_.take())
      if (c.child) c.on_started(c.id, fail(error_code::interrupted, "the process spawner was stopped"));
    for (const auto& child : children_) ::pidfd_send_signal(child.pidfd.get(), SIGKILL, nullptr, 0);
    const auto patience = clock::now() + reap_patience;
    std::vector<pollfd> fds;
    while (!children_.empty() && clock::now() < patience) {
      fds.clear();
      list_children(fds);
      base::poll_until(fds, patience);
      serve(fds);
    }
  }

  void execute(command& c) {
    if (c.child)
      start_child(c);
    else if (const auto found = find(c.id); found != children_.end())
      ::pidfd_send_signal(found->pidfd.get(), c.signal_number, nullptr, 0);
  }

  void start_child(command& c) {
    const auto pid = launch(*c.child);
    if (!pid) return c.on_started(c.id, tl::unexpected(pid.error()));
    auto pidfd = watchable(*pid);
    if (!pidfd) return c.on_started(c.id, tl::unexpected(pidfd.error()));
    children_.push_back({c.id, *pid, std::move(*pidfd), std::move(c.on_exit)});
    c.on_started(c.id, *pid);
  }

  void report_end(int pidfd) {
    const auto ended = std::find_if(children_.begin(), children_.end(),
                                    [&](const running_child& child) { return child.pidfd.get() == pidfd; });
    const running_child child = std::move(*ended);
    children_.erase(ended);
    child.on_exit(child.id, reap(child));
  }

  std::vector<running_child>::iterator find(child_id id) {
    return std::find_if(children_.begin(), children_.end(),
                        [&](const running_child& child) { return child.id == id; });
  }

  base::call_queue<command> commands_{"the process spawner", "calls of the process spawner wait",
                                      commands_max};
  std::atomic<std::uint64_t> next_id_{1};
  std::vector<running_child> children_; // the thread's own
  base::service_loop thread_;
};

process_spawner::process_spawner(std::unique_ptr<loop> loop)
    : loop_(std::move(loop)) {}
process_spawner::~process_spawner() = default;

result<std::unique_ptr<process_spawner>> process_spawner::create() {
  keep_exit_statuses();
  auto made = std::make_unique<loop>();
  if (auto ok = made->start(); !ok) return tl::unexpected(ok.error());
  return std::unique_ptr<process_spawner>(new process_spawner(std::move(made)));
}

result<child_id> process_spawner::spawn(child_command spec, started_callback on_started,
                                        exit_callback on_exit) {
  auto child = prepare(std::move(spec));
  if (!child) return tl::unexpected(child.error());
  return loop_->enqueue({{}, std::move(*child), std::move(on_started), std::move(on_exit), 0});
}

result<void> process_spawner::signal(child_id child, int signal_number) {
  if (signal_number < 1 || signal_number > SIGRTMAX)
    return fail(error_code::bad_usage, fmt::format("{} is not the number of a signal", signal_number));
  return loop_->enqueue({child, std::nullopt, {}, {}, signal_number}).map([](child_id) {});
}

result<executable> own_executable() {
  constexpr auto link = "/proc/self/exe";
  constexpr std::string_view removed = " (deleted)"; // proc(5)
  std::error_code failed;
  auto name = std::filesystem::read_symlink(link, failed).string();
  if (failed)
    return base::fail_errno(
        fmt::format("cannot find the running program by {}, which its other processes are "
                    "started from (mount /proc, or set cluster.placement: threads)",
                    link),
        failed.value());
  if (name.ends_with(removed)) name.resize(name.size() - removed.size());
  // A child follows the link before it becomes another program, so to what this process runs.
  return executable{link, name};
}

} // namespace dlrun::agent
