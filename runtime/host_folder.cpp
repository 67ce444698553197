#include "runtime/host_folder.hpp"

#include "base/os_error.hpp"
#include "job/run_layout.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <sys/file.h>
#include <thread>

namespace dlrun::runtime {
namespace {

/// For the agent of an earlier start, beyond what that waits for its root.
constexpr auto folder_patience = std::chrono::seconds(5);
constexpr auto folder_retry = std::chrono::milliseconds(100);
/// What marks a folder as one of this run, and the lock of the agent that uses it.
constexpr auto run_mark = "run.id";
constexpr auto agent_lock = "agent.lock";
constexpr auto own_log_prefix = "host_agent-";

std::string run_id_of(const bootstrap::HostBundle& bundle) {
  return fmt::format("{:016x}", bundle.record().run());
}

/// Those of its folders that are not there, the outermost first.
std::vector<std::filesystem::path> missing_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> missing;
  std::error_code ignored;
  for (auto one = folder; !one.empty() && !std::filesystem::exists(one, ignored); one = one.parent_path())
    missing.push_back(one);
  std::ranges::reverse(missing);
  return missing;
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code why;
  for (std::filesystem::directory_iterator one{folder, why}, end; !why && one != end; one.increment(why))
    names.push_back(one->path().filename().string());
  return names;
}

/// Nothing is there but what every agent makes.
bool is_unused(const std::filesystem::path& folder) {
  constexpr std::array<std::string_view, 3> own{run_mark, agent_lock, run_layout::logs};
  return std::ranges::all_of(names_in(folder),
                             [&](const auto& name) { return std::ranges::find(own, name) != own.end(); }) &&
         std::ranges::all_of(names_in(folder / run_layout::logs),
                             [](const auto& name) { return name.starts_with(own_log_prefix); });
}

} // namespace

result<host_folder> host_folder::take(const bootstrap::HostBundle& bundle) {
  const std::filesystem::path path{bundle.folder()};
  host_folder taken{path, missing_of(path)};
  std::error_code why;
  std::filesystem::create_directories(path, why);
  if (why)
    return fail(error_code::bad_usage, fmt::format("host {}: cannot make the folder '{}': {}", bundle.host(),
                                                   path.string(), why.message()));
  if (auto own = taken.claim(bundle); !own) return tl::unexpected(own.error());
  std::filesystem::create_directories(path / run_layout::logs, why);
  if (auto locked = taken.lock(bundle); !locked) return tl::unexpected(locked.error());
  return taken;
}

/// A folder is used for one run: what another one left there would be taken for this one's.
result<void> host_folder::claim(const bootstrap::HostBundle& bundle) {
  const auto mark = path_ / run_mark;
  std::error_code why;
  if (std::filesystem::is_empty(path_, why) && !why) {
    is_new_ = true;
    std::ofstream stream(mark, std::ios::binary);
    stream << run_id_of(bundle) << '\n';
    if (stream.flush()) return {};
    return fail(error_code::bad_usage,
                fmt::format("host {}: cannot write to the folder '{}'", bundle.host(), path_.string()));
  }
  std::ifstream stream(mark, std::ios::binary);
  std::string there;
  if (std::getline(stream, there) && there == run_id_of(bundle)) return {};
  return fail(
      error_code::bad_usage,
      fmt::format("host {}: there is something in the folder '{}' that is not of this run: remove it, or "
                  "name another folder in the list of hosts",
                  bundle.host(), path_.string()));
}

result<void> host_folder::lock(const bootstrap::HostBundle& bundle) {
  lock_.reset(::open((path_ / agent_lock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!lock_) return base::fail_errno(fmt::format("cannot write to the folder '{}'", path_.string()));
  const auto grace = std::chrono::duration<double>(bundle.spec().cluster().orphan_grace_s());
  const auto due = std::chrono::steady_clock::now() +
                   std::chrono::duration_cast<std::chrono::milliseconds>(grace) + folder_patience;
  while (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (std::chrono::steady_clock::now() >= due)
      return fail(error_code::bad_usage,
                  fmt::format("host {}: another agent uses the folder '{}'", bundle.host(), path_.string()));
    std::this_thread::sleep_for(folder_retry);
  }
  return {};
}

void host_folder::discard_unused() const {
  if (!is_new_ || !is_unused(path_)) return;
  std::error_code ignored;
  for (const auto* one : {run_mark, agent_lock, run_layout::logs})
    std::filesystem::remove_all(path_ / one, ignored);
  for (auto one = made_.rbegin(); one != made_.rend(); ++one) std::filesystem::remove(*one, ignored);
}

} // namespace dlrun::runtime
