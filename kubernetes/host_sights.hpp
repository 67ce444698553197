/// What a job says of its hosts, as far as their pods are concerned.
#pragma once

#include "kubernetes/pod_slot.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace dlrun::kubernetes {

enum class host_standing : std::uint8_t {
  away,    ///< it is not there, or was given up
  joining, ///< it gets ready
  there    ///< or drained: that it goes is no loss
};
struct host_sight {
  host_standing standing = host_standing::away;
  std::string address{};      ///< of the agent that joined last
  bool is_only_place = false; ///< of something that was committed: it would be lost with its disk
  /// From where its agent wanted to join just now, in vain: it reaches the root. "": nobody did.
  std::string turned_away{};
};
/// By slot. A host that is not named never joined.
using host_sights = std::map<pod_slot, host_sight>;

} // namespace dlrun::kubernetes
