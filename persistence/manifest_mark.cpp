#include "persistence/manifest_mark.hpp"

#include "base/crc32c.hpp"
#include "persistence/framing.hpp"
#include "persistence/record_log_scan.hpp"

#include <charconv>
#include <fmt/format.h>
#include <optional>
#include <sstream>
#include <string_view>

namespace dlrun::persistence {

namespace {

std::string mark_path(const std::string& directory) { return directory + "/MANIFEST_BYTES"; }

std::string mark_content(const std::string& name, std::uint64_t bytes) {
  const auto text = fmt::format("{} {} ", name, bytes);
  return fmt::format("{}{:08x}\n", text, base::crc32c(text));
}

std::string current_path(const std::string& directory) { return directory + "/CURRENT"; }

/// nullopt unless it is the name of a MANIFEST.
std::optional<std::uint64_t> number_of(std::string_view name) {
  constexpr std::string_view begin = "MANIFEST-";
  std::uint64_t number = 0;
  if (!name.starts_with(begin)) return std::nullopt;
  const auto [end, failure] = std::from_chars(name.data() + begin.size(), name.data() + name.size(), number);
  return failure == std::errc{} && end == name.data() + name.size() ? std::optional(number) : std::nullopt;
}

/// That RocksDB will read.
result<std::string> current_manifest(file_system& files, const std::string& directory) {
  const auto path = current_path(directory);
  const auto there = file_exists(files, path);
  if (!there) return tl::unexpected(there.error());
  if (!*there) return fail_damaged(path, 0, "there is no such file");
  auto content = read_file(files, path);
  if (!content) return content;
  if (content->empty() || content->back() != '\n')
    return fail_damaged(path, 0, "it does not end with a line");
  content->pop_back();
  if (!number_of(*content))
    return fail_damaged(path, 0, fmt::format("it names no MANIFEST but {:?}", *content));
  return content;
}

/// RocksDB takes a record whose length is damaged, and leads over the end, for a write that was cut
/// off: it forgets that record and all behind it.
/// @param bytes of it were synced
result<void> check_content(file_system& files, const std::string& manifest, std::uint64_t bytes) {
  const auto there = file_exists(files, manifest);
  if (!there) return tl::unexpected(there.error());
  if (!*there) return fail_damaged(manifest, 0, "there is no such file");
  const auto scan = scan_record_log(files, manifest);
  if (!scan) return tl::unexpected(scan.error());
  if (scan->tail == log_tail::damaged) return fail_damaged(manifest, scan->valid_bytes, scan->why);
  if (scan->valid_bytes >= bytes) return {};
  return fail_damaged(manifest, scan->valid_bytes, fmt::format("it ends there and had {} bytes", bytes));
}

} // namespace

result<void> mark_manifest(file_system& files, const std::string& directory, const std::string& name,
                           std::uint64_t bytes) {
  return write_file_durably(files, mark_path(directory), mark_content(name, bytes));
}

result<void> check_manifest(file_system& files, const std::string& directory) {
  const auto there = file_exists(files, mark_path(directory));
  if (!there) return tl::unexpected(there.error());
  if (!*there) return fail_damaged(mark_path(directory), 0, "there is no such file");
  const auto mark = read_file(files, mark_path(directory));
  if (!mark) return tl::unexpected(mark.error());
  std::istringstream words(*mark);
  std::string name;
  std::uint64_t bytes = 0;
  words >> name >> bytes;
  if (*mark != mark_content(name, bytes))
    return fail_damaged(mark_path(directory), 0, "its checksum is wrong");
  const auto current = current_manifest(files, directory);
  if (!current) return tl::unexpected(current.error());
  if (number_of(*current) < number_of(name))
    return fail_damaged(current_path(directory), 0, fmt::format("it says {} after {}", *current, name));
  return check_content(files, directory + "/" + *current, *current == name ? bytes : 0);
}

} // namespace dlrun::persistence
