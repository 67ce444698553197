/// What a start of the coordinator is told and what it finds.
#pragma once

#include "actors/coordinator/fence_book.hpp"
#include "actors/coordinator/workforce.hpp"
#include "actors/protocol/dispatch_messages.hpp"
#include "actors/protocol/end_messages.hpp"
#include "actors/protocol/time.hpp"

#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace dlrun::coordinator {

struct coordinator_core_config {
  dlrun::incarnation self;
  std::uint32_t workers = 1;     ///< by the specification
  std::uint32_t workers_max = 1; ///< that the job may be scaled to
  std::uint32_t ps_shards = 1;
  std::uint32_t copies = 0; ///< of the store of each PS shard, each with a keeper
  bool evaluates = false;
  bool relaxed = false; ///< roles need not compute the same bits
  /// Parameter blocks [first, second) of each shard, for the digests.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> blocks_of_shard{};
  std::uint64_t steps = 0; ///< N
  /// Fences an agent holds in advance for each role, beside the one in use.
  std::uint32_t spare_fences = 2;
  /// The same for the coordinator itself: one that dies before it has come up uses one and brings
  /// none.
  std::uint32_t spare_fences_of_coordinator = 10;
  protocol::duration repeat_after = std::chrono::milliseconds(500);
  std::function<std::uint64_t()> random{}; ///< for tokens
  std::uint64_t token = 0;                 ///< of this start
  /// Fences and the end are journaled before they count (R15), the agent gets fences for the
  /// coordinator too, and a PS shard that is started again finds its state. False, as with
  /// `durability.log: off`: the loss of either ends the job.
  bool is_durable = false;
  /// Random number of the agent's process (fence_book_config).
  std::uint64_t agent = 0;
  protocol::planted_bug bug = protocol::planted_bug::none;
};

/// What the journal holds for the coordinator when it starts.
struct journaled_job {
  std::vector<journaled_role> roles{};
  std::optional<protocol::job_ended> ended{}; ///< the job is over (R19)
  std::vector<protocol::evaluated> evaluations{};
  std::optional<journaled_workers> workers{}; ///< nothing before anybody asked for another number
  /// R20: the journal knows nothing of fences although the job has run. True until journal_fences
  /// is written for the first time: fences begin beyond anything ever issued, and of those before
  /// each newer one is believed.
  bool lost = false;
  dlrun::incarnation
      highest_found{}; ///< when lost: highest incarnation in the stores and of this coordinator
};

} // namespace dlrun::coordinator
