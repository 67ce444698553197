#include "cli/host_log.hpp"

#include "actors/agent/log_files.hpp"
#include "runtime/host_logs.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <utility>

namespace dlrun::cli {
namespace {

constexpr std::size_t line_bytes_max = 64 * 1024;
constexpr std::size_t copy_part_bytes = 32 * 1024;

} // namespace

host_log::host_log(std::string host, const protocol::role_name& role, std::filesystem::path copy,
                   root_asker ask)
    : host_{std::move(host)}
    , role_{role}
    , copy_{std::move(copy)}
    , ask_{std::move(ask)} {}

void host_log::reached(std::uint64_t bytes) {
  if (bytes < offset_) { // that host began anew, with an empty folder
    offset_ = 0;
    part_.clear();
  }
  available_ = bytes;
}

bool host_log::is_copied() const {
  std::error_code ignored;
  return std::filesystem::exists(copy_, ignored);
}

std::optional<std::string> host_log::next() {
  for (;;) {
    if (auto line = take_line()) return line;
    const auto bytes = more();
    if (bytes.empty()) return std::nullopt;
    part_ += bytes;
  }
}

std::optional<std::string> host_log::rest() {
  if (part_.empty()) return std::nullopt;
  return std::exchange(part_, {});
}

std::optional<std::string> host_log::take_line() {
  const auto end = part_.find('\n');
  if (end == std::string::npos && part_.size() < line_bytes_max) return std::nullopt;
  auto line = part_.substr(0, std::min(end, line_bytes_max));
  part_.erase(0, line.size() + (line.size() == end ? 1 : 0));
  return line;
}

/// The next bytes; none where there are none now.
std::string host_log::more() {
  if (available_) {
    if (offset_ >= *available_) return {};
    if (auto bytes = ask_for_part()) {
      offset_ += bytes->size();
      return *bytes;
    }
    available_.reset();
  }
  return read_copy();
}

std::optional<std::string> host_log::ask_for_part() {
  auto answer =
      ask_(fmt::format("log {} {} {} {}", host_, protocol::to_string(role_.kind), role_.index, offset_));
  if (!answer || answer->empty() || answer->front() != runtime::log_sign_answer) return std::nullopt;
  return answer->substr(1);
}

/// Its first line may say that the first bytes of the log are left out: who has not read them sees
/// that line in their place.
std::string host_log::read_copy() {
  std::ifstream in{copy_, std::ios::binary};
  std::string first;
  if (!std::getline(in, first)) return {};
  std::string bytes;
  const auto left_out = agent::left_out_bytes(first);
  const auto line_bytes = left_out ? first.size() + 1 : 0;
  if (left_out && offset_ < *left_out) {
    bytes = first + '\n';
    offset_ = *left_out;
  }
  in.seekg(static_cast<std::streamoff>(line_bytes + offset_ - left_out.value_or(0)));
  const auto had = bytes.size();
  bytes.resize(had + copy_part_bytes);
  in.read(bytes.data() + had, copy_part_bytes);
  bytes.resize(had + static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  offset_ += bytes.size() - had;
  return bytes;
}

} // namespace dlrun::cli
