/// The report of a job whose coordinator is on another host, as it comes.
#pragma once

#include "actors/protocol/event_messages.hpp"

#include <optional>
#include <string>

namespace dlrun::agent {

/// Pure: puts the parts together. They come in order from one coordinator; whoever begins again at
/// 0, or under a larger incarnation, replaces what there was.
class report_intake {
public:
  /// Larger reports are refused.
  static constexpr std::uint64_t bytes_max = std::uint64_t{64} << 20;

  /// @returns up to where the report is there; with that the sender goes on.
  protocol::report_taken add(const protocol::report_part& part);
  /// The whole report, once, when its last part has come.
  std::optional<std::string> take_whole();

private:
  dlrun::incarnation from_;
  std::uint64_t size_ = 0;
  std::string text_;
};

} // namespace dlrun::agent
