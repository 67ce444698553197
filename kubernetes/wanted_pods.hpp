/// wanted_pods: how many pods of hosts users want.
#pragma once

#include "kubernetes/pod_slot.hpp"

#include <cstdint>
#include <string>

namespace dlrun::kubernetes {

/// Of each group, and whose they are.
struct wanted_pods {
  std::string owner{};     ///< uid of the object that is to control them; "": nothing is done
  std::uint32_t hosts = 0; ///< slots 0 to hosts - 1 of group hosts are to have a pod
  std::uint32_t ps = 0;    ///< likewise of group ps

  std::uint32_t count() const { return hosts + ps; }
  bool contains(pod_slot slot) const { return slot.index < (slot.group == pod_group::ps ? ps : hosts); }
};

} // namespace dlrun::kubernetes
