#include "cli/pods_verb.hpp"

#include "base/utf8.hpp"
#include "cli/complain.hpp"
#include "cli/kubectl.hpp"
#include "cli/kubectl_words.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>
#include <vector>

namespace dlrun::cli {
namespace {

/// With which a control pod is asked, beside `stop`.
constexpr std::array asking_verbs{"status", "logs", "events", "explain", "scale", "drain"};
constexpr std::string_view stop_verb = "stop";
/// It has a target too, and its own way.
constexpr std::string_view delete_verb = "delete";

result<submitted_job> job_of(const kubectl& cluster, const pods_target& of) {
  const auto told = cluster.ask(words_for_job(of), fmt::format("cannot look for job '{}'", of.job));
  if (!told) return tl::unexpected(told.error());
  return read_job(of, *told);
}

result<int> ask_pod(const kubectl& cluster, const pods_target& of, const std::vector<std::string>& verb) {
  const auto job = job_of(cluster, of);
  if (!job) return tl::unexpected(job.error());
  const auto pods =
      cluster.ask(words_for_control_pods(of), fmt::format("cannot look for the pods of '{}'", of.job));
  if (!pods) return tl::unexpected(pods.error());
  const auto pod = running_control_pod(of, *job, *pods);
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
  if (!job->has_run_claim)
    return fail(error_code::bad_usage,
                fmt::format("'{}' has its run folder in its control pod, with which it would go: submit jobs "
                            "that are to be stopped with --run-claim; 'dlrun delete {}' gives this one up",
                            of.job, of.text()));
  const auto told = cluster.ask(words_for_stop(of), fmt::format("cannot stop '{}'", of.job));
  if (!told) return tl::unexpected(told.error());
  say(stdout, "stopping\n");
  return 0;
}

result<int> run(const pods_target& of, const std::vector<std::string>& words, std::size_t at) {
  const auto cluster = find_cluster();
  if (!cluster) return tl::unexpected(cluster.error());
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
