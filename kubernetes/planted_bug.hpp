/// Rules of pod_plan and pod_admission that their property test can break on purpose, to see itself
/// find them. Compiled out of the product: only pod_plan_mutant_test defines DLRUN_PLANTED_BUGS.
#pragma once

#include <cstdint>

namespace dlrun::kubernetes {

enum class planted_bug : std::uint8_t {
  none,
  forget_made,   ///< what was made, and the watch does not tell of yet, is not there
  trust_list,    ///< what was made after a list had begun, and is missing in it, is gone
  forget_names,  ///< which incarnations a slot had before is forgotten
  keep_older,    ///< of a slot's pods those before the newest stay
  keep_surplus,  ///< pods of slots that are not wanted any more stay
  trust_phase,   ///< a pod that says that it runs does, whatever the job says of its host
  no_start,      ///< a host that has not joined yet was given up
  forget_memory, ///< how much memory the pods of a slot had is forgotten
  forget_nodes,  ///< on which nodes a pod had other bits is forgotten
  no_restart,    ///< a container that ended is not waited for, as if its node were dead
  let_in_going,  ///< a pod that is deleted may join all the same
  let_in_older,  ///< so may one that another one was made in place of
};

#ifdef DLRUN_PLANTED_BUGS
constexpr bool is_planted(planted_bug configured, planted_bug bug) { return configured == bug; }
#else
constexpr bool is_planted(planted_bug, planted_bug) { return false; }
#endif

} // namespace dlrun::kubernetes
