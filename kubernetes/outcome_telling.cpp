#include "kubernetes/outcome_telling.hpp"

#include "base/random.hpp"
#include "kubernetes/json_text.hpp"
#include "kubernetes/pod_requests.hpp"
#include "kubernetes/pod_watch.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dlrun::kubernetes {
namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds poll_period{500};

/// What is not UTF-8 in it is replaced: of a file name, say, in a reason.
std::string dumped(const json& body) { return body.dump(-1, ' ', false, json::error_handler_t::replace); }

api_request for_job(const std::string& verb, const std::string& name, const json& body = {}) {
  return {.verb = verb,
          .group = "batch",
          .version = "v1",
          .resource = "jobs",
          .name = name,
          .body = body.is_null() ? "" : dumped(body)};
}

/// The same each time that it is asked for, so that an answer which was lost makes no second one.
answer<json> make_event(api_client& client, const outcome_telling& what, const json& job,
                        time_point give_up) {
  const auto name = fmt::format("{}.{:016x}", what.job, base::random_number());
  const auto event = event_of(what.outcome, job, name, what.pod, std::chrono::system_clock::now());
  auto made =
      client.ask({.verb = "create", .version = "v1", .resource = "events", .body = dumped(event)}, give_up);
  if (!made && made.error().kind == refusal_kind::conflict) return json::object();
  return made;
}

/// @returns the pods, when none lives any more or `until` has come.
answer<std::vector<pod_record>> wait_for_end(api_client& client, pod_requests& pods, time_point until,
                                             time_point give_up) {
  for (;;) {
    auto all = pods.list(give_up);
    if (!all || std::ranges::none_of(*all, is_alive)) return all;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - client.time().now());
    if (left.count() <= 0) return all;
    client.time().wait(std::min(left, poll_period));
  }
}

answer<json> end_hosts(api_client& client, const outcome_telling& what, time_point give_up) {
  const auto until = client.time().now() + what.hosts_patience;
  pod_requests pods{client, {.job = what.job}};
  const auto all = wait_for_end(client, pods, std::min(until, give_up - 4 * poll_period), give_up);
  if (!all) return tl::unexpected(all.error());
  if (auto refused = pods.remove_all(*all, give_up); !refused.empty())
    return tl::unexpected(std::move(refused.back()));
  return json::object();
}

/// A control pod that Kubernetes starts once more before it takes its Job for failed makes none.
answer<json> want_no_hosts(api_client& client, const outcome_telling& what, time_point give_up) {
  const auto done = pod_requests{client, {.job = what.job}}.want_none(give_up);
  if (!done) return tl::unexpected(done.error());
  return json::object();
}

/// Whether a control pod waits for a node, a volume or its image.
answer<bool> does_one_wait(api_client& client, const std::string& job, time_point give_up) {
  const auto all = client.ask(pods_request("list", control_selector_of(job), "limit=500"), give_up);
  if (!all) return tl::unexpected(all.error());
  for (const auto& one : member(*all, "items"))
    if (text_at(one, "/status/phase") == "Pending" && text_at(one, "/metadata/deletionTimestamp").empty())
      return true;
  return false;
}

/// A Job of two control pods is complete when one has succeeded and the other one has ended too. A
/// standby that never began would hold that up, for good where it has no room. If one pod is wanted
/// the Job controller deletes that which does not run; but only until the other one has succeeded.
answer<json> want_no_standby(api_client& client, const outcome_telling& what, const json& job,
                             time_point give_up) {
  const auto& wanted = member(member(job, "spec"), "parallelism");
  if (!wanted.is_number_integer() || wanted.get<int>() <= 1) return json::object();
  auto waits = does_one_wait(client, what.job, give_up);
  if (waits && *waits)
    if (auto told = client.ask(for_job("patch", what.job, {{"spec", {{"parallelism", 1}}}}), give_up); !told)
      return told;
  while (waits && *waits && client.time().now() + poll_period < give_up) {
    client.time().wait(poll_period);
    waits = does_one_wait(client, what.job, give_up);
  }
  if (!waits) return tl::unexpected(waits.error());
  if (!*waits) return json::object();
  return tl::unexpected(api_refusal{refusal_kind::wrong,
                                    "the standby does not run, and is not deleted: the Job "
                                    "is complete when it has run, or somebody deletes it"});
}

/// Objects are read as Kubernetes writes them; what has another shape is told, as a refusal is.
template <class Call>
answer<json> guarded(Call call) {
  try {
    return call();
  } catch (const json::exception& odd) {
    return tl::unexpected(api_refusal{refusal_kind::wrong,
                                      fmt::format("the API server answers what is no Job: {}", odd.what())});
  }
}

} // namespace

std::vector<std::string> tell_outcome(api_client& client, const outcome_telling& what, time_point give_up) {
  std::vector<std::string> undone;
  const auto note = [&](const answer<json>& told) {
    if (!told && std::ranges::find(undone, told.error().message) == undone.end())
      undone.push_back(told.error().message);
  };
  const auto job = client.ask(for_job("patch", what.job, outcome_patch(what.outcome)), give_up);
  note(job);
  if (job) note(guarded([&] { return make_event(client, what, *job, give_up); }));
  if (job && what.outcome.is_final && what.outcome.exit_code != 0) note(want_no_hosts(client, what, give_up));
  if (job && what.outcome.is_final && what.outcome.exit_code == 0)
    note(guarded([&] { return want_no_standby(client, what, *job, give_up); }));
  if (what.outcome.is_final) note(guarded([&] { return end_hosts(client, what, give_up); }));
  return undone;
}

} // namespace dlrun::kubernetes
