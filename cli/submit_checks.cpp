#include "cli/submit_checks.hpp"

#include "cli/complain.hpp"
#include "cli/named_objects.hpp"
#include "cli/trial_pods.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace dlrun::cli {
namespace {

using told_warnings = std::set<std::string>;

tl::unexpected<error> unanswered(const std::string& complaint) {
  return fail(error_code::system,
              fmt::format("cannot look whether Kubernetes takes the job, of which nothing is "
                          "there: {}",
                          in_one_line(complaint)));
}

/// Nobody's objects are written over.
result<void> check_free(const kubectl& cluster, const pods_target& of, const pods_wish& pods) {
  const auto told = cluster.ask(words_for_objects(of), "cannot look whether the job is there already");
  if (!told) return tl::unexpected(told.error());
  auto there = own_objects(of, *told);
  if (!pods.secret.empty()) std::erase(there, secret_of(of)); // it makes none
  if (there.empty()) return {};
  return fail(error_code::bad_usage,
              fmt::format("there is {} already: 'dlrun delete {}' removes a job, and --name gives this one "
                          "another name",
                          there.front(), of.text()));
}

/// What the options name. Pods that lack one of them stay Pending, and Kubernetes takes their Job.
result<void> check_named(const kubectl& cluster, const pods_target& of, const pods_wish& pods) {
  std::string problems;
  for (const auto& named : objects_named_by(pods)) {
    const auto answer = cluster.run(words_for_named(of, named));
    if (!answer) return tl::unexpected(answer.error());
    const auto missing = not_told(named, answer->output);
    const auto said = in_one_line(answer->complaint);
    if (answer->code != 0 && !is_untold(answer->complaint))
      return fail(error_code::system,
                  fmt::format("cannot look whether what the options name is there: {}", said));
    for (const auto& one : missing)
      if (answer->code != 0)
        warn(fmt::format("{} '{}': whether there is such a {} is not known: {}", one.option, one.name,
                         named.shown, said));
      else
        problems += (problems.empty() ? "" : "\n") + tell_missing(of, named, one);
  }
  if (problems.empty()) return {};
  return fail(error_code::bad_usage, problems);
}

/// Each once: the server has the same to say of a Job and of its pods.
void tell_warnings(const std::string& complaint, told_warnings& told) {
  for (const auto& one : warnings_in(complaint))
    if (told.insert(one).second) warn(fmt::format("Kubernetes says: {}", one));
}

result<void> try_objects(const kubectl& cluster, const pods_target& of, const std::string& manifests,
                         told_warnings& told) {
  const auto answer = cluster.run(words_for_apply(of, true), manifests);
  if (!answer) return tl::unexpected(answer.error());
  if (answer->code != 0 && is_unanswered(answer->complaint)) return unanswered(answer->complaint);
  if (answer->code != 0)
    return fail(error_code::bad_usage,
                fmt::format("Kubernetes refuses the job, and nothing of it is there: {}",
                            in_one_line(answer->complaint)));
  tell_warnings(answer->complaint, told);
  return {};
}

/// @returns how it ended, where that does not refuse the job
result<trial_end> try_pod(const kubectl& cluster, const pods_target& of, const trial_pod& pod,
                          told_warnings& told) {
  const auto answer = cluster.run(words_for_trial_pod(of), pod.manifest);
  if (!answer) return tl::unexpected(answer.error());
  const auto end = end_of_trial(answer->code, answer->complaint);
  const auto said = in_one_line(answer->complaint);
  if (end == trial_end::unanswered) return unanswered(answer->complaint);
  if (end == trial_end::refused)
    return fail(error_code::bad_usage,
                fmt::format("Kubernetes refuses {}, and nothing of the job is there: {}", pod.what, said));
  if (end == trial_end::taken) tell_warnings(answer->complaint, told);
  if (end == trial_end::no_room)
    warn(fmt::format("there is no room now for {}, and it waits for some: {}", pod.what, said));
  if (end == trial_end::not_tried)
    warn(fmt::format("whether Kubernetes takes the pods of the job is not known before they are made: {}",
                     said));
  return end;
}

} // namespace

result<void> check_submit(const kubectl& cluster, const pods_target& of, const pods_wish& pods,
                          const std::string& manifests) {
  if (auto free = check_free(cluster, of, pods); !free) return free;
  told_warnings told;
  if (auto taken = try_objects(cluster, of, manifests, told); !taken) return taken;
  if (auto there = check_named(cluster, of, pods); !there) return there;
  for (const auto& pod : trial_pods_of(pods)) {
    const auto end = try_pod(cluster, of, pod, told);
    if (!end) return tl::unexpected(end.error());
    if (*end == trial_end::not_tried) break; // so it is with the next one
  }
  return {};
}

} // namespace dlrun::cli
