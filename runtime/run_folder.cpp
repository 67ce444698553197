#include "runtime/run_folder.hpp"

#include "actors/common/patience.hpp"
#include "base/os_error.hpp"
#include "base/own_machine.hpp"
#include "base/shell_word.hpp"
#include "job/host_mark.hpp"
#include "job/run_layout.hpp"
#include "job/spec_writer.hpp"
#include "runtime/run_files.hpp"
#include "runtime/run_record.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sstream>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

namespace dlrun::runtime {
namespace {

constexpr int lock_mode = 0666; // less the umask
constexpr auto readers_pause = std::chrono::milliseconds(20);

/// What a root wrote into the lock: whoever had it last.
struct holder {
  int pid = 0;        ///< 0 when it cannot be read
  std::string host{}; ///< "" when none was written
};

holder holder_of(int lock) {
  std::array<char, 512> text{};
  const auto size = ::pread(lock, text.data(), text.size() - 1, 0);
  std::istringstream words(std::string(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0));
  holder found;
  if (!(words >> found.pid)) return {};
  words >> found.host;
  return found;
}

bool lives(int pid) { return pid > 0 && (::kill(pid, 0) == 0 || errno == EPERM); }

/// Of a file that cannot be opened. What a disk or a server lacks for a moment is no fault of who
/// asks.
error_code code_of(int why) {
  if (base::is_disk_full(why)) return error_code::disk_full;
  constexpr std::array of_user{EACCES, EPERM, EROFS, ENOENT, ENOTDIR, EISDIR, ELOOP, ENAMETOOLONG, ENXIO};
  return std::ranges::find(of_user, why) != of_user.end() ? error_code::bad_usage : error_code::system;
}

tl::unexpected<error> read_by_others(const std::filesystem::path& folder) {
  return fail(error_code::in_use,
              fmt::format("the run folder '{}' is in use, by 'dlrun export', 'evaluate' or 'predict': try "
                          "again when that is done",
                          folder.string()));
}

/// By a root.
tl::unexpected<error> in_use(const std::filesystem::path& folder, int lock) {
  const auto last = holder_of(lock);
  if (!last.host.empty() && last.host != base::host_name())
    return fail(error_code::bad_usage,
                fmt::format("the run folder '{0}' is in use by process {2} on host {1}: a run and its "
                            "journal have one root; 'dlrun stop {3}' on {1} ends it",
                            folder.string(), last.host, last.pid, base::shell_word(folder.string())));
  if (!lives(last.pid)) // it is just ending, or writes its pid
    return fail(error_code::in_use,
                fmt::format("the run folder '{}' is in use by another process: try again", folder.string()));
  return fail(error_code::bad_usage,
              fmt::format("the run folder '{0}' is in use by process {1}: 'dlrun status {2}' shows the run, "
                          "'dlrun stop {2}' ends it",
                          folder.string(), last.pid, base::shell_word(folder.string())));
}

/// Waits for those who only look, some of them at every step of a job that they follow, since a
/// root that is begun again must not end for them. Another root is not waited for.
result<void> lock_alone(const std::filesystem::path& folder, int lock) {
  const auto due = std::chrono::steady_clock::now() + common::patience_with_the_dying;
  for (;; std::this_thread::sleep_for(readers_pause)) {
    if (::flock(lock, LOCK_EX | LOCK_NB) == 0) return {};
    if (errno == EWOULDBLOCK && ::flock(lock, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      return in_use(folder, lock);
    if (errno != EWOULDBLOCK)
      return base::fail_errno(fmt::format("cannot lock '{}'", (folder / run_layout::lock).string()));
    ::flock(lock, LOCK_UN);
    if (std::chrono::steady_clock::now() >= due) return read_by_others(folder);
  }
}

/// Not inherited by the roles' processes: the lock is the root's alone, and goes when it goes.
result<base::unique_fd> lock(const std::filesystem::path& folder) {
  const auto file = folder / run_layout::lock;
  // What a link leads to is somebody else's, and is not emptied.
  base::unique_fd fd{::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, lock_mode)};
  if (!fd && errno == ELOOP)
    return fail(error_code::bad_usage,
                fmt::format("'{}' is a symbolic link, where dlrun keeps a file of its own: remove it",
                            file.string()));
  if (!fd)
    return fail(code_of(errno), fmt::format("cannot write to the run folder '{}': {}", folder.string(),
                                            std::strerror(errno)));
  if (auto alone = lock_alone(folder, fd.get()); !alone) return tl::unexpected(alone.error());
  const auto holder = fmt::format("{} {}\n", ::getpid(), base::host_name());
  // Written before what was there goes, whose room it may need. Without room it is locked as well.
  const auto written = ::pwrite(fd.get(), holder.data(), holder.size(), 0);
  if ((written < 0 && !base::is_disk_full(errno)) || ::ftruncate(fd.get(), std::max<off_t>(written, 0)) != 0)
    return fail(error_code::system,
                fmt::format("cannot write '{}': {}", file.string(), std::strerror(errno)));
  return fd;
}

tl::unexpected<error> cannot_look_into(const std::filesystem::path& folder, const std::error_code& why) {
  return fail(code_of(why.value()),
              fmt::format("cannot look into the run folder '{}': {}", folder.string(), why.message()));
}

/// A folder that was copied without its lock is nobody's.
result<base::unique_fd> lock_to_read(const std::filesystem::path& folder) {
  const auto file = folder / run_layout::lock;
  base::unique_fd fd{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (!fd && errno == ENOENT) return fd;
  if (!fd)
    return fail(code_of(errno), fmt::format("cannot read '{}': {}", file.string(), std::strerror(errno)));
  // Where files cannot be locked nobody else can have done so either.
  if (::flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) return in_use(folder, fd.get());
  return fd;
}

/// Neither the lock, nor, where there is none, a new one may be written.
bool is_write_protected(const std::filesystem::path& folder) {
  const auto lock = folder / run_layout::lock;
  const auto may_be_written = [](const std::filesystem::path& path) {
    return ::access(path.c_str(), W_OK) == 0 || (errno != EACCES && errno != EPERM && errno != EROFS);
  };
  return !may_be_written(::access(lock.c_str(), F_OK) == 0 ? lock : folder);
}

/// Either will do: spec.yaml may have been removed, and runs of dlrun 0.1 have no record.
/// @returns bad_usage when nobody can tell.
result<bool> holds_run(const std::filesystem::path& folder) {
  std::error_code why;
  const bool holds = std::filesystem::exists(folder / run_layout::record, why) ||
                     (!why && std::filesystem::exists(folder / run_layout::spec, why));
  if (why) return cannot_look_into(folder, why);
  return holds;
}

/// Names of what one has made that has not written the record yet. What is to be a file is made
/// beside it, under another ending.
bool is_of_beginning(const std::filesystem::directory_entry& entry) {
  const auto name = entry.path().filename().string();
  std::error_code why;
  // What an archive becomes is part of a run only when its record is there.
  const bool is_restored = name == run_layout::journal || name.starts_with(run_layout::store_prefix);
  if (is_restored) return std::filesystem::exists(entry.path().parent_path() / run_layout::restoring, why);
  if (name == run_layout::logs)
    return entry.is_directory(why) && std::filesystem::is_empty(entry.path(), why);
  return name == run_layout::lock || name == run_layout::write_rate || name == run_layout::spec ||
         name.starts_with(fmt::format("{}.", run_layout::spec)) ||
         name.starts_with(fmt::format("{}.", run_layout::record));
}

/// All of it but the lock, by which others see that this process is at it.
result<void> remove_beginning(const std::filesystem::path& folder) {
  std::error_code why;
  for (std::filesystem::directory_iterator at{folder, why}; !why && at != end(at); at.increment(why))
    if (at->path().filename() != run_layout::lock && at->path().filename() != run_layout::restoring)
      std::filesystem::remove_all(at->path(), why);
  if (!why) std::filesystem::remove(folder / run_layout::restoring, why); // last: it says what the rest is
  if (!why) std::filesystem::create_directories(folder / run_layout::logs, why);
  if (!why) return {};
  return fail(error_code::bad_usage, fmt::format("cannot remove what was begun in the run folder '{}': {}",
                                                 folder.string(), why.message()));
}

result<void> check_holds_no_run(const std::filesystem::path& folder) {
  const auto holds = holds_run(folder);
  if (!holds) return tl::unexpected(holds.error());
  if (!*holds) return {};
  if (holds_at_most_a_beginning(folder) && !has_root(folder))
    return fail(
        error_code::bad_usage,
        fmt::format(
            "a run was begun in '{}' by a command that was killed before there was anything to "
            "go on with: train with --or-resume, which begins anew there, remove that folder, or choose "
            "another with --run-dir",
            folder.string()));
  return fail(
      error_code::bad_usage,
      fmt::format("there is a run in '{}' already: '{}' goes on with it; for a new one choose another "
                  "folder with --run-dir, or remove it",
                  folder.string(), resume_command(folder)));
}

/// The highest folder that has to be made for this one; "" where all are there.
std::filesystem::path highest_missing(const std::filesystem::path& folder) {
  std::filesystem::path highest;
  std::error_code why; // what cannot be looked at is not there for us
  for (auto at = folder; !std::filesystem::exists(at, why) && at.has_relative_path(); at = at.parent_path())
    highest = at;
  return highest;
}

/// Removes a folder and those above it up to `highest`, as long as nothing is in them.
void remove_empty(std::filesystem::path folder, const std::filesystem::path& highest) {
  std::error_code ignored;
  for (; !highest.empty(); folder = folder.parent_path()) {
    std::filesystem::remove(folder, ignored);
    if (folder == highest) return;
  }
}

/// As "/" and "." do: it is not to be removed.
bool holds_current_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  const auto current = std::filesystem::current_path(ignored);
  const auto from_there = current.lexically_relative(std::filesystem::weakly_canonical(path, ignored));
  return !from_there.empty() && *from_there.begin() != "..";
}

/// What is there is somebody's.
result<void> check_is_free(const std::filesystem::path& folder) {
  if (auto none = check_holds_no_run(folder); !none) return none;
  std::error_code why;
  const auto kind = std::filesystem::status(folder, why).type();
  if (kind == std::filesystem::file_type::not_found) return {};
  if (kind != std::filesystem::file_type::directory && !why)
    return fail(
        error_code::bad_usage,
        fmt::format("the run folder '{}' is no folder: choose another with --run-dir", folder.string()));
  const bool is_empty = !why && std::filesystem::is_empty(folder, why);
  if (why) return cannot_look_into(folder, why);
  if (is_empty) return {};
  return fail(error_code::bad_usage,
              fmt::format("the run folder '{}' exists and is not empty: {}choose another with --run-dir",
                          folder.string(), holds_current_folder(folder) ? "" : "remove it, or "));
}

/// "process 12 of host beta"; "" when no root has the folder.
std::string describe_root(const std::filesystem::path& folder) {
  const base::unique_fd lock{::open((folder / run_layout::lock).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (!lock || !is_locked(folder / run_layout::lock)) return "";
  const auto root = holder_of(lock.get());
  return fmt::format("process {} of host {}", root.pid, root.host.empty() ? base::host_name() : root.host);
}

} // namespace

result<std::filesystem::path> find_run(const std::string& folder) {
  std::error_code why;
  const auto path = std::filesystem::absolute(folder, why);
  if (why) return cannot_look_into(folder, why);
  const auto is_run = holds_run(path);
  if (!is_run) return tl::unexpected(is_run.error());
  if (auto other = *is_run ? std::string{} : job::tell_host_folder(path); !other.empty())
    return fail(error_code::bad_usage, std::move(other));
  if (!*is_run)
    return fail(error_code::bad_usage,
                fmt::format("'{}' is not the folder of a run: there is no spec.yaml in it", path.string()));
  if (auto fine = check_run_files(path); !fine) return tl::unexpected(fine.error());
  return path;
}

bool has_root(const std::filesystem::path& folder) { return is_locked(folder / run_layout::lock); }

std::string tell_unready_root(const std::filesystem::path& folder) {
  const auto root = describe_root(folder);
  if (root.empty()) return "";
  return fmt::format(
      "the run in '{}' does not answer yet: {} prepares it; 'dlrun attach {}' waits for it, and "
      "SIGTERM to that process ends it",
      folder.string(), root, base::shell_word(folder.string()));
}

std::string tell_root_without_socket(const std::filesystem::path& folder) {
  std::error_code ignored;
  const auto socket = folder / run_layout::control_socket;
  const base::unique_fd lock{::open((folder / run_layout::lock).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  // Who reads the folder has it locked too, and leaves the number of the root as it was.
  if (!lock || std::filesystem::exists(socket, ignored) || !lives(holder_of(lock.get()).pid)) return "";
  const auto root = describe_root(folder);
  if (root.empty()) return "";
  return fmt::format(
      "the run in '{}' goes on in {}, which cannot be asked: '{}' is not there, since somebody "
      "has removed it, or since the root is in another network namespace; SIGTERM to that "
      "process ends the run in order",
      folder.string(), root, socket.string());
}

std::filesystem::path place_for_run(const std::string& wanted, const spec::JobSpec& spec) {
  std::error_code ignored;
  return std::filesystem::absolute(
      wanted.empty() ? std::filesystem::path{"runs"} / spec.name() : std::filesystem::path{wanted}, ignored);
}

bool holds_at_most_a_beginning(const std::filesystem::path& folder) {
  std::error_code why;
  if (!std::filesystem::exists(folder, why)) return !why;
  for (std::filesystem::directory_iterator at{folder, why}; !why && at != end(at); at.increment(why))
    if (!is_of_beginning(*at)) return false;
  return !why;
}

result<void> run_folder::create_folders(const std::filesystem::path& path) {
  const auto highest = highest_missing(path / run_layout::logs);
  std::error_code why;
  std::filesystem::create_directories(path / run_layout::logs, why);
  const bool is_closed = !why && !highest.empty() && ::access(path.c_str(), R_OK | W_OK | X_OK) != 0;
  if (!why && !is_closed) return {};
  remove_empty(path / run_layout::logs, highest);
  if (is_closed)
    return fail(error_code::bad_usage,
                fmt::format("the run folder '{}' would be closed to the user that makes it: let the umask "
                            "leave its owner all rights, as 022 does",
                            path.string()));
  return fail(error_code::bad_usage,
              fmt::format("cannot create the run folder '{}': {}; choose another with --run-dir",
                          path.string(), why.message()));
}

result<run_folder> run_folder::create(const std::string& wanted, const spec::JobSpec& spec,
                                      torn_beginning torn) {
  const auto path = place_for_run(wanted, spec);
  const bool is_torn = torn == torn_beginning::removed && holds_at_most_a_beginning(path);
  if (!is_torn)
    if (auto fine = check_is_free(path); !fine) return tl::unexpected(fine.error());
  const auto highest = highest_missing(path / run_layout::logs);
  if (auto made = create_folders(path); !made) return tl::unexpected(made.error());
  auto held = lock(path);
  std::error_code ignored;
  if (!held && !std::filesystem::exists(path / run_layout::lock, ignored)) // else it is another process's
    remove_empty(path / run_layout::logs, highest);
  if (!held) return tl::unexpected(held.error());
  if (is_torn && holds_at_most_a_beginning(path))
    if (auto removed = remove_beginning(path); !removed) return tl::unexpected(removed.error());
  // Who was quicker may be done already.
  if (auto none = check_holds_no_run(path); !none) return tl::unexpected(none.error());
  run_folder made{path, std::move(*held)};
  made.highest_made_ = highest;
  if (auto written = job::write_spec_file(made.spec_file(), spec); !written) {
    made.abandon();
    return tl::unexpected(written.error());
  }
  return made;
}

void run_folder::abandon() const {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  remove_empty(path_ / run_layout::logs, highest_made_);
}

result<run_folder> run_folder::open(const std::string& folder) {
  const auto path = find_run(folder);
  if (!path) return tl::unexpected(path.error());
  auto held = lock(*path);
  if (!held) return tl::unexpected(held.error());
  return run_folder{*path, std::move(*held)};
}

result<run_folder> run_folder::open_to_resume(const std::string& folder) {
  auto opened = open(folder);
  if (opened || !is_write_protected(folder)) return opened;
  auto to_read = open_to_read(folder);
  if (!to_read) return opened;
  to_read->unwritable_ = opened.error();
  return to_read;
}

result<void> run_folder::check_writable() const {
  if (unwritable_) return tl::unexpected(*unwritable_);
  return {};
}

result<run_folder> run_folder::open_to_read(const std::string& folder) {
  const auto path = find_run(folder);
  if (!path) return tl::unexpected(path.error());
  auto held = lock_to_read(*path);
  if (!held) return tl::unexpected(held.error());
  return run_folder{*path, std::move(*held)};
}

result<run_folder> run_folder::of_own_root(const std::filesystem::path& folder) {
  auto path = find_run(folder.string());
  if (!path) return tl::unexpected(path.error());
  return run_folder{*std::move(path), {}};
}

std::filesystem::path run_folder::spec_file(std::size_t revision) const {
  return path_ / (revision == 0 ? std::string{run_layout::spec} : fmt::format("spec.{}.yaml", revision));
}

std::vector<std::filesystem::path> run_folder::spec_files() const {
  std::vector<std::filesystem::path> all{spec_file()};
  std::error_code ignored;
  while (std::filesystem::exists(spec_file(all.size()), ignored)) all.push_back(spec_file(all.size()));
  return all;
}

} // namespace dlrun::runtime
