/// What the coordinator says of the job: to the user what happened, to the agent that it lives.
#pragma once

#include "actors/common/sender.hpp"
#include "actors/coordinator/coordinator_actions.hpp"
#include "actors/coordinator/coordinator_context.hpp"
#include "actors/coordinator/recovery_book.hpp"
#include "actors/coordinator/store_book.hpp"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace dlrun::coordinator {

/// Words each event (observability.md) and sends it to the agent, with the heartbeats of
/// coordinator and dispatcher. Decides nothing. Called by the actor `self` only.
class coordinator_reports {
public:
  using pointer = protocol::coordinator_actor::base*;
  /// Incarnation of the dispatcher; nothing before there is one.
  using dispatcher_finder = std::function<std::optional<dlrun::incarnation>()>;

  /// `context` outlives this. `dispatcher` is not called before anything below is.
  coordinator_reports(pointer self, const coordinator_context& context, dispatcher_finder dispatcher)
      : self_(self)
      , context_(context)
      , dispatcher_(std::move(dispatcher)) {}

  void tell(const protocol::slots_redispatched& what);
  /// With the losses that are made good by it.
  void tell(const protocol::worker_contributed& what, const std::vector<recovery_record>& made_good);
  void tell(const protocol::ps_shard_resumed& what, const std::vector<recovery_record>& made_good);
  void tell(const protocol::timeline_started& what);
  void tell(const protocol::evaluated& result);
  void tell(const protocol::training_finished& what);
  void tell(const slot_suspected& what);
  void tell(const store_loss& what);
  void tell(const journal_is_older& what);
  /// Told once, however many dispatchers are told of it.
  void tell(const protocol::poisoned_slot& what);
  /// Why the journal is waited for, again and again: the disk is full, or nobody answers
  /// (timed_out); nothing when that is over.
  void tell_stalled(const std::optional<error>& why);
  void tell(const announce_end& end);

  /// Periodic. Before there is a dispatcher only who waits is alive: another start hangs.
  /// `join_again` is called when the agent has lost the way to this coordinator.
  void report_alive(const std::function<void()>& join_again = [] {});

private:
  void tell(std::string event, const protocol::role_name& role, dlrun::incarnation incarnation,
            std::string text, protocol::event_numbers numbers = {}, protocol::event_place place = {});
  void tell_of_dispatcher(std::string event, std::string text, protocol::event_numbers numbers);
  void tell_own(std::string event, std::string text, protocol::event_numbers numbers = {});

  pointer self_;
  const coordinator_context& context_;
  dispatcher_finder dispatcher_;
  common::latest_sender<protocol::heartbeat> heartbeat_sender_;
  common::latest_sender<protocol::heartbeat> dispatcher_heartbeat_sender_; ///< speaks for the dispatcher
  std::set<protocol::parked_slot> poison_told_;
  std::optional<error_code> stall_; ///< why the journal is waited for
  bool ended_ = false;
};

/// Why the job fails that diverged, and the way out. `kept`: versions that can be gone back to;
/// nothing where none are kept.
std::string describe(const protocol::divergence& what, const common::job_facts& job,
                     const std::optional<protocol::version_set>& kept);

} // namespace dlrun::coordinator
