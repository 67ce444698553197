#include "actors/agent/host_signs.hpp"

#include <fmt/format.h>

namespace dlrun::agent {

using protocol::time_point;

void host_signs::excuse(protocol::duration paused) {
  joined_ += paused;
  heard_ += paused;
  if (link_lost_) *link_lost_ += paused;
}

bool host_signs::take_blocked(const host_rules& rules, time_point now) {
  const bool is_blocked = seen_.seen == sight::unproven && now - joined_ >= rules.beats_patience;
  return is_blocked && !std::exchange(is_told_blocked_, true);
}

std::string host_signs::why_lost(const host_rules& rules, bool has_ended, time_point now) const {
  const auto is_longer = [now](time_point since, protocol::duration patience) {
    return now - since >= patience;
  };
  if (seen_.seen == sight::moved_on) return ""; // another root's
  if (link_lost_ && has_ended) return "its agent has ended";
  if (seen_.seen == sight::silent)
    return fmt::format("it has answered no beat for {:.2f} s", protocol::to_seconds(seen_.silence));
  if (seen_.seen == sight::hangs) return "its agent answers beats, but does nothing else";
  const bool is_proven = seen_.seen == sight::there;
  const auto link_patience = is_proven ? rules.link_patience : rules.only_link_patience;
  if (link_lost_ && is_longer(*link_lost_, link_patience)) return "the link to it is lost";
  if (!is_proven && is_longer(heard_, rules.silence_max))
    return fmt::format("it has given no sign of life for {:.1f} s", protocol::to_seconds(now - heard_));
  return "";
}

} // namespace dlrun::agent
