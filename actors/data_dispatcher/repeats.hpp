/// What was said to whom, so that it is repeated from state and not in a storm.
#pragma once

#include "actors/protocol/roles.hpp"
#include "actors/protocol/time.hpp"

#include <cstdint>
#include <map>

namespace dlrun::data_dispatcher {

/// Pure: says whether a message is due: a new one at once, the same again after a while.
class repeats {
public:
  enum class subject : std::uint8_t { rewind, floor, pin, snapshot, probe, go_on };

  explicit repeats(protocol::duration after)
      : after_(after) {}

  /// Whether to say `content` (a number that tells it from others of this subject) now; then it
  /// counts as said.
  bool is_due(subject what, protocol::role_name to, std::uint64_t content, protocol::time_point now) {
    auto& last = said_[{what, to}];
    if (last.at != protocol::time_point{} && last.content == content && now - last.at < after_) return false;
    last = {content, now};
    return true;
  }

private:
  struct saying {
    std::uint64_t content = 0;
    protocol::time_point at{};
  };
  protocol::duration after_;
  std::map<std::pair<subject, protocol::role_name>, saying> said_;
};

} // namespace dlrun::data_dispatcher
