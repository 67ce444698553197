/// An actor system in virtual time: the test runs its actors, and says how time passes.
#pragma once

#include "actors/protocol/time.hpp"
#include "actors/protocol/type_ids.hpp"

#include <caf/scheduler/test_coordinator.hpp>
#include <chrono>
#include <gtest/gtest.h>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace dlrun::test {

struct virtual_actors : caf::actor_system_config {
  virtual_actors() {
    set("scheduler.policy", caf::atom("testing"));
    add_message_types<caf::id_block::dlrun>();
  }
};

/// CAF's own, to which threads of actors may post too: what they post is taken by the test's
/// thread.
class virtual_scheduler : public caf::scheduler::test_coordinator {
public:
  using test_coordinator::test_coordinator;

  /// @returns whether there was anything
  bool take_posted() {
    const std::scoped_lock lock{mutex_};
    jobs.insert(jobs.end(), posted_.begin(), posted_.end());
    return !std::exchange(posted_, {}).empty();
  }

protected:
  void enqueue(caf::resumable* job) override {
    if (std::this_thread::get_id() == test_) return test_coordinator::enqueue(job);
    const std::scoped_lock lock{mutex_};
    posted_.push_back(job);
  }

private:
  const std::thread::id test_ = std::this_thread::get_id();
  std::mutex mutex_;
  std::vector<caf::resumable*> posted_;
};

struct virtual_actors_with_threads : virtual_actors {
  virtual_actors_with_threads() {
    module_factories.emplace_back([](caf::actor_system& of) { return new virtual_scheduler{of}; });
  }
};

/// The system and its time. What is spawned in it is to end before it goes.
class virtual_time {
protected:
  static constexpr std::chrono::milliseconds step{100};

  /// Handles all messages that are there.
  void dispatch() {
    do {
      while (scheduler.try_run_once()) {
      }
    } while (scheduler.take_posted());
  }
  /// Until `holds()`, for which threads of actors have to work. Virtual time stands still.
  template <class Condition>
  void dispatch_until(const Condition& holds) {
    const auto due = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    for (dispatch(); !holds(); dispatch()) {
      ASSERT_LT(std::chrono::steady_clock::now(), due) << "it never comes about";
      std::this_thread::yield();
    }
  }
  /// In steps, as long as ticks of actors are apart.
  void pass(std::chrono::milliseconds time) {
    for (; time.count() > 0; time -= step) {
      now += step;
      scheduler.advance_time(step);
      dispatch();
    }
  }

  protocol::time_point now{std::chrono::hours(1)};
  virtual_actors_with_threads config;
  caf::actor_system system{config};
  virtual_scheduler& scheduler = dynamic_cast<virtual_scheduler&>(system.scheduler());
};

} // namespace dlrun::test
