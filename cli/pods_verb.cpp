#include "cli/pods_verb.hpp"

#include "base/utf8.hpp"
#include "cli/complain.hpp"
#include "cli/kubectl.hpp"
#include "cli/kubectl_words.hpp"
#include "cli/told_status.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

namespace dlrun::cli {
namespace {

constexpr std::string_view status_verb = "status";
/// With which a control pod is asked, beside `stop`.
constexpr std::array<std::string_view, 6> asking_verbs{status_verb, "logs",  "events",
                                                       "explain",   "scale", "drain"};
constexpr std::string_view stop_verb = "stop";
/// It has a target too, and its own way.
constexpr std::string_view delete_verb = "delete";

result<submitted_job> job_of(const kubectl& cluster, const pods_target& of) {
  const auto told = cluster.ask(words_for_job(of), fmt::format("cannot look for job '{}'", of.job));
  if (!told) return tl::unexpected(told.error());
  return read_job(of, *told);
}

int tell(const nlohmann::ordered_json& status, const std::vector<std::string>& verb) {
  if (std::ranges::find(verb, "--json") != verb.end())
    say(stdout, "{}\n", status.dump());
  else
    tell_status(status);
  return 0;
}

result<int> ask_pod(const kubectl& cluster, const pods_target& of, const std::vector<std::string>& verb) {
  const auto job = job_of(cluster, of);
  if (!job) return tl::unexpected(job.error());
  const auto pods =
      cluster.ask(words_for_control_pods(of), fmt::format("cannot look for the pods of '{}'", of.job));
  if (!pods) return tl::unexpected(pods.error());
  const auto pod = running_control_pod(of, *job, *pods);
  if (!pod && verb.front() == status_verb)
    if (const auto told = status_without_pod(of, *job)) return tell(*told, verb);
  if (!pod) return tl::unexpected(pod.error());
  return cluster.pass_through(words_for_verb(of, *pod, verb));
}

/// A container that ends by `dlrun stop` would be started again, and go on.
result<int> stop(const kubectl& cluster, const pods_target& of) {
  const auto job = job_of(cluster, of);
  if (!job) return tl::unexpected(job.error());
  if (!job->ended.empty())
    return fail(error_code::bad_usage, fmt::format("the job '{}' is over ({})", of.job, job->ended));
  if (job->is_suspended) return fail(error_code::bad_usage, fmt::format("'{}' is stopped already", of.job));
  if (!job->outlives_pods)
    return fail(error_code::bad_usage,
                fmt::format("'{}' has its run folder in its control pod, with which it would go: submit jobs "
                            "that are to be stopped with --run-claim, or with their journal in an etcd; "
                            "'dlrun delete {}' gives this one up",
                            of.job, of.text()));
  const auto told = cluster.ask(words_for_stop(of), fmt::format("cannot stop '{}'", of.job));
  if (!told) return tl::unexpected(told.error());
  say(stdout, "stopping\n");
  return 0;
}

/// The control pod makes the pods, and deletes those with the highest numbers; where the job is
/// stopped, once it goes on.
result<int> scale_hosts(const kubectl& cluster, const pods_target& of, const std::string& wanted) {
  const auto job = job_of(cluster, of);
  if (!job) return tl::unexpected(job.error());
  if (!job->ended.empty())
    return fail(error_code::bad_usage, fmt::format("the job '{}' is over ({})", of.job, job->ended));
  const auto pods =
      cluster.ask(words_for_pods_object(of), fmt::format("cannot look for the hosts of '{}'", of.job));
  if (!pods) return tl::unexpected(pods.error());
  const auto hosts = check_hosts(of, *pods, wanted);
  if (!hosts) return tl::unexpected(hosts.error());
  const auto told = cluster.ask(words_for_hosts(of, *hosts), fmt::format("cannot scale '{}'", of.job));
  if (!told) return tl::unexpected(told.error());
  say(stdout, "{} pods of hosts are wanted\n", *hosts);
  return 0;
}

/// The value of --hosts, in either form.
std::optional<std::string> hosts_in(const std::vector<std::string>& words) {
  constexpr std::string_view option = "--hosts", with_value = "--hosts=";
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i].starts_with(with_value)) return words[i].substr(with_value.size());
    if (words[i] == option && i + 1 < words.size()) return words[i + 1];
  }
  return std::nullopt;
}

result<int> run(const pods_target& of, const std::vector<std::string>& words, std::size_t at) {
  const auto cluster = find_cluster(server_minor_min);
  if (!cluster) return tl::unexpected(cluster.error());
  if (const auto hosts = hosts_in(words); hosts && words.front() == "scale")
    return scale_hosts(*cluster, of, *hosts);
  return words.front() == stop_verb ? stop(*cluster, of) : ask_pod(*cluster, of, verb_in_pod(of, words, at));
}

} // namespace

std::optional<int> run_on_pods(std::span<const std::string> words) {
  const auto found =
      std::ranges::find_if(words, [](const auto& one) { return one.starts_with(pods_scheme); });
  if (found == words.end() || words.front() == delete_verb) return std::nullopt;
  const bool is_known =
      words.front() == stop_verb || std::ranges::find(asking_verbs, words.front()) != asking_verbs.end();
  if (!is_known)
    return complain({error_code::bad_usage,
                     fmt::format("'{}' cannot be called for a job on pods: {}, stop and delete can",
                                 words.front(), fmt::join(asking_verbs, ", "))});
  const auto target = read_target(*found);
  if (!target) return complain(target.error());
  const auto at = static_cast<std::size_t>(found - words.begin());
  const auto code = run(*target, {words.begin(), words.end()}, at);
  return code ? *code : complain(code.error());
}

} // namespace dlrun::cli
