/// The wiring diagram: every role's typed handle, one line a message. senders.hpp has its senders,
/// as a control connection checks them.
#pragma once

#include "actors/protocol/archive_messages.hpp"
#include "actors/protocol/copy_messages.hpp"
#include "actors/protocol/dispatch_messages.hpp"
#include "actors/protocol/end_messages.hpp"
#include "actors/protocol/event_messages.hpp"
#include "actors/protocol/heartbeat_messages.hpp"
#include "actors/protocol/host_messages.hpp"
#include "actors/protocol/local_messages.hpp"
#include "actors/protocol/log_messages.hpp"
#include "actors/protocol/membership_messages.hpp"
#include "actors/protocol/scale_messages.hpp"
#include "actors/protocol/start_messages.hpp"
#include "actors/protocol/step_messages.hpp"
#include "actors/protocol/store_messages.hpp"

#include <caf/all.hpp>

namespace dlrun::protocol {

using data_dispatcher_actor = caf::typed_actor< //
    caf::reacts_to<worker_status>,              // worker: sign of life, lease acknowledged
    caf::reacts_to<shard_status>,               // PS shard: progress
    caf::reacts_to<evaluated>,                  // worker: validation result
    caf::reacts_to<kept>,                       // worker: the gradients it keeps, for a probe
    caf::reacts_to<divergence>,                 // worker, PS shard: a gradient is no number
    caf::reacts_to<tick>>;                      // own clock

using worker_actor = caf::typed_actor<                // every `directory` says who dispatches now
    caf::reacts_to<shard_state>,                      // PS shard: where it stands
    caf::reacts_to<lease>,                            // dispatcher: your slots from now on
    caf::reacts_to<directory, data_dispatcher_actor>, // coordinator: who is where
    caf::reacts_to<fenced>,                           // PS shard: a newer start of you exists
    caf::reacts_to<evaluate>,                         // dispatcher: evaluate this version
    caf::reacts_to<snapshot_offer>,                   // PS shard: the parameters that you asked for
    caf::reacts_to<probe>,                            // dispatcher: what do you keep?
    caf::reacts_to<leave_job>,                        // own process: SIGTERM
    caf::reacts_to<tick>,                             // own clock
    caf::reacts_to<continuation>>;                    // own threads

using ps_shard_actor = caf::typed_actor<                 //
    caf::reacts_to<push>,                                // worker: a gradient lies ready
    caf::reacts_to<pull, worker_actor>,                  // worker: where do you stand?
    caf::reacts_to<directory, data_dispatcher_actor>,    // coordinator: who is where
    caf::replies_to<digest_request>::with<digest_reply>, // coordinator: digests of your blocks
    caf::reacts_to<snapshot_request, worker_actor>,      // worker: hand me a snapshot's parameters
    caf::reacts_to<go_on>,                               // dispatcher: past what is evaluated
    caf::reacts_to<rewind>,                              // dispatcher: go back to this version
    caf::reacts_to<name_snapshot>,                       // dispatcher: take a snapshot there
    caf::reacts_to<protocol::floor>,                     // dispatcher: what is below may be dropped
    caf::reacts_to<pin>,                                 // dispatcher: keep this version
    caf::reacts_to<probe>,                               // dispatcher: where do you stand?
    caf::reacts_to<norm>,                                // PS shard: its part of a coupled quantity
    caf::reacts_to<norm_request>,                        // PS shard: send me yours
    caf::reacts_to<copy_standing>,                       // keeper: what the copy holds
    caf::reacts_to<tick>,                                // own clock
    caf::reacts_to<continuation>>;                       // own threads

using keeper_actor = caf::typed_actor< //
    caf::reacts_to<copy_part>,         // PS shard: a piece of its store
    caf::reacts_to<tick>,              // own clock
    caf::reacts_to<continuation>>;     // own threads

/// The dispatcher as the coordinator, in the same process, sees it.
using local_data_dispatcher_actor = data_dispatcher_actor::extend< //
    caf::reacts_to<worker_available, worker_actor>,                // coordinator: can take slots
    caf::reacts_to<worker_gone>,                                   // coordinator: cannot any more
    caf::reacts_to<ps_shard_available, ps_shard_actor>,            // coordinator: is up
    caf::reacts_to<ps_shard_gone>,                                 // coordinator: is not any more
    caf::reacts_to<poisoned_slot>,                                 // coordinator: leave this slot out
    caf::reacts_to<workers_wanted>,                                // coordinator: so many there should be
    caf::reacts_to<close_training>,                                // coordinator: the job is to end
    caf::reacts_to<continuation>>;                                 // journal's thread

using coordinator_actor = caf::typed_actor<                                         //
    caf::replies_to<join, worker_actor>::with<join_reply, data_dispatcher_actor>,   // worker: let me in
    caf::replies_to<join, ps_shard_actor>::with<join_reply, data_dispatcher_actor>, // PS shard: let me in
    caf::reacts_to<role_started>,       // agent: a start of a role
    caf::reacts_to<role_exited>,        // agent: its end
    caf::reacts_to<stop_job>,           // agent: end the job now
    caf::reacts_to<scale_job>,          // agent: so many workers are wanted
    caf::reacts_to<training_progress>,  // dispatcher: what the shards have applied
    caf::reacts_to<training_finished>,  // dispatcher: last version everywhere
    caf::reacts_to<training_closed>,    // dispatcher: nobody goes back any more
    caf::reacts_to<evaluated>,          // dispatcher: validation result
    caf::reacts_to<slots_redispatched>, // dispatcher: a loss is made good
    caf::reacts_to<worker_contributed>, // dispatcher: a replacement works
    caf::reacts_to<ps_shard_resumed>,   // dispatcher: a restarted shard makes versions again
    caf::reacts_to<timeline_started>,   // dispatcher: training went back
    caf::reacts_to<divergence>,         // dispatcher: a gradient is no number
    caf::reacts_to<stall>,              // dispatcher: whom training waits for
    caf::replies_to<journal_part_wanted>::with<journal_part>, // agent: for an archive
    caf::reacts_to<tick>,                                     // own clock
    caf::reacts_to<continuation>>;                            // own threads

using host_agent_actor = caf::typed_actor<                      //
    caf::reacts_to<start_order>,                                // agent: run this role
    caf::reacts_to<stop_order>,                                 // agent: end it
    caf::reacts_to<start_told>,                                 // agent: its end is known
    caf::replies_to<store_listing_wanted>::with<store_listing>, // agent: what a PS shard left
    caf::replies_to<store_part_wanted>::with<store_part>,       // agent: bytes of it
    caf::replies_to<log_listing_wanted>::with<log_listing>,     // agent: which logs are there
    caf::replies_to<log_part_wanted>::with<log_part>,           // agent: bytes of one
    caf::replies_to<snapshots_wanted>::with<store_listing>,     // root: keep these of a PS shard
    caf::replies_to<snapshot_part_wanted>::with<store_part>,    // root: bytes of one
    caf::reacts_to<dismissal>,                                  // agent: end yourself
    caf::reacts_to<tick>,                                       // own clock
    caf::reacts_to<continuation>>;                              // own threads

using agent_actor = caf::typed_actor<                           //
    caf::replies_to<join, coordinator_actor>::with<join_reply>, // coordinator: here I am
    caf::reacts_to<grant>,                                      // coordinator: fences to start roles with
    caf::reacts_to<start_over>,                                 // coordinator: this start is to end
    caf::reacts_to<workers_wanted>,                             // coordinator: keep so many workers running
    caf::replies_to<scale_request>::with<scale_reply>,          // root: `dlrun scale`
    caf::replies_to<journal_part_wanted>::with<journal_part>,   // root: for an archive
    caf::reacts_to<job_event>,                                  // coordinator, PS shard: tell the user
    caf::reacts_to<stall>,                                      // coordinator: whom training waits for
    caf::reacts_to<job_ended>,                                  // coordinator: stop everything
    caf::replies_to<heartbeat>::with<coordinator_location>,     // every role: sign of life
    caf::reacts_to<stop_job>, // root: Ctrl-C; PS shard: quota; worker: its data
    caf::replies_to<host_joined, host_agent_actor>::with<join_reply>, // host agent: here I am
    caf::reacts_to<start_report>,                                     // host agent: what became of a start
    caf::reacts_to<work_report>,                                      // host agent: sign of life; its workers
    caf::replies_to<credentials_wanted>::with<role_credentials>,      // all: the next certificate
    caf::replies_to<report_part>::with<report_taken>,                 // coordinator: for the run folder
    caf::reacts_to<tick>,                                             // own clock
    caf::reacts_to<continuation>>;                                    // own threads

} // namespace dlrun::protocol
