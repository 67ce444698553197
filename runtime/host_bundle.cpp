#include "runtime/host_bundle.hpp"

#include "actors/common/fingerprint.hpp"
#include "base/hmac.hpp"
#include "base/os_error.hpp"
#include "transport/run_token.hpp"

#include <charconv>
#include <fmt/format.h>
#include <optional>
#include <unistd.h>

namespace dlrun::runtime {
namespace {

constexpr std::string_view bundle_head = "dlrun-host-bundle ";
constexpr std::size_t first_line_max = 200;

tl::unexpected<error> no_bundle() {
  return fail(error_code::bad_usage,
              "'dlrun agent' is started by 'dlrun train --hosts', which tells it on its "
              "standard input what to run; there is nothing of that there");
}

/// Exactly so many bytes, or fewer at the end of the file.
result<std::string> read_bytes(int fd, std::size_t count) {
  std::string bytes(count, '\0');
  std::size_t got = 0;
  while (got < count) {
    const auto size = ::read(fd, bytes.data() + got, count - got);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return base::fail_errno("cannot read the standard input");
    if (size == 0) break;
    got += static_cast<std::size_t>(size);
  }
  bytes.resize(got);
  return bytes;
}

result<std::string> read_first_line(int fd) {
  std::string line;
  while (line.size() < first_line_max) {
    auto next = read_bytes(fd, 1);
    if (!next) return next;
    if (next->empty() || *next == "\n") return line;
    line += *next;
  }
  return line;
}

struct bundle_line {
  std::string version;
  std::size_t bytes = 0;
};
std::optional<bundle_line> parse_line(std::string_view line) {
  if (!line.starts_with(bundle_head)) return std::nullopt;
  line.remove_prefix(bundle_head.size());
  const auto space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  bundle_line parsed{std::string{line.substr(0, space)}, 0};
  const auto number = line.substr(space + 1);
  const auto [end, wrong] = std::from_chars(number.begin(), number.end(), parsed.bytes);
  if (wrong != std::errc{} || end != number.end() || parsed.bytes > bundle_bytes_max) return std::nullopt;
  return parsed;
}

} // namespace

std::string written_bundle(const bootstrap::HostBundle& bundle) {
  const auto bytes = bundle.SerializeAsString();
  return fmt::format("{}{} {}\n", bundle_head, common::dlrun_build(), bytes.size()) + bytes;
}

result<bootstrap::HostBundle> read_bundle(int fd) {
  if (::isatty(fd) == 1) return no_bundle();
  const auto line = read_first_line(fd);
  if (!line) return tl::unexpected(line.error());
  const auto parsed = parse_line(*line);
  if (!parsed) return no_bundle();
  if (parsed->version != common::dlrun_build())
    return fail(error_code::bad_usage,
                fmt::format("the job is run by dlrun {}, and this is dlrun {}: install the same build on all "
                            "hosts, or name it with 'program:' in the list of hosts",
                            parsed->version, common::dlrun_build()));
  const auto bytes = read_bytes(fd, parsed->bytes);
  if (!bytes) return tl::unexpected(bytes.error());
  bootstrap::HostBundle bundle;
  if (bytes->size() != parsed->bytes || !bundle.ParseFromString(*bytes) ||
      !transport::run_token::from_bytes(bundle.run_token()) ||
      bundle.beat_key().size() != sizeof(base::hmac_key))
    return fail(error_code::bad_usage, "what the root told on the standard input was cut off");
  return bundle;
}

} // namespace dlrun::runtime
