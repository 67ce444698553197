/// An agent that answers what a test is about, and nothing else.
#pragma once

#include "actors/common/ask.hpp"

#include <utility>

namespace dlrun::test {

/// @param on_heartbeat answers a heartbeat
/// @param on_credentials_wanted answers who wants a certificate
/// @param on_scale_request answers who wants another number of workers
template <class Heartbeat, class CredentialsWanted, class ScaleRequest>
protocol::agent_actor::behavior_type
quiet_agent(Heartbeat on_heartbeat, CredentialsWanted on_credentials_wanted, ScaleRequest on_scale_request) {
  return {
      [](const protocol::join&, const protocol::coordinator_actor&) { return protocol::join_reply{}; },
      [](const protocol::grant&) {},
      [](const protocol::start_over&) {},
      [](const protocol::workers_wanted&) {},
      std::move(on_scale_request),
      [](const protocol::journal_part_wanted&) { return protocol::journal_part{}; },
      [](const protocol::job_event&) {},
      [](const protocol::stall&) {},
      [](const protocol::job_ended&) {},
      std::move(on_heartbeat),
      [](const protocol::stop_job&) {},
      [](const protocol::host_joined&, const protocol::host_agent_actor&) { return protocol::join_reply{}; },
      [](const protocol::start_report&) {},
      [](const protocol::work_report&) {},
      std::move(on_credentials_wanted),
      [](const protocol::report_part&) { return protocol::report_taken{}; },
      [](const protocol::tick&) {},
      [](const protocol::continuation& task) { common::run(task); }};
}

/// The same, which scales nothing.
template <class Heartbeat, class CredentialsWanted>
protocol::agent_actor::behavior_type quiet_agent(Heartbeat on_heartbeat,
                                                 CredentialsWanted on_credentials_wanted) {
  return quiet_agent(std::move(on_heartbeat), std::move(on_credentials_wanted),
                     [](const protocol::scale_request&) { return protocol::scale_reply{}; });
}

} // namespace dlrun::test
