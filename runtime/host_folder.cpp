#include "runtime/host_folder.hpp"

#include "base/atomic_file.hpp"
#include "base/small_file.hpp"
#include "base/utf8.hpp"
#include "base/write_all.hpp"
#include "job/host_mark.hpp"
#include "job/run_layout.hpp"
#include "runtime/run_files.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <fcntl.h>
#include <fmt/format.h>
#include <optional>
#include <sys/file.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace dlrun::runtime {
namespace {

/// For the agent of an earlier start, beyond what that waits for its root.
constexpr auto folder_patience = std::chrono::seconds(5);
constexpr auto folder_retry = std::chrono::milliseconds(100);
/// What marks a folder as one of this run, and the lock of the agent that uses it.
constexpr auto run_mark = run_layout::host_mark;
constexpr auto agent_lock = "agent.lock";
constexpr auto own_log_prefix = "host_agent-";
constexpr auto name_another = "name another folder in the list of hosts";
constexpr std::size_t mark_bytes = 17; // 16 digits and the end of the line
constexpr std::size_t content_bytes_max = std::size_t{64} << 10;

job::host_mark mark_of(const bootstrap::HostBundle& bundle) {
  return {bundle.record().run(), bundle.host(), bundle.root(), bundle.root_dir()};
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

/// None where there is no such folder.
result<std::vector<std::string>> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code why;
  for (std::filesystem::directory_iterator one{folder, why}, end; !why && one != end; one.increment(why))
    names.push_back(one->path().filename().string());
  if (why && why != std::errc::no_such_file_or_directory) return fail(error_code::system, why.message());
  return names;
}

/// "" where there is no such file.
result<std::string> content_of(const std::filesystem::path& file) {
  auto all = base::read_small_file(file, content_bytes_max);
  if (!all) return tl::unexpected(all.error());
  return std::move(*all).value_or("");
}

/// Nothing is there, or no more of a mark than somebody left who died or had no room while writing
/// it.
result<bool> is_unclaimed(const std::filesystem::path& folder) {
  const auto names = names_in(folder);
  if (!names) return tl::unexpected(names.error());
  if (names->empty()) return true;
  if (*names != std::vector<std::string>{run_mark}) return false;
  const auto mark = content_of(folder / run_mark);
  if (!mark) return tl::unexpected(mark.error());
  return mark->size() < mark_bytes;
}

/// @returns 0 or errno.
int write_mark(const std::filesystem::path& file, const std::string& content) {
  const base::unique_fd fd{::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
  if (!fd) return errno;
  return base::write_all(fd.get(), content) ? 0 : errno;
}

/// @param what "make", "look into" or "write to"
tl::unexpected<error> cannot_use(const bootstrap::HostBundle& bundle, std::string_view what,
                                 const std::string& why) {
  return fail(error_code::bad_usage,
              fmt::format("host {}: cannot {} the folder '{}': {}; mend that there, or {}", bundle.host(),
                          what, bundle.folder(), why, name_another));
}

/// What the agent that has the lock writes into it: for which start of a root it runs, and as which
/// host.
struct lock_holder {
  std::uint64_t root = 0;
  std::string host{};
};

std::string lock_text(const lock_holder& one) { return fmt::format("{:016x} {}\n", one.root, one.host); }

/// @returns nothing where the holder has not written it yet, or is of an earlier version.
std::optional<lock_holder> holder_of(const std::filesystem::path& lock) {
  const auto text = content_of(lock).value_or("");
  lock_holder one;
  const auto* const end = text.data() + std::min(text.size(), text.find(' '));
  const auto read = std::from_chars(text.data(), end, one.root, 16);
  if (read.ec != std::errc{} || read.ptr != end || !text.ends_with('\n')) return std::nullopt;
  one.host = text.substr(static_cast<std::size_t>(end - text.data()) + 1);
  one.host.pop_back();
  return one;
}

/// Nothing is there but what every agent makes. What cannot be looked into may have more.
bool is_unused(const std::filesystem::path& folder) {
  constexpr std::array<std::string_view, 3> own{run_mark, agent_lock, run_layout::logs};
  const auto names = names_in(folder), logs = names_in(folder / run_layout::logs);
  return names && logs &&
         std::ranges::all_of(*names,
                             [&](const auto& name) { return std::ranges::find(own, name) != own.end(); }) &&
         std::ranges::all_of(*logs, [](const auto& name) { return name.starts_with(own_log_prefix); });
}

} // namespace

result<host_folder> host_folder::take(const bootstrap::HostBundle& bundle) {
  const std::filesystem::path path{bundle.folder()};
  host_folder taken{path, missing_of(path)};
  if (auto made = taken.make(bundle); !made) {
    taken.discard_unused();
    return tl::unexpected(made.error());
  }
  return taken;
}

bool host_folder::is_of_a_run(const std::filesystem::path& folder) {
  return content_of(folder / run_mark).value_or("").size() >= mark_bytes ||
         is_unclaimed(folder).value_or(false);
}

result<void> host_folder::make(const bootstrap::HostBundle& bundle) {
  std::error_code why;
  std::filesystem::create_directories(path_, why);
  if (why) return cannot_use(bundle, "make", why.message());
  if (auto own = claim(bundle); !own) return own;
  std::filesystem::create_directories(path_ / run_layout::logs, why);
  if (why) return cannot_use(bundle, "write to", why.message());
  return lock(bundle);
}

/// A folder is used for one run: what another one left there would be taken for this one's.
result<void> host_folder::claim(const bootstrap::HostBundle& bundle) {
  const auto mark = path_ / run_mark;
  const auto own = job::to_text(mark_of(bundle));
  const auto is_free = is_unclaimed(path_);
  if (!is_free) return cannot_use(bundle, "look into", is_free.error().message);
  if (*is_free) {
    is_new_ = true;
    if (const int code = write_mark(mark, own); code != 0)
      return cannot_use(bundle, "write to", std::generic_category().message(code));
    return {};
  }
  const auto content = content_of(mark);
  if (!content) return cannot_use(bundle, "look into", content.error().message);
  if (*content == own) return {};
  if (const auto known = job::read_host_mark(path_); known && known->run == bundle.record().run()) return {};
  const bool is_used = is_locked(path_ / agent_lock);
  return fail(error_code::bad_usage,
              fmt::format("host {}: there is something in the folder '{}' that is not of this run: {}{}",
                          bundle.host(), path_.string(),
                          is_used ? "another run uses it now, so " : "remove it, or ", name_another));
}

result<void> host_folder::lock(const bootstrap::HostBundle& bundle) {
  const auto file = path_ / agent_lock;
  lock_.reset(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!lock_) return cannot_use(bundle, "write to", std::generic_category().message(errno));
  const lock_holder own{bundle.agent_process(), bundle.host()};
  const auto grace = std::chrono::duration<double>(bundle.spec().cluster().orphan_grace_s());
  const auto due = std::chrono::steady_clock::now() +
                   std::chrono::duration_cast<std::chrono::milliseconds>(grace) + folder_patience;
  while (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    const auto holder = holder_of(file);
    const bool is_of_two = holder && holder->root == own.root && holder->host != own.host;
    if (is_of_two || std::chrono::steady_clock::now() >= due)
      return refuse_shared(bundle, holder ? holder->host : "");
    std::this_thread::sleep_for(folder_retry);
  }
  // Of two agents that begin at once one may have claimed the folder, and this one has it.
  is_new_ = is_new_ || is_unused(path_);
  // Of what cannot be written another host hears later, and people nothing.
  [[maybe_unused]] const int cut = ::ftruncate(lock_.get(), 0);
  static_cast<void>(base::write_all(lock_.get(), lock_text(own)));
  const auto mark = job::to_text(mark_of(bundle)); // the root may have moved, and another host been here
  if (content_of(path_ / run_mark) != mark)
    static_cast<void>(base::write_file_atomically(path_ / run_mark, mark));
  return {};
}

/// Two hosts of a list have one folder: on one machine, or on a file system that both see.
/// @param holder the host whose agent has the lock; "": nobody knows
tl::unexpected<error> host_folder::refuse_shared(const bootstrap::HostBundle& bundle,
                                                 const std::string& holder) {
  is_new_ = false; // it is the other one's, with all that is in it
  const auto whose = holder.empty() || holder == bundle.host()
                         ? "another agent of the run"
                         : fmt::format("host {}", base::printable(holder));
  return fail(
      error_code::bad_usage,
      fmt::format("host {}: {} uses the folder '{}' too, on this machine or on a file system that both "
                  "see: each host needs its own, so {}, or with --folder of 'dlrun agent'",
                  bundle.host(), whose, path_.string(), name_another));
}

void host_folder::discard_unused() const {
  std::error_code ignored;
  if (is_new_ && !is_unused(path_)) return;
  if (is_new_)
    for (const auto* one : {run_mark, agent_lock, run_layout::logs})
      std::filesystem::remove_all(path_ / one, ignored);
  for (auto one = made_.rbegin(); one != made_.rend(); ++one) std::filesystem::remove(*one, ignored);
}

} // namespace dlrun::runtime
