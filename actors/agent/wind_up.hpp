/// What the agent of a job does when nothing of the job runs any more.
#pragma once

#include "actors/agent/log_collector.hpp"
#include "actors/agent/routed_launcher.hpp"
#include "actors/agent/store_collector.hpp"
#include "actors/agent/store_gathering.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace dlrun::agent {

struct wind_up_parts {
  std::filesystem::path run_dir;
  std::uint64_t run = 0;                    ///< its number
  std::uint32_t ps_shards = 1;              ///< that have stores
  std::shared_ptr<routed_launcher> hosts{}; ///< null: the job has this host alone
  std::optional<last_stores> gathers{};     ///< the job was complete when this root came (R38)
  /// What the run folder lacks of a model that is complete, "": nothing. Nothing returned: the job
  /// is not complete, as far as its report tells. Called on a thread of its own.
  std::function<std::optional<std::string>()> lacking;
  /// Called once, on a thread of its own, when the job is complete and nothing is lacking: what
  /// else is to be done with the model while the hosts still have it. @returns why they are to wait
  /// for the next root; "": they need not. Null: nothing is to be done.
  std::function<std::string(const std::stop_token&)> deliver{};
  std::function<void(const protocol::job_event&)> tell;
  /// Called once. @param may_go the hosts are not needed any more; else they wait for the next root
  std::function<void(const protocol::job_ended& ended, bool may_go)> done;
};

/// Brings the stores of a job that is complete into the run folder, then the logs of its hosts; one
/// that can be resumed goes on where its stores are, unless its hosts may go for good (R42). A
/// complete job whose stores are not all there, or whose model is wanted elsewhere and is not
/// there, is not over for its hosts (R38). Called by its actor `self` only, which outlives this.
///
///   begin, gather ──> store_collector ──> judge ──> deliver ──> log_collector ──> finish
class wind_up {
public:
  using pointer = protocol::agent_actor::base*;

  wind_up(pointer self, wind_up_parts parts);

  /// What the coordinator says. The hosts of a job that is complete are needed until its stores are
  /// here.
  void on_job_ended(const protocol::job_ended& ended);
  /// The job is stopped, and its stores are wanted here too, as far as they can be brought.
  void bring_all();
  /// Once: nothing runs any more.
  void begin(const protocol::job_ended& ended);
  /// In place of that, at every tick: the job was complete before.
  void gather(protocol::time_point now);
  /// Nobody wants to wait for that any longer.
  void stop(const std::string& reason);

private:
  void tell_waits(const gathered_stores& found);
  void bring(const gathered_stores& found);
  void end_with(std::vector<collected_store> stores);
  void deliver();
  void on_delivered(const std::string& why_not);
  void copy_logs();
  void on_judged(const std::optional<std::string>& lacking);
  void finish();

  pointer self_;
  wind_up_parts parts_;
  store_collector stores_;
  log_collector logs_;
  store_gathering gathering_;
  protocol::job_ended ended_{protocol::job_outcome::completed, {}};
  bool may_go_ = true;
  bool brings_all_ = false;
  bool is_gathered_ = false;
  bool is_over_ = false;
  std::string told_;    ///< for whom it waits
  std::jthread work_{}; ///< what may block: a delivery is asked to stop; joined when this ends
};

} // namespace dlrun::agent
