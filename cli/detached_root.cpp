#include "cli/detached_root.hpp"

#include "actors/agent/process/exit_report.hpp"
#include "base/os_error.hpp"
#include "base/unique_fd.hpp"
#include "cli/complain.hpp"

#include <array>
#include <climits>
#include <csignal>
#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dlrun::cli {
namespace {

constexpr int file_mode = 0666; // less the umask

bool has_threads() {
  std::error_code ignored;
  const std::filesystem::directory_iterator tasks{"/proc/self/task", ignored};
  return std::distance(begin(tasks), end(tasks)) > 1;
}

/// Those that end a run, but for the ignored ones (nohup, a shell's background job), and what tells
/// of the root's end: kept for a descriptor, as long as it lives.
class kept_signals {
public:
  kept_signals() {
    sigset_t kept{};
    sigemptyset(&kept);
    sigaddset(&kept, SIGCHLD);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction now {};
      if (::sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&kept, number);
    }
    std::signal(SIGCHLD, SIG_DFL); // were it ignored, nobody would learn how a child ended
    pthread_sigmask(SIG_BLOCK, &kept, &before_);
    come_.reset(::signalfd(-1, &kept, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  kept_signals(const kept_signals&) = delete;
  kept_signals& operator=(const kept_signals&) = delete;
  ~kept_signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  int descriptor() const { return come_.get(); } ///< -1 when it could not be had
  /// The number of one that came.
  std::optional<int> next() const {
    signalfd_siginfo came{};
    if (::read(come_.get(), &came, sizeof came) != sizeof came) return std::nullopt;
    return static_cast<int>(came.ssi_signo);
  }

private:
  sigset_t before_{};
  base::unique_fd come_;
};

// ---- the new process

/// It is no more part of the terminal, and ends with the command.
result<void> leave_terminal(pid_t command) {
  if (::prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) return base::fail_errno("cannot be bound to the command");
  if (::getppid() != command) return fail(error_code::interrupted, "the command has ended");
  if (::setsid() < 0) return base::fail_errno("cannot begin a session");
  const base::unique_fd nothing{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  if (!nothing || ::dup2(nothing.get(), STDIN_FILENO) < 0) return base::fail_errno("cannot open /dev/null");
  return {};
}

/// The job has begun: the root keeps going whatever becomes of the command and the terminal.
result<void> let_go(const std::filesystem::path& run_dir, base::unique_fd& told) {
  const auto file = run_dir / root_log;
  const base::unique_fd log{::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, file_mode)};
  if (!log) return base::fail_errno(fmt::format("cannot write '{}'", file.string()));
  flush(stdout);
  flush(stderr);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
    if (::dup2(log.get(), stream) < 0) return base::fail_errno("cannot leave the terminal");
  std::signal(SIGHUP, SIG_IGN);
  ::prctl(PR_SET_PDEATHSIG, 0);
  const auto& folder = run_dir.native();
  // A command that is gone by now cannot be told.
  [[maybe_unused]] const auto written = ::write(told.get(), folder.data(), folder.size());
  told.reset();
  return {};
}

int be_root(pid_t command, base::unique_fd told, const std::function<int(const begun_hook&)>& root) {
  if (const auto left = leave_terminal(command); !left) return complain(left.error());
  return root([&told](const auto& run_dir) { return let_go(run_dir, told); });
}

// ---- the command

/// The root as the command that started it sees it.
class watched_root {
public:
  watched_root(pid_t pid, base::unique_fd told)
      : pid_{pid}
      , told_{std::move(told)} {}

  /// Blocks until the job has begun or the root has ended; hands signals on meanwhile. @returns
  /// whether it has begun, and nobody wants its end.
  bool wait(const kept_signals& signals) {
    while (true) {
      std::array<pollfd, 2> watched{{{told_.get(), POLLIN, 0}, {signals.descriptor(), POLLIN, 0}}};
      if (::poll(watched.data(), watched.size(), -1) < 0) continue;
      for (auto number = signals.next(); number; number = signals.next()) on_signal(*number);
      if (watched[0].revents != 0) hear();
      if (!run_dir_.empty() && !is_stopped_) return true;
      if (end_) return false;
    }
  }

  pid_t pid() const { return pid_; }
  const std::string& run_dir() const { return run_dir_; } ///< "" as long as the job has not begun
  int end() const { return end_.value_or(0); }            ///< as waitpid() tells it
  /// The signal that was handed on last; 0 when none was.
  int handed_on() const { return handed_on_; }

private:
  void on_signal(int number) {
    if (number == SIGCHLD) {
      int status = 0;
      if (::waitpid(pid_, &status, WNOHANG) == pid_) end_ = status;
    } else if (!end_) {
      handed_on_ = number;
      is_stopped_ = is_stopped_ || number != SIGHUP; // that does not end a job that has begun
      ::kill(pid_, number);
    }
  }
  void hear() {
    std::array<char, PATH_MAX> folder{};
    const auto size = ::read(told_.get(), folder.data(), folder.size());
    if (size > 0) run_dir_.assign(folder.data(), static_cast<std::size_t>(size));
    if (size <= 0) told_.reset(); // all that comes is the root's end
  }

  pid_t pid_;
  base::unique_fd told_;
  std::string run_dir_;
  std::optional<int> end_;
  int handed_on_ = 0;
  bool is_stopped_ = false;
};

void say_begun(const watched_root& root, bool json) {
  const auto& folder = root.run_dir();
  if (json)
    return say(stdout, "{}\n",
               nlohmann::ordered_json{{"type", "detached"}, {"run_dir", folder}, {"pid", root.pid()}}.dump(
                   -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  say(stdout,
      "the job has begun and keeps going without this command, as process {}; its folder is {}\n"
      "  dlrun attach {}   shows it\n"
      "  dlrun stop {}     ends it in order\n",
      root.pid(), folder, folder, folder);
}

/// As the command itself would have ended.
int end_like(const watched_root& root) {
  if (!root.run_dir().empty())
    complain(fmt::format("the job was ended when it had just begun; '{}' says how",
                         (std::filesystem::path{root.run_dir()} / root_log).string()));
  if (WIFEXITED(root.end())) return WEXITSTATUS(root.end());
  const int signal = WTERMSIG(root.end());
  if (signal == root.handed_on()) {
    std::signal(signal, SIG_DFL);
    ::raise(signal);
  }
  return complain(
      {error_code::role_lost,
       fmt::format("the root of the run (process {}) was {} before the job had begun: nothing was "
                   "trained; where memory ran out, the system's log says so (dmesg)",
                   root.pid(), agent::describe({.signaled = true, .code_or_signal = signal}))});
}

} // namespace

int run_detached(bool json, const std::function<int(const begun_hook&)>& root) {
  if (has_threads())
    return complain(
        {error_code::bad_usage,
         "--detach makes a second process of this program, which has more than one thread by now: "
         "its main() has to call dlrun::run_command_line() before it makes any"});
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return complain(base::fail_errno("cannot make a pipe").value());
  base::unique_fd told{ends[0]}, tell{ends[1]};
  flush(stdout); // what waits in a stream would be written by both
  flush(stderr);
  std::optional<kept_signals> signals{std::in_place};
  if (signals->descriptor() < 0) return complain(base::fail_errno("cannot wait for signals").value());
  const auto command = ::getpid();
  const auto pid = ::fork();
  if (pid < 0) return complain(base::fail_errno("cannot make the process of the root").value());
  if (pid == 0) {
    signals.reset();
    told.reset();
    return be_root(command, std::move(tell), root);
  }
  tell.reset();
  watched_root started{pid, std::move(told)};
  const bool goes_on = started.wait(*signals);
  signals.reset();
  if (!goes_on) return end_like(started);
  say_begun(started, json);
  return static_cast<int>(job::exit_code::success);
}

} // namespace dlrun::cli
