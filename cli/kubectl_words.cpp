#include "cli/kubectl_words.hpp"

#include "base/utf8.hpp"
#include "cli/kubernetes_objects.hpp"
#include "kubernetes/eviction_budget.hpp"
#include "kubernetes/job_outcome.hpp"
#include "kubernetes/job_wish.hpp"
#include "kubernetes/json_text.hpp"
#include "kubernetes/pod_requests.hpp"
#include "kubernetes/suspension_telling.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

namespace dlrun::cli {
namespace {

using words = std::vector<std::string>;
using kubernetes::member, kubernetes::text_in;
using nlohmann::json;

constexpr int server_major_min = 1;
/// For an answer of the server.
constexpr auto patience = "--request-timeout=30s";
/// Of what Kubernetes says of a pod.
constexpr std::size_t why_max = 400;
/// Of what the control pod has told.
constexpr std::size_t outcome_max = 1100, summary_max = 2000;
/// Of a warning of the server.
constexpr std::size_t warning_max = 1000;
constexpr auto names_only = "--output=name";
/// Of the Prometheus Operator.
constexpr auto monitor_kind = "podmonitors.monitoring.coreos.com";

words with_namespace(const pods_target& of, words all) {
  if (!of.name_space.empty()) all.insert(all.begin(), fmt::format("--namespace={}", of.name_space));
  return all;
}

std::string selector(const pods_target& of) {
  return fmt::format("--selector=app.kubernetes.io/name=dlrun,app.kubernetes.io/instance={}", of.job);
}

/// Names of the objects of these kinds that are marked as the job's own.
words words_for_own(const pods_target& of, const char* kinds) {
  return with_namespace(of, {"get", kinds, selector(of), "--ignore-not-found", names_only, patience});
}

std::string metrics_policy_of(const std::string& job) {
  return fmt::format("networkpolicy.networking.k8s.io/{}-metrics", job);
}

/// As kubectl tells them, but of kinds that a server may not have.
words names_of_objects(const std::string& job) {
  return {"job.batch/" + job,
          "configmap/" + kubernetes::pods_object_of(job),
          "poddisruptionbudget.policy/" + kubernetes::budget_name_of(job),
          "networkpolicy.networking.k8s.io/" + job,
          "networkpolicy.networking.k8s.io/" + job + "-control",
          metrics_policy_of(job),
          "service/" + job,
          "configmap/" + job + "-files",
          "secret/" + job + "-key",
          "rolebinding.rbac.authorization.k8s.io/" + job,
          "role.rbac.authorization.k8s.io/" + job,
          "serviceaccount/" + job};
}

int number_in(const json& of, const char* name) {
  const auto text = text_in(of, name);
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Why a container does not run, as "ImagePullBackOff: no such image".
std::string why_waiting(const json& pod) {
  const auto status = member(pod, "status");
  for (const auto& one : member(status, "containerStatuses")) {
    const auto waiting = member(member(one, "state"), "waiting");
    const auto reason = text_in(waiting, "reason"), message = text_in(waiting, "message");
    if (!reason.empty()) return message.empty() ? reason : fmt::format("{}: {}", reason, message);
  }
  for (const auto& one : member(status, "conditions"))
    if (auto message = text_in(one, "message"); !message.empty()) return message;
  return text_in(status, "reason");
}

/// "exit code 1: the loss is NaN".
std::string outcome_in(const json& annotations) {
  const auto code = text_in(annotations, kubernetes::exit_code_annotation);
  const auto reason = text_in(annotations, kubernetes::reason_annotation);
  if (code.empty()) return "";
  return base::printable(fmt::format("exit code {}{}{}", code, reason.empty() ? "" : ": ", reason),
                         outcome_max);
}

/// ", at step 17 since 2026-11-29T10:00:00Z".
std::string suspension_in(const json& annotations) {
  const auto since = text_in(annotations, kubernetes::suspended_annotation);
  const auto step = text_in(annotations, kubernetes::suspended_step_annotation);
  if (since.empty() || step.empty()) return "";
  return base::printable(fmt::format(", at step {} since {}", step, since), outcome_max);
}

std::string over(const submitted_job& job, const pods_target& of) {
  if (!job.outcome.empty()) return fmt::format("the Job is over ({}): {}", job.ended, job.outcome);
  return fmt::format("the Job is over ({}): 'kubectl logs job/{}' has its last words", job.ended, of.job);
}

std::string way_on(const pods_target& of) {
  return fmt::format("'kubectl patch job {} -p {{\"spec\":{{\"suspend\":false}}}}' lets it go on", of.job);
}

bool does_run(const json& pod) {
  const auto status = member(pod, "status");
  if (text_in(status, "phase") != "Running" ||
      !member(member(pod, "metadata"), "deletionTimestamp").is_null())
    return false;
  const auto containers = member(status, "containerStatuses");
  return std::any_of(containers.begin(), containers.end(),
                     [](const json& one) { return !member(member(one, "state"), "running").is_null(); });
}

} // namespace

std::string pods_target::text() const {
  return fmt::format("{}{}{}{}", pods_scheme, name_space, name_space.empty() ? "" : "/", job);
}

std::string pods_target::place() const {
  return name_space.empty() ? std::string{"the namespace of kubectl's context"}
                            : fmt::format("namespace '{}'", name_space);
}

result<pods_target> read_target(const std::string& text) {
  const auto names = text.substr(std::min(text.size(), pods_scheme.size()));
  const auto slash = names.find('/');
  pods_target made;
  if (slash != names.npos) made.name_space = names.substr(0, slash);
  made.job = slash == names.npos ? names : names.substr(slash + 1);
  const bool is_space = slash == names.npos || is_dns_label(made.name_space);
  if (text.starts_with(pods_scheme) && is_space && is_service_name(made.job, pods_name_max)) return made;
  return fail(error_code::bad_usage,
              fmt::format("'{}' names no job on pods: write k8s://NAMESPACE/JOB, or k8s://JOB in the "
                          "namespace of kubectl's context, both of small letters, digits and '-'",
                          base::printable(text)));
}

words words_for_context() { return {"config", "current-context"}; }
words words_for_version() { return {"version", "--output=json", patience}; }

words words_for_objects(const pods_target& of) {
  auto all = words{"get"};
  std::ranges::copy(names_of_objects(of.job), std::back_inserter(all));
  all.insert(all.end(), {"--ignore-not-found", names_only, patience});
  return with_namespace(of, std::move(all));
}

words words_for_names(const pods_target& of, std::string_view kind, const words& names) {
  words all{"get"};
  for (const auto& name : names) all.push_back(fmt::format("{}/{}", kind, name));
  all.insert(all.end(), {"--ignore-not-found", names_only, patience});
  return with_namespace(of, std::move(all));
}

words words_for_own_objects(const pods_target& of) {
  return words_for_own(
      of, "jobs,poddisruptionbudgets,networkpolicies,services,configmaps,secrets,rolebindings,roles,"
          "serviceaccounts");
}

words words_for_monitor_kind() {
  return {"api-resources", "--api-group=monitoring.coreos.com", names_only, patience};
}

words words_for_own_monitors(const pods_target& of) { return words_for_own(of, monitor_kind); }

words words_for_apply(const pods_target& of, bool is_trial) {
  words all{"apply", "--server-side", "--field-manager=dlrun", patience, "--filename=-"};
  if (is_trial) all.insert(all.begin() + 1, "--dry-run=server");
  return with_namespace(of, std::move(all));
}

words words_for_trial_pod(const pods_target& of) {
  return with_namespace(of, {"create", "--dry-run=server", names_only, patience, "--filename=-"});
}

words words_for_job(const pods_target& of) {
  return with_namespace(of, {"get", "job.batch/" + of.job, "--ignore-not-found", "--output=json", patience});
}

words words_for_control_pods(const pods_target& of) {
  return with_namespace(
      of, {"get", "pods", selector(of) + ",app.kubernetes.io/component=control", "--output=json", patience});
}

words words_for_verb(const pods_target& of, const std::string& pod, const words& verb) {
  words all{"exec", pod, "--container=dlrun", "--", pod_program};
  all.insert(all.end(), verb.begin(), verb.end());
  return with_namespace(of, std::move(all));
}

words words_for_pods_object(const pods_target& of) {
  return with_namespace(of, {"get", "configmap/" + kubernetes::pods_object_of(of.job), "--ignore-not-found",
                             "--output=json", patience});
}

words words_for_hosts(const pods_target& of, std::uint32_t hosts) {
  return with_namespace(of, {"patch", "configmap/" + kubernetes::pods_object_of(of.job), "--type=merge",
                             fmt::format(R"(--patch={{"data":{{"{}":"{}"}}}})", kubernetes::hosts_key, hosts),
                             patience});
}

words words_for_stop(const pods_target& of) {
  return with_namespace(
      of, {"patch", "job.batch/" + of.job, "--type=merge", R"(--patch={"spec":{"suspend":true}})", patience});
}

words words_for_delete(const pods_target& of, const words& objects) {
  words all{"delete"};
  all.insert(all.end(), objects.begin(), objects.end());
  all.insert(all.end(), {"--ignore-not-found", "--timeout=120s"});
  return with_namespace(of, std::move(all));
}

words verb_in_pod(const pods_target& of, words all, std::size_t at) {
  all.at(at) = run_folder_of(of.job);
  return all;
}

result<void> check_version(const std::string& answer, int minor_min) {
  const auto server = member(json::parse(answer, nullptr, false), "serverVersion");
  const auto major = number_in(server, "major"), minor = number_in(server, "minor");
  if (major == 0) return fail(error_code::protocol, "kubectl tells no version of the server");
  if (major > server_major_min || (major == server_major_min && minor >= minor_min)) return {};
  const bool may_be_older = minor_min > server_minor_min && minor >= server_minor_min;
  return fail(
      error_code::bad_usage,
      fmt::format("the cluster runs Kubernetes {}.{}, and this job on pods needs {}.{} or newer: "
                  "use another cluster (kubectl config use-context){}",
                  major, minor, server_major_min, minor_min,
                  may_be_older ? ", or let its journal be in an etcd, and leave --run-claim out" : ""));
}

result<submitted_job> read_job(const pods_target& of, const std::string& answer) {
  const auto job = json::parse(answer, nullptr, false);
  if (!job.is_object())
    return fail(error_code::bad_usage, fmt::format("there is no job '{}' in {}: 'kubectl get jobs' shows "
                                                   "those that are there",
                                                   of.job, of.place()));
  if (text_in(member(member(job, "metadata"), "labels"), "app.kubernetes.io/name") != "dlrun")
    return fail(error_code::bad_usage,
                fmt::format("job '{}' in {} is not one that 'dlrun submit' or 'dlrun manifests' made", of.job,
                            of.place()));
  submitted_job made;
  const auto spec = member(job, "spec");
  const auto suspend = member(spec, "suspend");
  made.is_suspended = suspend.is_boolean() && suspend.get<bool>();
  const auto annotations = member(member(job, "metadata"), "annotations");
  if (made.is_suspended) {
    made.suspended_step = base::printable(text_in(annotations, kubernetes::suspended_step_annotation));
    made.suspended_at = suspension_in(annotations);
  }
  made.outlives_pods = kubernetes::run_outlives_pods(job, run_volume);
  made.leader = text_in(annotations, kubernetes::leader_annotation);
  for (const auto& one : member(member(job, "status"), "conditions")) {
    const auto type = text_in(one, "type");
    if (text_in(one, "status") == "True" && (type == "Complete" || type == "Failed")) made.ended = type;
  }
  made.outcome = outcome_in(annotations);
  made.summary = base::printable(text_in(annotations, kubernetes::summary_annotation), summary_max);
  return made;
}

std::optional<nlohmann::ordered_json> status_without_pod(const pods_target& of, const submitted_job& job) {
  if (job.ended.empty() && !job.is_suspended) return std::nullopt;
  nlohmann::ordered_json told{{"job", of.job}};
  told["status"] = job.ended.empty() ? "suspended" : job.ended == "Complete" ? "completed" : "failed";
  if (const auto step = kubernetes::number_of(job.suspended_step); step && job.ended.empty())
    told["step"] = *step;
  if (!job.outcome.empty()) told["outcome"] = job.outcome;
  if (!job.summary.empty()) told["summary"] = job.summary;
  if (job.ended.empty())
    told["way_on"] = way_on(of);
  else if (job.outcome.empty())
    told["outcome"] = over(job, of);
  told["roles"] = nlohmann::ordered_json::array();
  return told;
}

result<std::uint32_t> check_hosts(const pods_target& of, const std::string& answer,
                                  const std::string& wanted) {
  const auto bounds = member(member(json::parse(answer, nullptr, false), "metadata"), "annotations");
  const auto least = number_in(bounds, hosts_min_annotation), most = number_in(bounds, hosts_max_annotation);
  if (least == 0 || most == 0)
    return fail(
        error_code::bad_usage,
        fmt::format("job '{}' does not say how many hosts it may have: an earlier dlrun submitted it, "
                    "without --hosts-max",
                    of.job));
  const auto hosts = kubernetes::number_of(wanted);
  if (hosts && std::cmp_greater_equal(*hosts, least) && std::cmp_less_equal(*hosts, most)) return *hosts;
  return fail(
      error_code::bad_usage,
      fmt::format("--hosts {}: '{}' was submitted for {} to {} pods beside the control pod: name a number "
                  "of these, or submit jobs with --hosts-min and --hosts-max",
                  base::printable(wanted), of.job, least, most));
}

result<std::string> running_control_pod(const pods_target& of, const submitted_job& job,
                                        const std::string& answer) {
  const auto pods = member(json::parse(answer, nullptr, false), "items");
  std::string states;
  words running;
  for (const auto& pod : pods) {
    const auto name = text_in(member(pod, "metadata"), "name");
    if (!is_dns_name(name)) continue;
    if (does_run(pod)) {
      running.push_back(name);
      continue;
    }
    const auto why = why_waiting(pod);
    states += fmt::format("{}{} is {}{}{}", states.empty() ? "" : "; ", name,
                          text_in(member(pod, "status"), "phase"), why.empty() ? "" : ", ",
                          base::printable(why, why_max));
  }
  if (std::ranges::find(running, job.leader) != running.end()) return job.leader;
  if (running.size() == 1 && job.leader.empty()) return running.front();
  if (!running.empty())
    return fail(
        error_code::role_lost,
        fmt::format("no control pod of '{}' leads: {} run{}, {}. Another one takes over within seconds: try "
                    "again",
                    of.job, fmt::join(running, " and "), running.size() == 1 ? "s" : "",
                    job.leader.empty() ? "and the job has not begun"
                                       : base::printable(job.leader, why_max) + " does not"));
  if (states.empty()) states = "none is there";
  const auto way_out =
      !job.ended.empty() ? over(job, of)
      : job.is_suspended ? fmt::format("the Job is suspended{}: {}{}", job.suspended_at,
                                       job.outcome.empty() ? "" : job.outcome + "; ", way_on(of))
                         : fmt::format("'kubectl describe job/{}' says more; try again when it runs", of.job);
  return fail(error_code::role_lost,
              fmt::format("the control pod of '{}' does not run: {}. {}", of.job, states, way_out));
}

words own_objects(const pods_target& of, const std::string& answer) {
  auto known = names_of_objects(of.job);
  known.push_back(fmt::format("job.batch/{}-hosts", of.job)); // of an earlier dlrun
  known.push_back(fmt::format("podmonitor.monitoring.coreos.com/{}", of.job));
  words own;
  std::istringstream lines(answer);
  for (std::string line; std::getline(lines, line);)
    if (std::ranges::find(known, line) != known.end()) own.push_back(line);
  return own;
}

bool serves_metrics(const pods_target& of, const words& own) {
  return std::ranges::find(own, metrics_policy_of(of.job)) != own.end();
}

bool knows_monitors(const std::string& kinds) { return kinds.find(monitor_kind) != kinds.npos; }

std::string secret_of(const pods_target& of) { return "secret/" + of.job + "-key"; }

words warnings_in(const std::string& complaint) {
  constexpr std::string_view begin = "Warning: ";
  words found;
  std::istringstream lines(complaint);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(begin)) found.push_back(base::printable(line.substr(begin.size()), warning_max));
  return found;
}

bool tells_exit_code(std::string_view line) {
  constexpr std::string_view begin = "command terminated with exit code ";
  const auto number = line.substr(std::min(line.size(), begin.size()));
  return line.starts_with(begin) && !number.empty() &&
         std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; });
}

bool is_unanswered(std::string_view complaint) {
  return complaint.find("Unable to connect to the server") != complaint.npos ||
         complaint.find("The connection to the server") != complaint.npos;
}

} // namespace dlrun::cli
