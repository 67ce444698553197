/// Makes the job's report from what the roles reported.
#pragma once

#include "actors/common/job_facts.hpp"
#include "actors/coordinator/run_tallies.hpp"
#include "actors/coordinator/store_book.hpp"
#include "actors/protocol/dispatch_messages.hpp"
#include "actors/protocol/end_messages.hpp"
#include <dlrun/report.hpp>

namespace dlrun::coordinator {

/// Pure: the data that the report is made of.
struct report_sources {
  protocol::job_ended ended;
  std::vector<protocol::shard_status>
      shards; ///< newest of each PS shard; may be incomplete when the job failed
  std::vector<protocol::evaluated> evaluations; ///< ascending by version
  version_id last_version;                      ///< where training finished, or would have
  std::string digests;                          ///< of all blocks, 32 bytes each; empty when the job failed
  std::vector<recovery_record> recoveries;
  run_tallies tallies{};
  std::vector<protocol::parked_slot> parked{}; ///< left out, by the course
  std::vector<store_loss> store_losses{};
  std::string device{}; ///< of the workers; "" when none has joined
};

/// How the job ended, by its numbers too: a training whose last version has no finite loss on the
/// validation data was no success.
protocol::job_ended judged(const common::job_facts& job, const report_sources& sources);

/// Missing and duplicated samples come from the ledgers of the PS shards, never from what workers
/// counted.
dlrun::report make_report(const common::job_facts& job, const report_sources& sources,
                          protocol::time_point now);

/// By which people know the records that are left out; empty where the data is not at hand.
std::vector<std::uint64_t> numbers_in_files(const common::job_facts& job, const protocol::parked_slot& what);

} // namespace dlrun::coordinator
