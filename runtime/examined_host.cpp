#include "runtime/examined_host.hpp"

#include "base/os_error.hpp"
#include "base/utf8.hpp"
#include "runtime/host_examination.hpp"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/mman.h>

namespace dlrun::runtime {
namespace {

using nlohmann::json;

constexpr std::size_t complaint_bytes_max = 4096;

struct pipe_ends {
  base::unique_fd from, to;
};

result<pipe_ends> make_pipe() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::fail_errno("cannot make a pipe");
  return pipe_ends{base::unique_fd{ends[0]}, base::unique_fd{ends[1]}};
}

} // namespace

result<std::unique_ptr<examined_host>> examined_host::start(agent::process_spawner& spawner,
                                                            std::vector<std::string> words,
                                                            const std::string& bundle) {
  std::unique_ptr<examined_host> made{new examined_host(spawner)};
  auto input = make_pipe();
  auto output = make_pipe();
  if (!input) return tl::unexpected(input.error());
  if (!output) return tl::unexpected(output.error());
  made->complaints_.reset(::memfd_create("dlrun-complaints", MFD_CLOEXEC));
  auto child = agent::child_of(std::move(words));
  child.standard_input = input->from.get();
  child.standard_output = output->to.get();
  child.standard_error = made->complaints_.get();
  const auto id = spawner.spawn(
      std::move(child), [](agent::child_id, const result<pid_t>&) {},
      [](agent::child_id, const agent::exit_report&) {});
  if (!id) return tl::unexpected(id.error());
  made->child_ = *id;
  made->to_ = std::move(input->to);
  made->from_ = std::move(output->from);
  output->to.reset();
  input->from.reset();
  // A bundle may be larger than a pipe's buffer, and who starts the agent may not read it for long,
  // as a shell of another host that is being reached.
  if (::fcntl(made->to_.get(), F_SETFL, O_NONBLOCK) != 0) return base::fail_errno("cannot set up a pipe");
  made->waiting_ = bundle;
  made->send_waiting();
  return made;
}

examined_host::~examined_host() {
  to_.reset(); // an agent ends with its input
  static_cast<void>(spawner_.signal(child_, SIGTERM));
}

std::string examined_host::last_complaint() const {
  std::string text(complaint_bytes_max, '\0');
  const auto end = ::lseek(complaints_.get(), 0, SEEK_END);
  const auto begin = std::max<off_t>(0, end - static_cast<off_t>(complaint_bytes_max));
  const auto got = ::pread(complaints_.get(), text.data(), text.size(), begin);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  while (text.ends_with('\n')) text.pop_back();
  return base::printable(text.substr(text.rfind('\n') + 1), complaint_bytes_max);
}

/// As much as the pipe takes now. To an agent that has ended nothing can be said: hear() tells that
/// it has.
void examined_host::send_waiting() {
  while (!waiting_.empty()) {
    const auto sent = ::write(to_.get(), waiting_.data(), waiting_.size());
    if (sent > 0) waiting_.erase(0, static_cast<std::size_t>(sent));
    if (sent >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN) waiting_.clear();
    return;
  }
}

/// Until there is something to be read, and gives the agent what waits for it meanwhile. @returns
/// timed_out.
result<void> examined_host::wait(std::chrono::steady_clock::time_point due) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(due - std::chrono::steady_clock::now()).count();
    pollfd watched[] = {{from_.get(), POLLIN, 0}, {waiting_.empty() ? -1 : to_.get(), POLLOUT, 0}};
    const int ready = left <= 0 ? 0 : ::poll(watched, 2, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return fail(error_code::timed_out, "it said nothing");
    if (watched[1].revents != 0) send_waiting();
    if (ready < 0 || watched[0].revents != 0) return {};
  }
}

result<json> examined_host::hear(std::chrono::milliseconds patience) {
  const auto due = std::chrono::steady_clock::now() + patience;
  for (;;) {
    for (auto end = heard_.find('\n'); end != std::string::npos; end = heard_.find('\n')) {
      const auto line = heard_.substr(0, end);
      heard_.erase(0, end + 1);
      if (!line.starts_with(examination_mark)) continue;
      auto said = json::parse(line.substr(examination_mark.size()), nullptr, false);
      if (said.is_object()) return said;
    }
    if (const auto there = wait(due); !there)
      return fail(there.error().code,
                  fmt::format("its agent gave no word within {} s: try the start command by hand",
                              patience.count() / 1000));
    char buffer[4096];
    const auto got = ::read(from_.get(), buffer, sizeof buffer);
    if (got > 0)
      heard_.append(buffer, static_cast<std::size_t>(got));
    else if (got == 0 || errno != EINTR)
      return fail(error_code::bad_usage,
                  fmt::format("its agent ended: {}", last_complaint().empty()
                                                         ? "it said nothing; try the start command by hand"
                                                         : last_complaint()));
  }
}

result<json> examined_host::ask(const std::string& question, std::chrono::milliseconds patience) {
  waiting_ += question + "\n";
  send_waiting();
  return hear(patience);
}

} // namespace dlrun::runtime
