#include "actors/agent/process/launch.hpp"

#include "actors/agent/process/bootstrap.hpp"
#include "base/os_error.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <spawn.h>
#include <string_view>
#include <unistd.h>

namespace dlrun::agent {

namespace {

constexpr int first_inherited = 3;

/// Duplicates above all numbers that the child will use, so that placing one never overwrites
/// another.
result<base::unique_fd> duplicate(int fd, std::string_view what, std::size_t inherited) {
  base::unique_fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, first_inherited + static_cast<int>(inherited)));
  if (!copy)
    return base::fail_errno(fmt::format("cannot pass descriptor {} ({}) to a child process", fd, what));
  return copy;
}

/// Owns the C structures of one posix_spawn call.
class spawn_setup {
public:
  spawn_setup() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
  }
  ~spawn_setup() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  spawn_setup(const spawn_setup&) = delete;
  spawn_setup& operator=(const spawn_setup&) = delete;

  /// Standard streams, then the inherited ones from 3 on, then nothing else.
  void place_descriptors(const prepared_child& child) {
    if (child.standard_input)
      place(child.standard_input.get(), STDIN_FILENO);
    else
      posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (child.standard_output) place(child.standard_output.get(), STDOUT_FILENO);
    if (child.standard_error) place(child.standard_error.get(), STDERR_FILENO);
    int number = first_inherited;
    for (const auto& fd : child.inherit) place(fd.get(), number++);
    posix_spawn_file_actions_addclosefrom_np(&actions_, number);
  }

  void reset_signals(bool own_process_group) {
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    if (own_process_group) flags |= POSIX_SPAWN_SETPGROUP;
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_, flags);
  }

  int run(pid_t& pid, const std::string& program, char* const* arguments, char* const* environment) {
    return ::posix_spawn(&pid, program.c_str(), &actions_, &attributes_, arguments, environment);
  }

private:
  void place(int from, int to) { posix_spawn_file_actions_adddup2(&actions_, from, to); }

  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

/// Our environment as it is now, with the edits.
std::vector<std::string> edited_environment(const std::vector<environment_edit>& edits) {
  std::vector<std::string> variables;
  for (char** v = environ; v != nullptr && *v != nullptr; ++v) variables.emplace_back(*v);
  for (const auto& edit : edits) {
    const auto prefix = edit.name + "=";
    std::erase_if(variables, [&](const std::string& v) { return v.starts_with(prefix); });
    if (edit.value) variables.push_back(prefix + *edit.value);
  }
  return variables;
}

/// Whether the next try would fail as well (execve(2)): it is about the program, not about what the
/// host has left of memory and processes.
bool is_lasting(int number) {
  constexpr std::array of_the_program{E2BIG,        EACCES, EINVAL,  EISDIR,  ELIBBAD, ELOOP,
                                      ENAMETOOLONG, ENOENT, ENOEXEC, ENOTDIR, EPERM};
  return std::ranges::find(of_the_program, number) != of_the_program.end();
}

/// The null-terminated array that C wants; the strings must outlive it.
std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (auto& s : strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

result<void> take(prepared_child& child, int fd, const std::string& option, std::size_t inherited) {
  auto copy = duplicate(fd, option, inherited);
  if (!copy) return tl::unexpected(copy.error());
  if (!option.empty()) {
    child.spec.arguments.push_back(option);
    child.spec.arguments.push_back(std::to_string(first_inherited + static_cast<int>(child.inherit.size())));
  }
  child.inherit.push_back(std::move(*copy));
  return {};
}

} // namespace

result<prepared_child> prepare(child_command spec) {
  const std::size_t inherited = spec.inherit.size() + (spec.bootstrap.empty() ? 0 : 1);
  prepared_child child{std::move(spec), {}, {}, {}, {}};
  for (const auto& [fd, number, kept] :
       {std::tuple{child.spec.standard_input, "standard input", &child.standard_input},
        std::tuple{child.spec.standard_output, "standard output", &child.standard_output},
        std::tuple{child.spec.standard_error, "standard error", &child.standard_error}}) {
    if (fd < 0) continue;
    auto copy = duplicate(fd, number, inherited);
    if (!copy) return tl::unexpected(copy.error());
    *kept = std::move(*copy);
  }
  for (const auto& wanted : child.spec.inherit)
    if (auto ok = take(child, wanted.fd, wanted.option, inherited); !ok) return tl::unexpected(ok.error());
  if (child.spec.bootstrap.empty()) return child;
  const auto memory = make_bootstrap(child.spec.bootstrap);
  if (!memory) return tl::unexpected(memory.error());
  if (auto ok = take(child, memory->get(), std::string(bootstrap_option), inherited); !ok)
    return tl::unexpected(ok.error());
  return child;
}

result<pid_t> launch(const prepared_child& child) {
  const auto& program = child.spec.program;
  spawn_setup setup;
  setup.place_descriptors(child);
  setup.reset_signals(child.spec.own_process_group);
  auto words = child.spec.arguments;
  words.insert(words.begin(), program.name);
  auto variables = edited_environment(child.spec.environment);
  pid_t pid = -1;
  const int failed = setup.run(pid, program.file, pointers_to(words).data(), pointers_to(variables).data());
  if (failed == 0) return pid;
  auto why = base::fail_errno(fmt::format("cannot start the program '{}'", program.name), failed);
  if (is_lasting(failed)) why.value().code = error_code::bad_usage;
  return why;
}

} // namespace dlrun::agent
