/// What the agent of a job starts roles and reaches other hosts with: the test says what comes of
/// it.
#pragma once

#include "actors/agent/routed_launcher.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace dlrun::agent {

/// Starts nothing: keeps what is ordered.
class order_book : public role_launcher {
public:
  void start(const launch_order& order, const launch_events& events) override {
    starts.push_back(order);
    events_ = events;
  }
  std::vector<seen_work> look() override { return work; }
  void stop(const protocol::role_name& role, const protocol::fence&, protocol::stop_how) override {
    stops.push_back(role);
  }
  bool has(const protocol::role_name& role) const {
    return std::ranges::find(starts, role, &launch_order::role) != starts.end();
  }
  void started(const launch_order& which) { events_.started(which.role, which.self, 100); }
  void exited(const launch_order& which, const role_end& how) { events_.exited(which.role, which.self, how); }

  std::vector<launch_order> starts;
  std::vector<protocol::role_name> stops;
  std::vector<seen_work> work;

private:
  launch_events events_;
};

/// Runs no command: the test makes the agents of hosts.
class order_of_hosts : public host_starter {
public:
  void run(const std::string& host, std::function<void(std::string)> ended) override {
    runs.push_back(host);
    ended_ = std::move(ended);
  }
  void kill(const std::string& host) override { kills.push_back(host); }
  void ask_to_end(const std::string&) override {}
  void end(const std::string& why) { ended_(why); }

  std::vector<std::string> runs;
  std::vector<std::string> kills;

private:
  std::function<void(std::string)> ended_;
};

/// Beats nobody: the test says what is seen.
class beats_by_hand : public beat_service {
public:
  explicit beats_by_hand(std::string address)
      : address_{std::move(address)} {}

  const std::string& address() const override { return address_; }
  result<void> watch(const beat_peer& peer, told tell) override {
    watched[peer.name] = peer;
    tells_[peer.name] = std::move(tell);
    return {};
  }
  void forget(const std::string& name) override { watched.erase(name); }
  result<void> call(const beat_peer&, protocol::time_point) override { return {}; }
  void note_turn() override { ++turns; }
  void see(const std::string& name, const sighting& what) { tells_.at(name)(what); }

  std::map<std::string, beat_peer> watched;
  int turns = 0;

private:
  std::string address_;
  std::map<std::string, told> tells_;
};

} // namespace dlrun::agent
