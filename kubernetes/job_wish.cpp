#include "kubernetes/job_wish.hpp"

#include "kubernetes/job_outcome.hpp"
#include "kubernetes/json_text.hpp"

namespace dlrun::kubernetes {

namespace {

job_wish wish_in(const nlohmann::json& job, const std::string& volume) {
  const auto place = place_of_run(job, volume);
  if (!text_at(job, "/metadata/deletionTimestamp").empty() || place == run_place::pod) return job_wish::stop;
  if (member(member(job, "spec"), "suspend") != true) return job_wish::go_on;
  return place == run_place::claim ? job_wish::suspend : job_wish::wait;
}

} // namespace

std::string claim_in(const nlohmann::json& job, const std::string& volume) {
  const auto& volumes =
      member(member(member(member(job, "spec"), "template"), "spec"), "volumes"); // null where there are none
  if (!volumes.is_array()) return "";
  for (const auto& one : volumes)
    if (text_in(one, "name") == volume) return text_in(member(one, "persistentVolumeClaim"), "claimName");
  return "";
}

run_place place_of_run(const nlohmann::json& job, const std::string& volume) {
  if (!claim_in(job, volume).empty()) return run_place::claim;
  const auto journal = text_in(member(member(job, "metadata"), "annotations"), journal_annotation);
  return journal == journal_in_etcd ? run_place::hosts : run_place::pod;
}

bool run_outlives_pods(const nlohmann::json& job, const std::string& volume) {
  return place_of_run(job, volume) != run_place::pod;
}

answer<nlohmann::json> find_job(api_client& client, const std::string& job, time_point give_up) {
  return client.ask({.verb = "get", .group = "batch", .version = "v1", .resource = "jobs", .name = job},
                    give_up);
}

answer<job_standing> standing_of(api_client& client, const std::string& job, const std::string& volume,
                                 time_point give_up) {
  const auto found = find_job(client, job, give_up);
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
