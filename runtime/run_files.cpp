#include "runtime/run_files.hpp"

#include "base/unique_fd.hpp"
#include "job/run_layout.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <iterator>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>

namespace dlrun::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::array file_names{run_layout::record, run_layout::lock,    run_layout::events,
                                run_layout::report, run_layout::secrets, run_layout::agent,
                                root_number_file};
constexpr std::array folder_names{run_layout::logs, run_layout::journal};

/// spec.yaml, spec.1.yaml, ...
bool is_of_specification(std::string_view name) {
  return name.starts_with("spec.") && name.ends_with(".yaml");
}

bool is_file_name(std::string_view name) {
  return is_of_specification(name) || std::ranges::find(file_names, name) != file_names.end();
}

bool is_folder_name(std::string_view name) {
  return name.starts_with(run_layout::store_prefix) ||
         std::ranges::find(folder_names, name) != folder_names.end();
}

std::string_view kind_of(fs::file_type type) {
  switch (type) {
  case fs::file_type::directory: return "a folder";
  case fs::file_type::fifo: return "a FIFO";
  case fs::file_type::socket: return "a socket";
  default: return "a device";
  }
}

result<void> check_file(const fs::path& file) {
  std::error_code ignored;
  const auto about = fs::status(file, ignored);
  if (!fs::exists(about) || fs::is_regular_file(about)) return {};
  return fail(
      error_code::bad_usage,
      fmt::format("'{}' is no file but {}: the run keeps a file under that name; remove what is there",
                  file.string(), kind_of(about.type())));
}

template <class Wanted>
result<void> check_files_of(const fs::path& folder, Wanted is_wanted) {
  std::error_code why;
  for (fs::directory_iterator at{folder, why}; !why && at != fs::directory_iterator{}; at.increment(why)) {
    if (!is_wanted(at->path().filename().string())) continue;
    if (auto fine = check_file(at->path()); !fine) return fine;
  }
  return {}; // what cannot be looked into is told by who reads it
}

} // namespace

result<void> check_run_files(const fs::path& folder) {
  if (auto fine = check_files_of(folder, is_file_name); !fine) return fine;
  return check_files_of(folder / run_layout::logs,
                        [](const std::string& name) { return name.ends_with(".log"); });
}

result<void> check_readable(const fs::path& file) {
  if (::access(file.c_str(), R_OK) == 0 || errno == ENOENT || errno == ENOTDIR) return {};
  return fail(error_code::bad_usage,
              fmt::format("cannot read '{}': {}", file.string(), std::generic_category().message(errno)));
}

bool is_locked(const fs::path& file) {
  const base::unique_fd fd{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  return fd && ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

fs::path place_within(const fs::path& folder, const fs::path& file) {
  std::error_code ignored;
  const auto inside =
      fs::weakly_canonical(file, ignored).lexically_relative(fs::weakly_canonical(folder, ignored));
  return inside.empty() || *inside.begin() == ".." ? fs::path{} : inside;
}

bool is_part_of_run(const fs::path& folder, const fs::path& file) {
  const auto inside = place_within(folder, file);
  if (inside.empty()) return false;
  const auto first = inside.begin()->string();
  const bool is_below = std::next(inside.begin()) != inside.end();
  return is_below ? is_folder_name(first) : is_file_name(first) || is_folder_name(first);
}

} // namespace dlrun::runtime
