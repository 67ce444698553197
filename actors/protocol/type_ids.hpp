/// CAF type ids of every message. An unregistered message is a compile error
/// (CAF_ENABLE_TYPE_ID_CHECKS).
#pragma once

#include "actors/protocol/handles.hpp"

#include <caf/all.hpp>

CAF_BEGIN_TYPE_ID_BLOCK(dlrun, caf::first_custom_type_id)

// between roles
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::join))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::join_reply))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::directory))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::grant))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::role_started))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::role_exited))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::lease))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::worker_status))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::push))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::pull))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::shard_state))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::fenced))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::step_time_quantiles))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::shard_status))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::evaluate))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::evaluated))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::snapshot_request))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::snapshot_offer))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::rewind))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::go_on))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::name_snapshot))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::floor))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::pin))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::probe))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::kept))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::norm))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::norm_request))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::divergence))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::digest_request))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::digest_reply))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::job_ended))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::stop_job))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::job_event))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::heartbeat))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::coordinator_location))

// within one process
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::tick))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::continuation))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::worker_available))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::worker_gone))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::start_tally))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::training_progress))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::training_finished))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::close_training))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::training_closed))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::slots_redispatched))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::worker_contributed))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::ps_shard_available))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::ps_shard_gone))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::ps_shard_resumed))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::poisoned_slot))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::timeline_started))

// typed handles that travel
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::worker_actor))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::ps_shard_actor))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::data_dispatcher_actor))
CAF_ADD_TYPE_ID(dlrun, (dlrun::protocol::coordinator_actor))

CAF_END_TYPE_ID_BLOCK(dlrun)
