#include "kubernetes/job_wish.hpp"

#include "kubernetes/job_outcome.hpp"
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

job_wish wish_in(const nlohmann::json& job, const std::string& volume) {
  if (!text_at(job, "/metadata/deletionTimestamp").empty() || !run_outlives_pods(job, volume))
    return job_wish::stop;
  if (member(member(job, "spec"), "suspend") != true) return job_wish::go_on;
  return is_claimed(job, volume) ? job_wish::suspend : job_wish::wait;
}

} // namespace

bool run_outlives_pods(const nlohmann::json& job, const std::string& volume) {
  return is_claimed(job, volume) ||
         text_in(member(member(job, "metadata"), "annotations"), journal_annotation) == journal_in_etcd;
}

answer<job_standing> standing_of(api_client& client, const std::string& job, const std::string& volume,
                                 time_point give_up) {
  const auto found = client.ask(
      {.verb = "get", .group = "batch", .version = "v1", .resource = "jobs", .name = job}, give_up);
  if (!found && found.error().kind == refusal_kind::not_there) return job_standing{job_wish::stop};
  if (!found) return tl::unexpected(found.error());
  return job_standing{wish_in(*found, volume), told_end(*found)};
}

answer<job_wish> wish_of(api_client& client, const std::string& job, const std::string& volume,
                         time_point give_up) {
  const auto standing = standing_of(client, job, volume, give_up);
  if (!standing) return tl::unexpected(standing.error());
  return standing->wish;
}

} // namespace dlrun::kubernetes
