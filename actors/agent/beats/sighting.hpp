/// What the beats of a peer tell of it.
#pragma once

#include "actors/protocol/time.hpp"

#include <cstdint>
#include <string>

namespace dlrun::agent {

enum class sight : std::uint8_t {
  unproven, ///< it has answered nothing yet
  there,
  silent,  ///< it has answered nothing of late
  hangs,   ///< it answers, but does nothing else
  moved_on ///< it has answered this root, and now a later one of the run, for good (R39)
};

struct sighting {
  sight seen = sight::unproven;
  protocol::duration silence{}; ///< since the newest beat that it has answered
  /// Where its newest beat came from, of a peer whose address was given: elsewhere once it has
  /// called from there (R39). "" of another.
  std::string at{};
};

} // namespace dlrun::agent
