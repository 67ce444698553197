/// The agent of the job with a collector, and agents of other hosts, as scripts, in one actor
/// system, in virtual time.
#pragma once

#include "tests/actors/quiet_agent.hpp"
#include "tests/actors/virtual_actors.hpp"
#include "tests/data/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::agent {

/// The agent of a host that is asked for stores and logs, and for nothing else.
template <class StoreListing, class StorePart, class LogListing, class LogPart>
protocol::host_agent_actor::behavior_type asked_host(StoreListing on_store_listing, StorePart on_store_part,
                                                     LogListing on_log_listing, LogPart on_log_part) {
  return {[](const protocol::start_order&) {},
          [](const protocol::stop_order&) {},
          [](const protocol::start_told&) {},
          std::move(on_store_listing),
          std::move(on_store_part),
          std::move(on_log_listing),
          std::move(on_log_part),
          [](const protocol::snapshots_wanted&) { return protocol::store_listing{}; },
          [](const protocol::snapshot_part_wanted&) { return protocol::store_part{}; },
          [](const protocol::dismissal&) {},
          [](const protocol::tick&) {},
          [](const protocol::continuation&) {}};
}

template <class Collector, class Script>
class collector_test : public testing::Test, protected test::virtual_time {
protected:
  collector_test() {
    agent = system.spawn([this](protocol::agent_actor::pointer self) {
      collector.emplace(self, run_dir());
      return test::quiet_agent(
          [](const protocol::heartbeat&) { return protocol::coordinator_location{}; },
          [](const protocol::credentials_wanted&) { return protocol::role_credentials{}; });
    });
    std::filesystem::create_directories(run_dir());
    dispatch();
  }
  ~collector_test() override {
    for (const auto& host : hosts) caf::anon_send_exit(host, caf::exit_reason::kill);
    caf::anon_send_exit(agent, caf::exit_reason::kill);
    hosts.clear();
    agent = nullptr;
    dispatch();
  }

  std::filesystem::path run_dir() const { return folder.path() / "run"; }
  /// A host whose script has this name from now on.
  template <class Play>
  protocol::host_agent_actor add_host(const std::string& name, std::shared_ptr<Script> script, Play play) {
    scripts[name] = script;
    hosts.push_back(system.spawn(play, std::move(script)));
    return hosts.back();
  }
  template <class Answer, class Wanted>
  void begin(Wanted wanted, std::optional<Answer>& said) {
    common::post(agent,
                 [&] { collector->collect(std::move(wanted), [&said](const auto& all) { said = all; }); });
    dispatch();
  }
  /// What the collector says at the end, in virtual time; `took` is how long that was, where no
  /// thread works.
  template <class Answer, class Wanted>
  Answer collected(Wanted wanted) {
    std::optional<Answer> said;
    begin(std::move(wanted), said);
    took = std::chrono::milliseconds{0};
    dispatch_until([&] {
      if (said) return true;
      took += step;
      scheduler.advance_time(step);
      return false;
    });
    return said.value_or(Answer{});
  }

  test::temporary_folder folder;
  std::map<std::string, std::shared_ptr<Script>> scripts;
  std::vector<protocol::host_agent_actor> hosts;
  std::optional<Collector> collector;
  protocol::agent_actor agent;
  std::chrono::milliseconds took{};
};

} // namespace dlrun::agent
