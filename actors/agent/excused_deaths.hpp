/// Which deaths of workers do not count for the restart budget.
#pragma once

#include "actors/protocol/parking.hpp"

#include <algorithm>
#include <map>

namespace dlrun::agent {

/// Pure: excuses the deaths in a slot that lead to a record being left out (R18): the two that make
/// the slot a suspect, and two of each worker, which may compute the slot at the same time as
/// others, and again before it hears that the record is left out. A slot that kills after that is
/// not excused, and nothing is once too many records were named.
class excused_deaths {
public:
  explicit excused_deaths(std::uint32_t workers)
      : deaths_max_(most_of(workers)) {}

  /// There may be so many workers from now on.
  void set_workers(std::uint32_t workers) { deaths_max_ = std::max(deaths_max_, most_of(workers)); }
  /// A worker died by its own doing at `where`. @returns whether that is excused.
  bool excuses(const protocol::slot_progress& where) {
    const auto [at, is_new] = deaths_.try_emplace(where, 0);
    if (is_new && !where.at.is_whole()) ++records_;
    return ++at->second <= deaths_max_ && (where.at.is_whole() || records_ <= protocol::parked_by_death_max);
  }

private:
  static std::uint32_t most_of(std::uint32_t workers) { return 2 * workers + 2; }

  std::uint32_t deaths_max_; ///< of one place
  std::map<protocol::slot_progress, std::uint32_t> deaths_;
  std::size_t records_ = 0; ///< that were named
};

} // namespace dlrun::agent
