#include "persistence/manifest_mark.hpp"

#include "base/crc32c.hpp"
#include "persistence/framing.hpp"

#include <fmt/format.h>
#include <rocksdb/file_system.h>
#include <sstream>

namespace dlrun::persistence {

namespace {

std::string mark_path(const std::string& directory) { return directory + "/MANIFEST_BYTES"; }

std::string mark_content(const std::string& name, std::uint64_t bytes) {
  const auto text = fmt::format("{} {} ", name, bytes);
  return fmt::format("{}{:08x}\n", text, base::crc32c(text));
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
  const auto manifest = directory + "/" + name;
  const auto same = file_exists(files, manifest);
  if (!same) return tl::unexpected(same.error());
  std::uint64_t now = 0;
  if (!*same || !files.GetFileSize(manifest, {}, &now, nullptr).ok() || now >= bytes) return {};
  return fail_damaged(manifest, now, fmt::format("it ends there and had {} bytes", bytes));
}

} // namespace dlrun::persistence
