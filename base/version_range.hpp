/// A run of versions.
#pragma once

#include <dlrun/ids.hpp>

namespace dlrun::base {

/// Versions first to last, both included.
struct version_range {
  version_id first;
  version_id last;

  bool operator==(const version_range&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, version_range& x) {
    return f(x.first, x.last);
  }
};

} // namespace dlrun::base
