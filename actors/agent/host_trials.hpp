/// Hosts on which roles end before they are there.
#pragma once

#include "actors/protocol/time.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::agent {

/// Pure: a host on which two starts in a row end before they give a sign of life gets none for a
/// minute, since its disk, memory, clock or libraries may be what is wrong. Each time after that it
/// gets none for twice as long, up to an hour, until a start there gives a sign of life.
class host_trials {
public:
  /// That start gave no sign of life. @returns for how long the host is avoided from now on, if it
  /// was not
  std::optional<protocol::duration> on_failed(const std::string& host, protocol::time_point now);
  /// A start there has given a sign of life.
  void on_good(const std::string& host) { all_.erase(host); }
  bool is_avoided(const std::string& host) const;
  /// Those whose time is over: they get starts again.
  std::vector<std::string> over(protocol::time_point now);

private:
  struct trial {
    std::uint32_t failures = 0; ///< in a row, since it was avoided last
    protocol::duration next;    ///< for how long it will be avoided
    std::optional<protocol::time_point> until{};
  };
  std::map<std::string, trial> all_;
};

} // namespace dlrun::agent
