/// Decides incarnations, membership and the life of the job (rules R4, R15, R19, the coordinator's
/// half of "C").
#pragma once

#include "actors/coordinator/crash_book.hpp"
#include "actors/coordinator/fence_book.hpp"
#include "actors/protocol/messages.hpp"
#include "actors/protocol/time.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace dlrun::coordinator {

struct coordinator_core_config {
  dlrun::incarnation self;
  std::uint32_t workers = 1;
  std::uint32_t ps_shards = 1;
  bool evaluates = false;
  std::uint32_t parameter_blocks = 0; ///< of the whole model
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
};

/// What the journal holds for the coordinator when it starts.
struct journaled_job {
  std::vector<journaled_role> roles{};
  std::optional<protocol::job_ended> ended{}; ///< the job is over (R19)
  std::vector<protocol::evaluated> evaluations{};
  /// R20: the journal knows nothing of fences although the job has run. True until journal_fences
  /// is written for the first time: fences begin beyond anything ever issued, and of those before
  /// each newer one is believed.
  bool lost = false;
  dlrun::incarnation
      highest_found{}; ///< when lost: highest incarnation in the stores and of this coordinator
};

struct send_grant {
  protocol::grant grant;
};
/// To the agent and every joined role.
struct send_directory {
  protocol::directory directory;
};
/// Answer a join; `accepted` false: with the reason.
struct answer_join {
  protocol::role_name role;
  protocol::join_reply reply;
};
/// A start of a worker can / can no longer take work: for the dispatcher.
struct worker_available {
  worker_id worker;
  dlrun::incarnation incarnation;
};
struct worker_gone {
  worker_id worker;
  dlrun::incarnation incarnation;
};
/// The same for PS shards.
struct ps_shard_available {
  ps_shard_id shard;
  dlrun::incarnation incarnation;
};
struct ps_shard_gone {
  ps_shard_id shard;
  dlrun::incarnation incarnation;
};
/// Workers keep dying in this slot: the directory asks who computes it to try its records first
/// (R18).
struct slot_suspected {
  protocol::suspect_slot what;
};
/// Workers die of this record: for the dispatcher, which parks it (R18).
struct poisoned_slot {
  protocol::parked_slot what;
};
/// Write to the journal, synced, then call on_fences_journaled(id). Nothing starts with a fence
/// before (R4).
struct journal_fences {
  std::uint64_t id = 0;
  std::vector<journaled_role> roles;
};
/// Write to the journal, synced, then call on_end_journaled() (R19).
struct journal_end {
  protocol::job_ended ended;
};
/// Ask the shard for digests; repeated until answered by on_digests().
struct request_digests {
  ps_shard_id shard;
  protocol::digest_request request;
};
/// Ask the dispatcher to close the training; repeated until answered by on_training_closed(). Only
/// where state is durable.
struct close_training {
  timeline_id timeline;
};
/// The job is over: write the report, then call on_report_written(). Given once.
struct finish_job {
  protocol::job_ended ended;
};
/// Tell the agent. Given again when the agent comes again.
struct announce_end {
  protocol::job_ended ended;
};

using coordinator_action =
    std::variant<send_grant, send_directory, answer_join, worker_available, worker_gone, ps_shard_available,
                 ps_shard_gone, slot_suspected, poisoned_slot, journal_fences, journal_end, request_digests,
                 close_training, finish_job, announce_end>;
using coordinator_actions = std::vector<coordinator_action>;

/// One loss of a role and what became of it.
struct recovery_record {
  protocol::role_name role;
  dlrun::incarnation lost, replacement;
  std::string cause;
  protocol::time_point noticed{};
  protocol::duration detected{};                  ///< last sign of life -> notice
  std::optional<protocol::duration> redispatched; ///< notice -> its slots with others
  std::optional<protocol::duration> resumed;      ///< notice -> the replacement's first contribution
  std::uint64_t steps_redone = 0; ///< committed steps that all had to make again because of it
};

/// Pure.
class coordinator_core {
public:
  /// `journaled`: what the journal holds; `config.self` is larger than any coordinator in it. The
  /// first fences are issued when the agent is there.
  explicit coordinator_core(coordinator_core_config config, journaled_job journaled = {});

  /// The agent is there: grants for every role. It then tells of everything that runs, with
  /// on_role_started(), and of what ended while there was no coordinator.
  coordinator_actions on_agent(protocol::time_point now);
  coordinator_actions on_role_started(const protocol::role_started& started, protocol::time_point now);
  /// A lost PS shard that keeps nothing on disk cannot be recovered: the job fails with the reason.
  /// A lost worker is replaced by the agent; when its restart budget is exceeded the agent says so
  /// through on_agent_gave_up().
  coordinator_actions on_role_exited(const protocol::role_exited& exited, protocol::time_point now);
  coordinator_actions on_join(const protocol::join& join, protocol::time_point now);
  /// The agent cannot keep the job running, e.g. a restart budget is exceeded: the job fails with
  /// `reason`.
  coordinator_actions on_agent_gave_up(const std::string& reason, protocol::time_point now,
                                       error_code code = error_code::role_lost);
  /// Somebody asked the job to stop: it ends as interrupted.
  coordinator_actions on_stop_requested(const std::string& reason, protocol::time_point now);
  /// The process of this coordinator can be reached at `at`, and runs a new start of the
  /// dispatcher: gives it a larger incarnation than any before (dispatcher_incarnation()) and
  /// announces both. Nobody joins as coordinator or dispatcher.
  coordinator_actions on_dispatcher_started(const protocol::endpoint& at, protocol::time_point now);
  dlrun::incarnation dispatcher_incarnation() const;
  /// The starts that have joined, for a dispatcher that was started again.
  std::vector<worker_available> available_workers() const;
  std::vector<ps_shard_available> available_ps_shards() const;
  /// The fences given with this id, and all before, are in the journal.
  coordinator_actions on_fences_journaled(std::uint64_t id, protocol::time_point now);

  /// From the dispatcher.
  coordinator_actions on_training_finished(timeline_id timeline, version_id version,
                                           protocol::time_point now);
  /// With a journal, also before the training is finished, and again after a rewind.
  coordinator_actions on_evaluated(const protocol::evaluated& result, protocol::time_point now);
  void on_redispatched(worker_id lost, dlrun::incarnation incarnation, protocol::duration after);
  void on_contributed(const protocol::first_contribution& what, protocol::time_point now);
  coordinator_actions on_training_closed(timeline_id timeline, protocol::time_point now);
  /// Training went back, not on purpose, and `steps` are made again: the doing of the newest loss
  /// that is not made good yet; of a PS shard if there is one, since a worker alone takes nothing
  /// that others cannot compute.
  void on_steps_redone(std::uint64_t steps);
  void on_shard_resumed(ps_shard_id shard, dlrun::incarnation incarnation, protocol::time_point now);
  coordinator_actions on_digests(ps_shard_id shard, const protocol::digest_reply& reply,
                                 protocol::time_point now);
  /// The report is written; `as_written` is failed when it could not be.
  coordinator_actions on_report_written(const protocol::job_ended& as_written, protocol::time_point now);
  coordinator_actions on_end_journaled(protocol::time_point now);
  coordinator_actions on_tick(protocol::time_point now);

  protocol::directory directory() const;
  const std::vector<recovery_record>& recoveries() const { return recoveries_; }
  /// All block digests in canonical order, 32 bytes each; complete when the job has finished.
  const std::string& digests() const { return digests_; }
  /// The last version: N until the dispatcher has said where training finished.
  version_id last_version() const { return last_version_; }
  /// Those heard, by version; where a rewind voided some, they may be there still.
  const std::map<version_id, protocol::evaluated>& evaluations() const { return evaluations_; }
  /// That of the last version.
  std::optional<protocol::evaluated> evaluation() const {
    const auto found = evaluations_.find(last_version_);
    return found == evaluations_.end() ? std::nullopt : std::optional(found->second);
  }

private:
  struct role_record {
    std::optional<protocol::fence> current;
    bool running = false; ///< `current` has started and is not known to be over
    std::int32_t pid = 0;
    std::optional<protocol::endpoint> at; ///< where `current` joined
  };
  enum class phase : std::uint8_t { training, evaluating, digesting, closing, over };

  bool is_startable(const protocol::role_name& role) const;
  void restore(const journaled_job& journaled);
  bool issue(const protocol::role_name& role);
  void journal_new_fences(coordinator_actions& out);
  bool count_crash(const protocol::role_exited& exited, coordinator_actions& out);
  std::string why_refused(const protocol::join& join) const;
  bool is_known_start(const protocol::role_name& role, const protocol::fence& self) const;
  void begin_start(const protocol::role_name& role, role_record& record, const protocol::fence& self,
                   std::int32_t pid, coordinator_actions& out);
  void end_start(const protocol::role_name& role, role_record& record, std::string_view cause,
                 coordinator_actions& out);
  void note_loss(const protocol::role_exited& exited, protocol::time_point now);
  void announce(coordinator_actions& out);
  void grant_to(const protocol::role_name& role, coordinator_actions& out) const;
  void begin_digests(coordinator_actions& out);
  bool ask_digests(ps_shard_id shard, coordinator_actions& out) const;
  std::uint32_t digests_asked(ps_shard_id shard) const;
  void finish_when_digested(coordinator_actions& out);
  void finish(protocol::job_outcome outcome, std::string reason, coordinator_actions& out,
              error_code code = error_code::role_lost);
  void announce_the_end(coordinator_actions& out);

  coordinator_core_config config_;
  timeline_id timeline_{};
  std::map<protocol::role_name, role_record> roles_;
  fence_book fences_;
  std::uint64_t directory_sequence_ = 0;
  std::optional<std::string> fingerprint_; ///< of the first role that joined, and who that was
  protocol::role_name fingerprint_from_;
  phase phase_ = phase::training;
  version_id last_version_;
  std::map<version_id, protocol::evaluated> evaluations_; ///< those above the last version may be void
  static constexpr std::size_t digest_bytes = 32;         ///< SHA-256, of a block of parameters
  std::string digests_;
  std::map<ps_shard_id, std::uint32_t> digests_next_; ///< next block to ask a shard for
  std::vector<recovery_record> recoveries_;
  bool agent_is_there_ = false;
  std::uint64_t dispatchers_started_ = 0;
  std::uint64_t last_write_ = 0; ///< id of the newest order to journal fences
  crash_book crashes_;
  std::optional<protocol::job_ended> ended_; ///< the report is written
  bool end_in_writing_ = false;
  std::optional<protocol::time_point> repeated_;
};

} // namespace dlrun::coordinator
