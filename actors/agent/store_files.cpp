#include "actors/agent/store_files.hpp"

#include "actors/agent/file_failure.hpp"
#include "base/look_for.hpp"
#include "base/read_at.hpp"
#include "base/unique_fd.hpp"
#include "base/write_all.hpp"

#include <algorithm>
#include <fcntl.h>
#include <fmt/format.h>
#include <set>
#include <span>
#include <unistd.h>

namespace dlrun::agent {
namespace {

namespace fs = std::filesystem;
using protocol::store_part_bytes_max;

/// Of a message, with room for what is around them.
constexpr std::size_t listing_bytes_max = std::size_t{48} << 10;
constexpr std::size_t file_overhead = 16;
constexpr mode_t store_file_mode = 0644;

result<void> check_inside(const std::string& path) {
  const fs::path parts{path};
  if (!path.empty() && parts.is_relative() && parts.lexically_normal() == parts && *parts.begin() != ".." &&
      parts.has_filename() && parts != ".")
    return {};
  return fail(error_code::bad_usage, fmt::format("'{}' is no path of a file in a store", path));
}

result<void> sync(const fs::path& path) {
  const base::unique_fd opened{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!opened || ::fsync(opened.get()) != 0) return fail_to("make durable", path);
  return {};
}

fs::path old(const fs::path& store) { return store.string() + ".old"; }

result<void> move(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return fail_to("give its place to", from);
  return {};
}

} // namespace

result<std::vector<protocol::stored_file>> list_store(const fs::path& store) {
  std::vector<protocol::stored_file> files;
  std::size_t size = 0;
  std::error_code why;
  for (fs::recursive_directory_iterator at{store, why}, end; !why && at != end; at.increment(why)) {
    const bool is_folder = at->is_directory(why);
    const bool is_file = !why && !is_folder && at->is_regular_file(why);
    if (why) break; // what cannot be looked at is not left out
    if (!is_folder && !is_file) continue;
    const auto bytes = is_folder ? 0 : at->file_size(why);
    if (why) break;
    files.push_back({at->path().lexically_relative(store).string(), bytes, is_folder});
    size += files.back().path.size() + file_overhead;
  }
  if (why)
    return fail(error_code::bad_usage, fmt::format("cannot list {}: {}", store.string(), why.message()));
  if (size > listing_bytes_max)
    return fail(
        error_code::limit_exceeded,
        fmt::format("{} has {} files, and a message has no room for so many", store.string(), files.size()));
  std::ranges::sort(files, {}, &protocol::stored_file::path);
  return files;
}

result<std::string> read_store_part(const fs::path& store, const protocol::store_part_wanted& wanted) {
  if (auto inside = check_inside(wanted.path); !inside) return tl::unexpected(inside.error());
  if (wanted.size > store_part_bytes_max)
    return fail(error_code::limit_exceeded,
                fmt::format("{} bytes are more than the {} of a part", wanted.size, store_part_bytes_max));
  const auto path = store / wanted.path;
  const base::unique_fd opened{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
  if (!opened) return fail_to("open", path);
  std::string bytes(wanted.size, '\0');
  const auto had = base::read_at(opened.get(), std::as_writable_bytes(std::span{bytes}), wanted.offset);
  if (!had) return fail_to("read", path);
  if (*had < bytes.size())
    return fail(error_code::bad_usage,
                fmt::format("{} has no {} bytes at {}", path.string(), wanted.size, wanted.offset));
  return bytes;
}

result<void> set_store_aside(const fs::path& store) {
  const auto is_there = base::look_for(store), has_older = base::look_for(old(store));
  if (!is_there || !has_older) return tl::unexpected((is_there ? has_older : is_there).error());
  if (!*is_there) return {};
  std::error_code ignored;
  const fs::path oldest = old(store).string() + ".old";
  fs::remove_all(oldest, ignored);
  if (*has_older) // it goes when the newer one has its place
    if (auto moved = move(old(store), oldest); !moved) return moved;
  if (auto moved = move(store, old(store)); !moved) return moved;
  fs::remove_all(oldest, ignored);
  return {};
}

result<bool> has_store_aside(const fs::path& store) {
  const auto is_there = base::look_for(store);
  if (!is_there || *is_there) return is_there.map([](bool) { return false; });
  return base::look_for(old(store));
}

result<bool> take_store_back(const fs::path& store) {
  auto is_aside = has_store_aside(store);
  if (!is_aside || !*is_aside) return is_aside;
  if (auto moved = move(old(store), store); !moved) return tl::unexpected(moved.error());
  return true;
}

result<store_intake> store_intake::begin(fs::path store, ps_shard_id shard,
                                         std::vector<protocol::stored_file> files) {
  for (const auto& one : files)
    if (auto inside = check_inside(one.path); !inside) return tl::unexpected(inside.error());
  store_intake made{std::move(store), shard, std::move(files)};
  if (auto there = made.make_files(); !there) return tl::unexpected(there.error());
  return made;
}

/// Empty, each in its folder.
result<void> store_intake::make_files() {
  std::error_code why;
  fs::remove_all(part(), why);
  for (const auto& one : files_) {
    const auto path = part() / one.path;
    fs::create_directories(one.is_folder ? path : path.parent_path(), why);
    if (one.is_folder) continue;
    const base::unique_fd made{
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, store_file_mode)};
    if (!made) return fail_to("make", path);
    bytes_ += one.bytes;
  }
  missing_ = bytes_;
  return {};
}

void store_intake::discard() const {
  std::error_code ignored;
  fs::remove_all(part(), ignored);
}

std::optional<protocol::store_part_wanted> store_intake::next() {
  while (file_ < files_.size() && offset_ == files_[file_].bytes) {
    ++file_;
    offset_ = 0;
  }
  if (file_ == files_.size()) return std::nullopt;
  const auto& file = files_[file_];
  const auto size =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(file.bytes - offset_, store_part_bytes_max));
  protocol::store_part_wanted wanted{shard_, file.path, offset_, size};
  offset_ += size;
  return wanted;
}

result<void> store_intake::add(const protocol::store_part_wanted& wanted, std::string_view bytes) {
  if (bytes.size() != wanted.size)
    return fail(error_code::protocol, fmt::format("{} bytes came of the {} at {} of {}", bytes.size(),
                                                  wanted.size, wanted.offset, wanted.path));
  const auto path = part() / wanted.path;
  const base::unique_fd opened{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
  if (!opened || !base::write_all_at(opened.get(), bytes, wanted.offset)) return fail_to("write", path);
  missing_ -= bytes.size();
  return {};
}

result<void> store_intake::finish() const {
  std::set<fs::path> folders{part()};
  for (const auto& one : files_) {
    const auto path = part() / one.path;
    if (auto kept = sync(path); !kept) return kept;
    for (auto folder = path.parent_path(); folders.insert(folder).second;) folder = folder.parent_path();
  }
  for (const auto& folder : folders)
    if (auto kept = sync(folder); !kept) return kept;
  if (auto aside = set_store_aside(store_); !aside) return aside;
  if (auto moved = move(part(), store_); !moved) return moved;
  if (auto kept = sync(store_.parent_path()); !kept) return kept;
  std::error_code ignored;
  fs::remove_all(old(store_), ignored);
  return {};
}

} // namespace dlrun::agent
