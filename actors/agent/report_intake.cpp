#include "actors/agent/report_intake.hpp"

#include <fmt/format.h>
#include <utility>

namespace dlrun::agent {

protocol::report_taken report_intake::add(const protocol::report_part& part) {
  if (part.size > bytes_max || part.offset + part.bytes.size() > part.size)
    return {0, fmt::format("a report of {} bytes is more than the {} that are taken", part.size, bytes_max)};
  if (part.coordinator < from_) return {0, fmt::format("incarnation {} comes too late", part.coordinator)};
  if (part.offset == 0 || part.coordinator > from_) {
    from_ = part.coordinator;
    size_ = part.size;
    text_.clear();
  }
  if (part.offset == text_.size() && part.size == size_) text_ += part.bytes;
  return {text_.size(), {}};
}

std::optional<std::string> report_intake::take_whole() {
  if (size_ == 0 || text_.size() != size_) return std::nullopt;
  size_ = 0;
  return std::exchange(text_, {});
}

} // namespace dlrun::agent
