#include "cli/kubectl.hpp"

#include "actors/agent/process/bootstrap.hpp"
#include "actors/agent/process/launch.hpp"
#include "base/os_error.hpp"
#include "base/utf8.hpp"
#include "cli/kubectl_words.hpp"
#include "cli/standard_streams.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sstream>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dlrun::cli {
namespace {

constexpr int signal_base = 128; // as shells show an end by a signal
constexpr std::size_t read_bytes = 4096;
constexpr std::size_t shown_max = 4000; // of what Kubernetes says

bool is_program(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

result<int> wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return base::fail_errno("cannot wait for kubectl");
  return WIFEXITED(status) ? WEXITSTATUS(status) : signal_base + WTERMSIG(status);
}

result<pid_t> start(const std::string& path, const std::vector<std::string>& words, int input, int output,
                    int complaints) {
  agent::child_command child;
  child.program = {path, "kubectl"};
  child.arguments = words;
  child.standard_input = input;
  child.standard_output = output;
  child.standard_error = complaints;
  child.own_process_group = false; // Ctrl-C ends it too
  auto prepared = agent::prepare(std::move(child));
  if (!prepared) return tl::unexpected(prepared.error());
  std::signal(SIGCHLD, SIG_DFL); // were it ignored, nobody would learn how it ended
  return agent::launch(*prepared);
}

result<base::unique_fd> make_room(const char* name) {
  base::unique_fd made{::memfd_create(name, MFD_CLOEXEC)};
  if (!made) return base::fail_errno("cannot keep the output of kubectl");
  return made;
}

result<std::string> contents_of(int fd) {
  std::string text;
  std::array<char, read_bytes> part{};
  for (;;) {
    const auto size = ::pread(fd, part.data(), part.size(), static_cast<off_t>(text.size()));
    if (size < 0 && errno != EINTR) return base::fail_errno("cannot read the output of kubectl");
    if (size == 0) return text;
    if (size > 0) text.append(part.data(), static_cast<std::size_t>(size));
  }
}

/// Shows lines as they come.
void show_complaints(int from) {
  std::string rest;
  std::array<char, read_bytes> part{};
  const auto show_lines = [&] {
    for (auto end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
      if (!tells_exit_code(std::string_view{rest}.substr(0, end))) put(stderr, rest.substr(0, end + 1));
      rest.erase(0, end + 1);
    }
    flush(stderr);
  };
  for (;;) {
    const auto size = ::read(from, part.data(), part.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    rest.append(part.data(), static_cast<std::size_t>(size));
    show_lines();
  }
  if (!rest.empty() && !tells_exit_code(rest)) put(stderr, rest);
}

/// Without a context kubectl finds a server all the same in a pod, by what Kubernetes gives that;
/// so the context is looked for only when there is none.
error why_no_server(const kubectl& with, const error& told) {
  const auto context = with.run(words_for_context());
  if (!context || context->code == 0) return told;
  return {error_code::bad_usage,
          fmt::format("kubectl has no cluster to talk to: {}; 'kubectl config get-contexts' shows what "
                      "there is, 'kubectl config use-context NAME' takes one, and KUBECONFIG names "
                      "another file",
                      in_one_line(context->complaint))};
}

} // namespace

result<kubectl> kubectl::find() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const auto file = std::filesystem::path{folder} / "kubectl"; file.is_absolute() && is_program(file))
      return kubectl{file.string()};
  return fail(error_code::bad_usage,
              "there is no kubectl on PATH: install it, or let 'dlrun manifests' write "
              "the job, and apply that where there is one");
}

result<kubectl_answer> kubectl::run(const std::vector<std::string>& words, std::string_view input) const {
  const auto output = make_room("kubectl-output"), complaints = make_room("kubectl-complaints");
  if (!output) return tl::unexpected(output.error());
  if (!complaints) return tl::unexpected(complaints.error());
  base::unique_fd given;
  if (!input.empty()) {
    auto made = agent::make_bootstrap(input);
    if (!made) return tl::unexpected(made.error());
    given = std::move(*made);
  }
  const auto pid = start(path_, words, given.get(), output->get(), complaints->get());
  if (!pid) return tl::unexpected(pid.error());
  const auto code = wait_for(*pid);
  if (!code) return tl::unexpected(code.error());
  auto said = contents_of(output->get()), complained = contents_of(complaints->get());
  if (!said) return tl::unexpected(said.error());
  if (!complained) return tl::unexpected(complained.error());
  return kubectl_answer{*code, std::move(*said), std::move(*complained)};
}

result<int> kubectl::pass_through(const std::vector<std::string>& words) const {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return base::fail_errno("cannot make a pipe for kubectl");
  const base::unique_fd from{ends[0]};
  base::unique_fd to{ends[1]};
  flush(stdout);
  const auto pid = start(path_, words, -1, -1, to.get());
  if (!pid) return tl::unexpected(pid.error());
  to.reset();
  show_complaints(from.get());
  return wait_for(*pid);
}

result<std::string> kubectl::ask(const std::vector<std::string>& words, std::string_view what) const {
  auto answer = run(words);
  if (!answer) return tl::unexpected(answer.error());
  if (answer->code == 0) return std::move(answer->output);
  return fail(error_code::system, fmt::format("{}: {}", what, in_one_line(answer->complaint)));
}

result<kubectl> find_cluster(int minor_min) {
  auto found = kubectl::find();
  if (!found) return found;
  const auto version = found->ask(words_for_version(), "the cluster does not tell its version");
  if (!version) return tl::unexpected(why_no_server(*found, version.error()));
  if (auto fits = check_version(*version, minor_min); !fits) return tl::unexpected(fits.error());
  return found;
}

std::string in_one_line(std::string_view complaint) {
  std::string line;
  for (const char c : complaint) line += c == '\n' ? ' ' : c;
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line.empty() ? "it says nothing" : base::printable(line, shown_max);
}

} // namespace dlrun::cli
