#include "actors/agent/log_files.hpp"

#include "actors/agent/file_failure.hpp"
#include "base/read_at.hpp"
#include "base/unique_fd.hpp"
#include "base/write_all.hpp"
#include "job/run_layout.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fcntl.h>
#include <fmt/format.h>
#include <span>
#include <sys/stat.h>
#include <unistd.h>

namespace dlrun::agent {
namespace {

namespace fs = std::filesystem;
using protocol::log_part_bytes_max;
using protocol::role_kind;

constexpr std::array logged_kinds{role_kind::coordinator, role_kind::data_dispatcher, role_kind::ps_shard,
                                  role_kind::worker,      role_kind::agent,           role_kind::host_agent,
                                  role_kind::keeper};
constexpr std::string_view left_out_begin = "... the first ";
constexpr std::string_view left_out_end = " bytes are left out";
constexpr mode_t copy_mode = 0644;
constexpr std::uint64_t offset_max = (std::uint64_t{1} << 63) - log_part_bytes_max - 1; // of pread()

std::string log_name(const protocol::role_name& role) {
  return fmt::format("{}-{}.log", protocol::to_string(role.kind), role.index);
}

bool is_logged(role_kind kind) { return std::ranges::find(logged_kinds, kind) != logged_kinds.end(); }

/// Of a regular file: a FIFO in its place would block for ever.
result<base::unique_fd> open_log(const fs::path& path) {
  base::unique_fd opened{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  struct stat about {};
  if (!opened || ::fstat(opened.get(), &about) != 0)
    return base::fail_errno(fmt::format("cannot open {}", path.string()));
  if (S_ISREG(about.st_mode)) return opened;
  return fail(error_code::system, fmt::format("{} is no file", path.string()));
}

} // namespace

std::optional<protocol::role_name> role_of_log(const fs::path& file) {
  if (file.extension() != ".log") return std::nullopt;
  const auto stem = file.stem().string();
  const auto dash = stem.rfind('-');
  if (dash == std::string::npos) return std::nullopt;
  const auto kind = std::ranges::find_if(logged_kinds, [&](auto one) {
    return protocol::to_string(one) == std::string_view{stem}.substr(0, dash);
  });
  protocol::role_name role;
  const auto* const end = stem.data() + stem.size();
  const auto read = std::from_chars(stem.data() + dash + 1, end, role.index);
  if (kind == logged_kinds.end() || read.ec != std::errc{} || read.ptr != end) return std::nullopt;
  role.kind = *kind;
  if (log_name(role) != file.filename()) return std::nullopt; // "worker-01"
  return role;
}

result<std::vector<protocol::kept_log>> list_logs(const fs::path& folder) {
  std::vector<protocol::kept_log> logs;
  std::error_code why;
  for (fs::directory_iterator at{folder / run_layout::logs, why}, end; !why && at != end; at.increment(why)) {
    const auto role = role_of_log(at->path());
    std::error_code no_file;
    if (!role || !fs::is_regular_file(at->symlink_status(no_file))) continue;
    const auto bytes = at->file_size(no_file);
    if (!no_file) logs.push_back({*role, bytes});
  }
  if (why)
    return fail(error_code::bad_usage,
                fmt::format("cannot list the logs in {}: {}", folder.string(), why.message()));
  if (logs.size() > protocol::kept_logs_max)
    return fail(error_code::limit_exceeded,
                fmt::format("{} has {} logs, and a message has room for {}", folder.string(), logs.size(),
                            protocol::kept_logs_max));
  std::ranges::sort(logs, {}, &protocol::kept_log::role);
  return logs;
}

result<std::string> read_log_part(const fs::path& folder, const protocol::log_part_wanted& wanted) {
  if (!is_logged(wanted.role.kind)) return fail(error_code::protocol, "there is no such role");
  if (wanted.size > log_part_bytes_max || wanted.offset > offset_max)
    return fail(error_code::limit_exceeded,
                fmt::format("{} bytes at {} are no part of a log", wanted.size, wanted.offset));
  const auto path = folder / run_layout::logs / log_name(wanted.role);
  const auto opened = open_log(path);
  if (!opened) return tl::unexpected(opened.error());
  std::string bytes(wanted.size, '\0');
  const auto had = base::read_at(opened->get(), std::as_writable_bytes(std::span{bytes}), wanted.offset);
  if (!had) return fail_to("read", path);
  bytes.resize(*had);
  return bytes;
}

fs::path copied_logs(const fs::path& run_dir, const std::string& host) {
  return run_dir / run_layout::logs / "hosts" / host;
}

std::string left_out_line(std::uint64_t bytes, const std::string& log) {
  return fmt::format("{}{}{}, '{}' has them\n", left_out_begin, bytes, left_out_end, log);
}

std::optional<std::uint64_t> left_out_bytes(std::string_view line) {
  if (!line.starts_with(left_out_begin)) return std::nullopt;
  line.remove_prefix(left_out_begin.size());
  std::uint64_t bytes = 0;
  const auto read = std::from_chars(line.data(), line.data() + line.size(), bytes);
  line.remove_prefix(static_cast<std::size_t>(read.ptr - line.data()));
  if (read.ec != std::errc{} || !line.starts_with(left_out_end)) return std::nullopt;
  return bytes;
}

// ---- a copy

log_intake::log_intake(fs::path place, const protocol::kept_log& log)
    : place_{std::move(place)}
    , log_{log}
    , left_out_{log.bytes - std::min(log.bytes, copied_log_bytes_max)}
    , next_{left_out_}
    , missing_{log.bytes - left_out_} {}

result<log_intake> log_intake::begin(const fs::path& copies, const protocol::kept_log& log,
                                     const std::string& from) {
  if (!is_logged(log.role.kind)) return fail(error_code::protocol, "a log of a role that there is not");
  std::error_code why;
  fs::create_directories(copies, why);
  log_intake made{copies / log_name(log.role), log};
  const base::unique_fd fresh{
      ::open(made.part().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, copy_mode)};
  if (!fresh) return fail_to("make", made.part());
  if (made.left_out_ == 0) return made;
  const auto line =
      left_out_line(made.left_out_, (fs::path{from} / run_layout::logs / log_name(log.role)).string());
  made.line_bytes_ = line.size();
  if (auto written = made.write(0, line); !written) return tl::unexpected(written.error());
  return made;
}

result<void> log_intake::write(std::uint64_t at, std::string_view bytes) const {
  const base::unique_fd opened{::open(part().c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW)};
  if (!opened || !base::write_all_at(opened.get(), bytes, at)) return fail_to("write", part());
  return {};
}

std::optional<protocol::log_part_wanted> log_intake::next() {
  if (next_ == log_.bytes) return std::nullopt;
  const auto size =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(log_.bytes - next_, log_part_bytes_max));
  protocol::log_part_wanted wanted{log_.role, next_, size};
  next_ += size;
  return wanted;
}

result<void> log_intake::add(const protocol::log_part_wanted& wanted, std::string_view bytes) {
  if (bytes.size() != wanted.size)
    return fail(error_code::protocol,
                fmt::format("{} bytes came of the {} at {}", bytes.size(), wanted.size, wanted.offset));
  if (auto written = write(line_bytes_ + wanted.offset - left_out_, bytes); !written) return written;
  missing_ -= bytes.size();
  return {};
}

result<void> log_intake::finish() const {
  if (::rename(part().c_str(), place_.c_str()) != 0) return fail_to("give its place to", part());
  return {};
}

void log_intake::discard() const {
  std::error_code ignored;
  fs::remove(part(), ignored);
}

} // namespace dlrun::agent
