#include "kubernetes/job_wish.hpp"

#include "kubernetes/json_text.hpp"

#include <algorithm>

namespace dlrun::kubernetes {

namespace {

bool is_claimed(const nlohmann::json& job, const std::string& volume) {
  const auto& volumes =
      member(member(member(member(job, "spec"), "template"), "spec"), "volumes"); // null where there are none
  return volumes.is_array() && std::ranges::any_of(volumes, [&](const auto& one) {
           return text_in(one, "name") == volume && !member(one, "persistentVolumeClaim").is_null();
         });
}

} // namespace

bool run_outlives_pods(const nlohmann::json& job, const std::string& volume) {
  return is_claimed(job, volume) ||
         text_in(member(member(job, "metadata"), "annotations"), journal_annotation) == journal_in_etcd;
}

answer<job_wish> wish_of(api_client& client, const std::string& job, const std::string& volume,
                         time_point give_up) {
  const auto found = client.ask(
      {.verb = "get", .group = "batch", .version = "v1", .resource = "jobs", .name = job}, give_up);
  if (!found && found.error().kind == refusal_kind::not_there) return job_wish::stop;
  if (!found) return tl::unexpected(found.error());
  if (!text_at(*found, "/metadata/deletionTimestamp").empty() || !run_outlives_pods(*found, volume))
    return job_wish::stop;
  if (member(member(*found, "spec"), "suspend") != true) return job_wish::go_on;
  return is_claimed(*found, volume) ? job_wish::suspend : job_wish::wait;
}

} // namespace dlrun::kubernetes
