#include "actors/agent/run_board.hpp"

#include <nlohmann/json.hpp>

namespace dlrun::agent {

std::string to_json(const run_snapshot& snapshot) {
  auto roles = nlohmann::ordered_json::array();
  for (const auto& role : snapshot.roles)
    roles.push_back({{"role", protocol::to_string(role.role.kind)},
                     {"index", role.role.index},
                     {"pid", role.pid},
                     {"incarnation", role.incarnation.value},
                     {"state", role.state}});
  return nlohmann::ordered_json{{"job", snapshot.job},     {"status", snapshot.status},
                                {"step", snapshot.step},   {"durable_step", snapshot.durable_step},
                                {"steps", snapshot.steps}, {"roles", std::move(roles)}}
      .dump();
}

void run_board::show(run_snapshot snapshot) {
  const std::scoped_lock lock{mutex_};
  snapshot_ = std::move(snapshot);
}

void run_board::add_event(protocol::job_event event) {
  {
    const std::scoped_lock lock{mutex_};
    events_.push_back(std::move(event));
  }
  changed_.notify_all();
}

void run_board::finish(protocol::job_ended ended) {
  {
    const std::scoped_lock lock{mutex_};
    ended_ = std::move(ended);
  }
  changed_.notify_all();
}

run_snapshot run_board::snapshot() const {
  const std::scoped_lock lock{mutex_};
  return snapshot_;
}

std::optional<protocol::job_ended> run_board::wait(std::chrono::milliseconds patience,
                                                   std::vector<protocol::job_event>& events) {
  std::unique_lock lock{mutex_};
  changed_.wait_for(lock, patience, [this] { return ended_ || !events_.empty(); });
  events = std::exchange(events_, {});
  return ended_;
}

} // namespace dlrun::agent
