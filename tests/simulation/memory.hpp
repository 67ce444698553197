/// What processes share: memory of theirs that others read in place.
#pragma once

#include "tests/simulation/symbolic.hpp"

#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace dlrun::simulation {

/// The two parameter buffers of one start of a PS shard (R8), number v mod 2 for version v.
/// `writes` is the sequence lock by which a reader notices that it read while it was written.
struct parameter_memory {
  struct buffer {
    std::optional<version_id> version; ///< empty while it is written to
    timeline_id timeline{};
    value content = 0;
    std::uint64_t writes = 0;
  };
  buffer buffers[2];
  bool gone = false; ///< its process is dead and nobody had it mapped

  buffer& of(version_id version) { return buffers[version.value % 2]; }
};

/// The gradient buffers of one start of a worker. `sequence` grows when a buffer is used again.
struct gradient_memory {
  struct buffer {
    std::uint64_t sequence = 0;
    bool used = false;
    std::uint64_t records = 0;
    std::vector<value> content; ///< one a PS shard
  };
  std::vector<buffer> buffers;
  bool gone = false;

  std::size_t take();
};

inline std::size_t gradient_memory::take() {
  std::size_t index = 0;
  while (index < buffers.size() && buffers[index].used) ++index;
  if (index == buffers.size()) buffers.emplace_back();
  buffers[index].used = true;
  ++buffers[index].sequence;
  return index;
}

} // namespace dlrun::simulation
