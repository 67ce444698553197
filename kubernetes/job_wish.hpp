/// What Kubernetes wants of the Job of a control pod that is asked to end.
#pragma once

#include "kubernetes/api_client.hpp"

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace dlrun::kubernetes {

/// Of the Job of a control pod: where the journal of the run is, if not in the run folder.
inline constexpr auto journal_annotation = "dlrun/journal";
inline constexpr auto journal_in_etcd = "etcd";

/// Where the run of a Job is whose control pods have their run folder in a volume.
enum class run_place : std::uint8_t {
  pod,   ///< in that of the control pod, and nowhere else
  hosts, ///< on its hosts, and an etcd has what the next control pod needs to find them (R40)
  claim, ///< the volume is a claim
};
run_place place_of_run(const nlohmann::json& job, const std::string& volume);
/// What a volume of the control pods of a Job is: the name of the claim; "": none.
std::string claim_in(const nlohmann::json& job, const std::string& volume);
/// The Job, as the server tells it. Blocks until `give_up` at most.
answer<nlohmann::json> find_job(api_client& client, const std::string& job, time_point give_up);

/// Whether the run of a Job outlives its control pods.
bool run_outlives_pods(const nlohmann::json& job, const std::string& volume);

enum class job_wish : std::uint8_t {
  go_on,   ///< another pod goes on with it
  stop,    ///< it is being deleted, or gone; or its run goes with its pod (run_outlives_pods())
  wait,    ///< it is suspended, and its run folder goes with its pod: hosts keep what the next one needs
  suspend, ///< it is suspended, and what it needs is to be where its run folder is (R42)
};

/// What is known of a Job whose pods have their run folder in a volume.
struct job_standing {
  job_wish wish = job_wish::go_on;
  /// With this exit code it is over, and Kubernetes knows; nothing: it does not.
  std::optional<int> told{};
};
/// Blocks until `give_up` at most.
answer<job_standing> standing_of(api_client& client, const std::string& job, const std::string& volume,
                                 time_point give_up);
/// That alone which is wanted.
answer<job_wish> wish_of(api_client& client, const std::string& job, const std::string& volume,
                         time_point give_up);

} // namespace dlrun::kubernetes
