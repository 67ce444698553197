#include "actors/agent/host_rooms.hpp"

#include <fmt/format.h>

namespace dlrun::agent {

standing host_room::is() const {
  if (cpus == 0) return standing::spared;
  if (takes == protocol::host_takes::workers) return standing::for_workers;
  return preemptible ? standing::preemptible : standing::stays;
}

void host_rooms::add_host(const std::string& name, const host_room& room) {
  rooms_[name] = room;
  gone_.erase(name);
}

void host_rooms::remove_host(const std::string& name, const std::string& why) {
  if (rooms_.erase(name) != 0) gone_[name] = why;
}

void host_rooms::set_closed(const std::string& name, bool is_closed, closure why) {
  auto& reasons = closed_[name];
  if (is_closed)
    reasons.insert(why);
  else
    reasons.erase(why);
  if (reasons.empty()) closed_.erase(name);
}

standing host_rooms::standing_of(const std::string& name) const {
  return has_host(name) ? rooms_.at(name).is() : standing::stays;
}

std::string host_rooms::what_is_wrong_with(const std::string& host) const {
  if (!has_host(host)) {
    const auto gone = gone_.find(host);
    return fmt::format("{} {}", host, gone == gone_.end() ? "is not there" : gone->second);
  }
  const auto is = standing_of(host);
  if (is == standing::spared) return fmt::format("{} has no cores for the job", host);
  if (is_closed(host))
    return fmt::format("{} is {}", host, closed_.at(host).contains(closure::drained) ? "drained" : "avoided");
  if (is == standing::for_workers) return fmt::format("{} is for workers", host);
  if (is == standing::preemptible) return fmt::format("{} may go at short notice", host);
  return fmt::format("{} has too many", host);
}

} // namespace dlrun::agent
