/// What a root that comes back finds running (rule R35).
#pragma once

#include "actors/protocol/host_messages.hpp"

#include <map>
#include <optional>
#include <vector>

namespace dlrun::agent {

/// Pure: starts of roles that nobody has taken over yet, one a role.
class found_roles {
public:
  void add(const protocol::running_start& one) { all_[one.role] = one; }
  std::optional<protocol::running_start> take(const protocol::role_name& role) {
    auto found = all_.extract(role);
    if (found.empty()) return std::nullopt;
    return std::move(found.mapped());
  }
  /// All that are left.
  std::vector<protocol::running_start> take_all() {
    std::vector<protocol::running_start> left;
    for (auto& [role, one] : all_) left.push_back(std::move(one));
    all_.clear();
    return left;
  }

private:
  std::map<protocol::role_name, protocol::running_start> all_;
};

} // namespace dlrun::agent
