/// What kubectl is asked for a job on pods, and what its answers mean. Nothing here runs it.
#pragma once

#include <cstdint>
#include <dlrun/error.hpp>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlrun::cli {

/// A job in a cluster, as k8s://NAMESPACE/JOB names it; k8s://JOB is in the namespace of kubectl's
/// context.
struct pods_target {
  std::string name_space; ///< "": that of the context
  std::string job;        ///< name of the Job of the control pod

  std::string text() const;
  /// For people: where it is.
  std::string place() const;
  bool operator==(const pods_target&) const = default;
};

inline constexpr std::string_view pods_scheme = "k8s://";

/// @returns bad_usage for a name that no such object can have.
result<pods_target> read_target(const std::string& text);

// Words for kubectl, without its own name. Names in them were checked: none is taken for an option.

/// Of the context in use; asks no server.
std::vector<std::string> words_for_context();
/// Versions of kubectl and of the server, as JSON.
std::vector<std::string> words_for_version();
/// Names of all objects that a job of that name has or would have, of those that are there.
std::vector<std::string> words_for_objects(const pods_target& of);
/// Of objects of one kind the names of those that are there.
std::vector<std::string> words_for_names(const pods_target& of, std::string_view kind,
                                         const std::vector<std::string>& names);
/// Names of the objects of any kind that a job has, which are marked as its own.
std::vector<std::string> words_for_own_objects(const pods_target& of);
/// Which kinds of the Prometheus Operator the server knows.
std::vector<std::string> words_for_monitor_kind();
/// As words_for_own_objects(), of a server that knows PodMonitors.
std::vector<std::string> words_for_own_monitors(const pods_target& of);
/// Applies what comes on stdin. @param is_trial the server says what would be, and changes nothing
std::vector<std::string> words_for_apply(const pods_target& of, bool is_trial);
/// Whether a pod that comes on stdin would be made; the right to create pods is enough for it.
std::vector<std::string> words_for_trial_pod(const pods_target& of);
/// The Job of the control pod as JSON; nothing where it is not there.
std::vector<std::string> words_for_job(const pods_target& of);
/// Its pods as JSON.
std::vector<std::string> words_for_control_pods(const pods_target& of);
/// Runs dlrun with these words in a pod.
std::vector<std::string> words_for_verb(const pods_target& of, const std::string& pod,
                                        const std::vector<std::string>& verb);
/// The ConfigMap that controls the pods of hosts as JSON; nothing where it is not there.
std::vector<std::string> words_for_pods_object(const pods_target& of);
/// Has it want so many pods.
std::vector<std::string> words_for_hosts(const pods_target& of, std::uint32_t hosts);
/// Ends the control pod in order, and lets none follow.
std::vector<std::string> words_for_stop(const pods_target& of);
/// @param objects as words_for_own_objects() has them told
std::vector<std::string> words_for_delete(const pods_target& of, const std::vector<std::string>& objects);

/// The verb with its words, as it is called in the control pod: the folder of the run stands where
/// the target stood. @param words of the command line behind "dlrun"; `at` of them is the target
std::vector<std::string> verb_in_pod(const pods_target& of, std::vector<std::string> words, std::size_t at);

/// Versions 1.N of Kubernetes: the oldest that a job of `dlrun manifests` runs on, and the oldest
/// for one whose control pods may not overlap, since it heeds `podReplacementPolicy`
/// (docs/kubernetes.md).
inline constexpr int server_minor_min = 27, server_minor_min_alone = 29;

/// @param answer to words_for_version(). @returns bad_usage when the server is older than 1.N for
/// `minor_min`, protocol when that is no answer.
result<void> check_version(const std::string& answer, int minor_min);

/// What is known of the Job of a control pod.
struct submitted_job {
  bool is_suspended = false;
  std::string suspended_step{}; ///< as its control pod told; "" where it has not
  std::string suspended_at{};   ///< ", at step 17 since 2026-...", likewise
  bool outlives_pods = false;   ///< the run, its control pod
  std::string leader{};  ///< that of two control pods which has the run; "": nobody says, or there is one
  std::string ended{};   ///< "Complete" or "Failed"; "" while it runs
  std::string outcome{}; ///< exit code and reason, as its control pod told them; "" where it has not
  std::string summary{}; ///< what the report says, likewise
};

/// @param answer to words_for_job(). @returns bad_usage when there is no such job, or it is not one
/// of dlrun's.
result<submitted_job> read_job(const pods_target& of, const std::string& answer);

/// May a job have `wanted` pods of hosts? @param answer to words_for_pods_object(). @returns them;
/// bad_usage, naming the bounds, when not.
result<std::uint32_t> check_hosts(const pods_target& of, const std::string& answer,
                                  const std::string& wanted);

/// What Kubernetes knows of a job that is over or suspended, in the form of `dlrun status --json`;
/// nothing of another one.
std::optional<nlohmann::ordered_json> status_without_pod(const pods_target& of, const submitted_job& job);

/// The control pod whose container runs; of two the one that leads. @param answer to
/// words_for_control_pods(). @returns role_lost when none does, saying what there is instead.
result<std::string> running_control_pod(const pods_target& of, const submitted_job& job,
                                        const std::string& answer);

/// Of the names that kubectl told, those that a job of this name gives its objects.
std::vector<std::string> own_objects(const pods_target& of, const std::string& answer);
/// Whether the job serves metrics, so that there may be a PodMonitor too. @param own its objects
bool serves_metrics(const pods_target& of, const std::vector<std::string>& own);
/// Whether the server knows PodMonitors. @param kinds answer to words_for_monitor_kind()
bool knows_monitors(const std::string& kinds);

/// The Secret with a job's key, among them.
std::string secret_of(const pods_target& of);

/// Of the server, as kubectl shows them beside what else it complains of.
std::vector<std::string> warnings_in(const std::string& complaint);

/// kubectl's own line behind the output of a command that failed in a pod.
bool tells_exit_code(std::string_view line);

/// Whether kubectl complains that no server answers, and says nothing of what was asked.
bool is_unanswered(std::string_view complaint);

} // namespace dlrun::cli
