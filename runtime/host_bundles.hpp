/// Makes the bundles that agents of other hosts are given at their start.
#pragma once

#include "actors/agent/drain_stage.hpp"
#include "actors/agent/enrolment/admission.hpp"
#include "actors/common/job_context.hpp"
#include "proto/enrolment.pb.h"
#include "proto/host_bundle.pb.h"
#include "runtime/hosts_plan.hpp"
#include "runtime/job_identity.hpp"
#include "runtime/root_secrets.hpp"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace dlrun::runtime {

/// Makes a bundle for each start of an agent, and notes in run.record which hosts the run has had.
/// Thread-safe.
class host_bundles {
public:
  struct parts {
    hosts_plan plan;
    std::shared_ptr<const common::job_context> job;
    std::string agent_address; ///< where the agents of hosts find the agent of the job
    std::shared_ptr<const job_identity> identity;
    root_beats beats;
    std::string data_at{};                   ///< of who gives the data of the job; "" where nobody does
    std::shared_ptr<root_secrets> secrets{}; ///< in which it keeps who has joined
  };
  /// @returns bad_usage for a run without a record, which hosts compare their data with.
  static result<std::shared_ptr<host_bundles>> make(parts from);

  /// The hosts that the run had before this start, for people; "" of a new one.
  const std::string& hosts_before() const { return hosts_before_; }
  /// Folder in which a host keeps its part of this run; "" for a host that the run does not have
  /// now.
  std::string folder_on(const std::string& host) const;
  /// Hosts that are to be drained, by the record (R37).
  std::map<std::string, agent::drain_stage> drains() const;
  result<void> keep_drains(const std::map<std::string, agent::drain_stage>& all);
  /// Changes run.record, and what hosts are told of it from then on.
  result<void> change_record(const std::function<void(records::RunRecord&)>& change);
  /// The same of a change of the job, which begins now: no root takes over what ran the earlier one
  /// (R35).
  result<void> change_job(const std::function<void(records::RunRecord&)>& change);
  /// As written_bundle(), of a host of the list.
  result<std::string> for_listed(const spec::HostSpec& host) const;
  /// Of one that enrolled.
  result<std::string> for_enrolled(const bootstrap::JoinRequest& who, const agent::admission& as);

private:
  host_bundles(parts from, records::RunRecord record);
  result<void> change_locked(const std::function<void(records::RunRecord&)>& change);
  result<void> remember(std::vector<records::RunHost> now);
  result<void> keep_enrolled(const bootstrap::JoinRequest& who, const agent::admission& as);
  result<std::string> finish(bootstrap::HostBundle bundle, std::uint32_t index) const;
  std::string folder_of(const spec::HostSpec& host, const records::RunRecord& record) const;
  bootstrap::HostBundle begin(const std::string& host) const;

  const parts from_;
  const std::string hosts_before_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> folders_; ///< of the hosts that the job has now; likewise
  bootstrap::HostBundle common_;               ///< what all are told alike; guarded by mutex_
};

} // namespace dlrun::runtime
