#include "actors/agent/snapshot_pins.hpp"

#include "actors/agent/file_failure.hpp"
#include "base/read_at.hpp"
#include "base/unique_fd.hpp"
#include "job/run_layout.hpp"

#include <algorithm>
#include <fcntl.h>
#include <unistd.h>

namespace dlrun::agent {
namespace {

namespace fs = std::filesystem;

constexpr auto snapshots_folder = "snapshots";
constexpr auto snapshot_ending = ".snap";
constexpr auto kept_ending = ".archived";

fs::path kept_of(const fs::path& store) { return store.string() + kept_ending; }

/// It is below the folder of snapshots, and leads nowhere else.
result<void> check_name(const std::string& name) {
  if (fs::path{name}.filename() == name && fs::path{name}.extension() == snapshot_ending) return {};
  return fail(error_code::bad_usage, fmt::format("'{}' is no name of a snapshot", name));
}

result<void> keep(const fs::path& store, const std::string& name) {
  if (auto fine = check_name(name); !fine) return fine;
  const auto from = store / snapshots_folder / name;
  const auto to = kept_of(store) / name;
  std::error_code ignored;
  if (fs::exists(to, ignored)) return {}; // whether the store has it still or not
  if (::link(from.c_str(), to.c_str()) == 0) return {};
  if (errno == ENOENT)
    return fail(error_code::bad_usage, fmt::format("{} is not there any more", from.string()));
  return fail_to("keep another name of", from);
}

} // namespace

result<std::vector<protocol::stored_file>> keep_snapshots(const fs::path& store,
                                                          std::span<const std::string> names) {
  std::error_code why;
  for (fs::directory_iterator at{kept_of(store), why}; !why && at != end(at); at.increment(why))
    if (std::ranges::find(names, at->path().filename().string()) == names.end()) fs::remove(at->path(), why);
  if (names.empty()) fs::remove(kept_of(store), why);
  if (!names.empty() && !fs::create_directories(kept_of(store), why) && why)
    return fail(error_code::system,
                fmt::format("cannot make '{}': {}", kept_of(store).string(), why.message()));
  for (const auto& name : names)
    if (auto kept = keep(store, name); !kept) return tl::unexpected(kept.error());
  std::vector<protocol::stored_file> all;
  fs::directory_iterator at{store / snapshots_folder, why};
  for (; !why && at != end(at); at.increment(why)) {
    std::error_code gone; // dropped meanwhile
    const auto bytes = at->file_size(gone);
    if (!gone && at->path().extension() == snapshot_ending)
      all.push_back({at->path().filename().string(), bytes, false});
  }
  if (!why) return all;
  return fail(error_code::bad_usage,
              fmt::format("cannot list the snapshots in '{}': {}", store.string(), why.message()));
}

result<std::string> read_kept_snapshot(const fs::path& store, const std::string& name, std::uint64_t offset,
                                       std::uint32_t size) {
  if (auto fine = check_name(name); !fine) return tl::unexpected(fine.error());
  if (size > protocol::store_part_bytes_max)
    return fail(error_code::limit_exceeded,
                fmt::format("{} bytes are more than the {} of a part", size, protocol::store_part_bytes_max));
  const auto path = kept_of(store) / name;
  const base::unique_fd opened{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
  if (!opened && errno == ENOENT)
    return fail(error_code::bad_usage, fmt::format("{} is not kept", path.string()));
  if (!opened) return fail_to("open", path);
  std::string bytes(size, '\0');
  const auto had = base::read_at(opened.get(), std::as_writable_bytes(std::span{bytes}), offset);
  if (!had) return fail_to("read", path);
  bytes.resize(*had);
  return bytes;
}

void drop_kept_snapshots(const fs::path& folder) {
  std::error_code ignored;
  for (fs::directory_iterator at{folder, ignored}; !ignored && at != end(at); at.increment(ignored)) {
    const auto name = at->path().filename().string();
    std::error_code stays;
    if (name.starts_with(run_layout::store_prefix) && name.ends_with(kept_ending))
      fs::remove_all(at->path(), stays);
  }
}

} // namespace dlrun::agent
