#include "actors/agent/host_events.hpp"

#include <fmt/format.h>
#include <utility>

namespace dlrun::agent::host_events {
namespace {

using protocol::fence;
using protocol::job_event;
using protocol::role_name;

/// Of a role that is to start.
job_event of_role(const role_name& role, const fence& self, std::string event, std::string text,
                  protocol::event_place place = {}) {
  return {.event = std::move(event),
          .role = role,
          .incarnation = self.incarnation,
          .text = std::move(text),
          .place = std::move(place)};
}

} // namespace

job_event of_agent(std::string event, std::string text, protocol::event_place place) {
  return {.event = std::move(event),
          .role = {protocol::role_kind::agent, 0},
          .incarnation = {1},
          .text = std::move(text),
          .place = std::move(place)};
}

// ---- of hosts

job_event enrolled(const std::string& host, const std::string& address) {
  return of_agent("host-enrolled", fmt::format("host {} at {} was let in, and gets ready", host, address),
                  {.host = host, .reason = {}});
}

job_event joined(const std::string& host, const host_room& room) {
  const auto* const takes = room.takes == protocol::host_takes::workers     ? "; it takes workers"
                            : room.takes == protocol::host_takes::ps_shards ? "; it takes PS shards"
                                                                            : "";
  return of_agent("host-joined",
                  fmt::format("host {} is there, with {} cores{}{}", host, room.cpus, takes,
                              room.preemptible ? "; it may go at short notice" : ""),
                  {.host = host, .reason = {}});
}

job_event data_fetched(const protocol::host_joined& joined) {
  const auto& [bytes, duration_us, from, why] = joined.intake;
  const auto seconds = static_cast<double>(duration_us) / 1e6;
  auto event = of_agent("data-fetched",
                        fmt::format("host {} was given {:.1f} MB of the data in {:.1f} s ({}): {}",
                                    joined.host, static_cast<double>(bytes) / 1e6, seconds, from, why),
                        {joined.host, why});
  event.numbers.values = {protocol::named_number("bytes", static_cast<double>(bytes)),
                          protocol::named_number("seconds", seconds)};
  return event;
}

job_event not_started(const host_not_started& failed) {
  return of_agent(failed.enrolled ? "host-not-joined" : "host-not-started",
                  fmt::format("the agent of host {} {}", failed.host, failed.why), {failed.host, failed.why});
}

job_event gone(const host_lost& lost) {
  if (lost.left)
    return of_agent("host-left", fmt::format("host {} has left: {}", lost.host, lost.why),
                    {lost.host, lost.why});
  return of_agent("host-lost", fmt::format("host {} is given up: {}", lost.host, lost.why),
                  {lost.host, lost.why});
}

job_event leaves(const std::string& host) {
  return of_agent("host-leaves",
                  fmt::format("host {} was asked to leave: its workers hand back what they have", host),
                  {.host = host, .reason = {}});
}

job_event avoided(const std::string& host, const std::string& why, protocol::duration time) {
  return of_agent("host-avoided",
                  fmt::format("host {} gets no roles for {:.0f} s: two in a row ended there before they gave "
                              "a sign of life, the last: {}; 'dlrun doctor' may find what is wrong there",
                              host, protocol::to_seconds(time), why),
                  {.host = host, .reason = why});
}

job_event beats(const host_beats& seen, const std::string& root, const std::string& beats_at,
                protocol::duration notice) {
  if (seen.pass)
    return of_agent("beats-pass", fmt::format("host {} answers beats now", seen.host),
                    {.host = seen.host, .reason = {}});
  return of_agent(
      "beats-blocked",
      fmt::format(
          "no UDP passes from host {} to {}, a port of host {}, and back: the loss of {} is noticed by its "
          "TCP connections alone, after up to {:.0f} s instead of 1; let UDP pass between the hosts",
          seen.host, beats_at, root, seen.host, protocol::to_seconds(notice)),
      {.host = seen.host, .reason = {}});
}

job_event coordinator_stays(const std::string& root) {
  return of_agent(
      "coordinator-stays",
      fmt::format("the journal is reached from host {0} alone, so the coordinator stays there: the loss of "
                  "processes, of other hosts and of links is survived; that of {0} ends the job, which "
                  "'dlrun resume --hosts' goes on with; with its journal in an etcd (cluster.journal) the "
                  "coordinator runs on any host that reaches it",
                  root));
}

// ---- of starts

job_event placed(const role_name& role, const fence& self, const place& where) {
  return of_role(role, self, "role-placed",
                 fmt::format("{} runs on host {}: {}", protocol::to_string(role), where.host, where.reason),
                 {where.host, where.reason});
}

job_event waits(const role_name& role, const fence& self, const std::string& host,
                protocol::duration patience) {
  return of_role(role, self, "role-waits",
                 fmt::format("{} waits up to {:.0f} s for host {}, where its store is",
                             protocol::to_string(role), protocol::to_seconds(patience), host),
                 {.host = host, .reason = "its store is there"});
}

job_event copy_waits(const role_name& keeper, const fence& self) {
  return of_role(
      keeper, self, "copy-waits",
      protocol::copy_of(keeper) == 0
          ? fmt::format("{} waits for another host than that of ps_shard {}, which has no copy meanwhile",
                        protocol::to_string(keeper), protocol::shard_of(keeper))
          : fmt::format(
                "{} waits for a host without a store of ps_shard {}, which has one copy fewer meanwhile",
                protocol::to_string(keeper), protocol::shard_of(keeper)));
}

job_event worker_waits(const role_name& worker, const fence& self, bool need_gpus) {
  return of_role(worker, self, "role-waits",
                 fmt::format("{} waits for a host that {}takes workers", protocol::to_string(worker),
                             need_gpus ? "has GPUs and " : ""));
}

job_event store_missing(const role_name& role, const fence& self, const std::string& hosts_before) {
  return of_role(
      role, self, "store-missing",
      fmt::format("no host has a store of {}: it begins empty, and all go back to what every PS shard can "
                  "restore; if its host or folder is only missing in the list of hosts, stop this and name "
                  "it there: the run had {}",
                  protocol::to_string(role), hosts_before));
}

} // namespace dlrun::agent::host_events
