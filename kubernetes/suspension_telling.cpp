#include "kubernetes/suspension_telling.hpp"

#include "kubernetes/job_wish.hpp"
#include "kubernetes/pod_requests.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dlrun::kubernetes {
namespace {

using nlohmann::json;

std::string patch_for(const suspension& what) {
  const auto when =
      fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", std::chrono::time_point_cast<std::chrono::seconds>(what.at));
  return json{{"metadata",
               {{"annotations",
                 {{suspended_annotation, when}, {suspended_step_annotation, std::to_string(what.step)}}}}}}
      .dump();
}

} // namespace

std::vector<std::string> tell_suspension(api_client& client, const suspension& what, time_point give_up) {
  const auto wish = wish_of(client, what.job, what.volume, give_up);
  if (!wish) return {fmt::format("the pods of hosts stay: {}", wish.error().message)};
  if (*wish != job_wish::suspend) return {};
  std::vector<std::string> undone;
  const auto told = client.ask({.verb = "patch",
                                .group = "batch",
                                .version = "v1",
                                .resource = "jobs",
                                .name = what.job,
                                .body = patch_for(what)},
                               give_up);
  if (!told) undone.push_back(told.error().message);
  if (!what.lacking.empty()) {
    undone.push_back(fmt::format("the pods of hosts stay while the Job is suspended; {}", what.lacking));
    return undone;
  }
  pod_requests pods{client, {.job = what.job}};
  const auto all = pods.list(give_up);
  if (!all) undone.push_back(all.error().message);
  if (all)
    for (auto& refused : pods.remove_all(*all, give_up)) undone.push_back(std::move(refused.message));
  return undone;
}

} // namespace dlrun::kubernetes
