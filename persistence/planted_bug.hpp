/// Rules of register_hold and register_watch that their property test can break on purpose, to see
/// itself find them. Compiled out of the product: only register_mutant_test defines
/// DLRUN_PLANTED_BUGS.
#pragma once

#include <cstdint>

namespace dlrun::persistence {

enum class planted_bug : std::uint8_t {
  none,
  take_live,       ///< R40: a root takes the register of one that lives
  follow_register, ///< R40: a root writes over what it finds, whoever has written that
  forget_attempts, ///< R40: a write without an answer was not done
  trust_folder,    ///< R40: the earlier root of a folder counts as the last one
  count_gaps,      ///< R43: time in which no look was answered counts as silence
};

#ifdef DLRUN_PLANTED_BUGS
constexpr bool is_planted(planted_bug configured, planted_bug bug) { return configured == bug; }
#else
constexpr bool is_planted(planted_bug, planted_bug) { return false; }
#endif

} // namespace dlrun::persistence
