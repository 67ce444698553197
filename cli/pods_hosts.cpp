#include "cli/pods_hosts.hpp"

#include "actors/agent/host_roster.hpp"
#include "base/own_machine.hpp"
#include "cli/complain.hpp"
#include "cli/kubernetes_objects.hpp"
#include "cli/own_api.hpp"
#include "cli/pod_template_check.hpp"
#include "kubernetes/eviction_budget.hpp"
#include "kubernetes/job_wish.hpp"
#include "kubernetes/pod_memory.hpp"
#include "kubernetes/pod_requests.hpp"

#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

namespace dlrun::cli {
namespace {

/// For the API server, once the pod is asked to end.
constexpr std::chrono::seconds wish_patience{1};

kubernetes::host_standing standing_of(const std::string& state) {
  if (state == to_string(agent::host_state::away)) return kubernetes::host_standing::away;
  const bool comes =
      state == to_string(agent::host_state::starting) || state == to_string(agent::host_state::joining);
  return comes ? kubernetes::host_standing::joining : kubernetes::host_standing::there;
}

} // namespace

kubernetes::host_sights sights_of(const std::string& job, const agent::run_snapshot& now) {
  kubernetes::host_sights all;
  for (const auto& host : now.hosts)
    if (const auto slot = kubernetes::slot_of(job, host.name))
      all[*slot] = {standing_of(host.state), host.address, !host.loses.empty()};
  for (const auto& [name, address] : now.turned_away)
    if (const auto slot = kubernetes::slot_of(job, name)) all[*slot].turned_away = address;
  return all;
}

result<nlohmann::json> read_pod_template(const std::string& key) {
  const auto path = fmt::format("{}/{}", job_folder, key);
  std::ifstream file{path};
  if (!file && key == ps_template_key) return nlohmann::json{}; // the job has no such pods
  auto read = nlohmann::json::parse(file, nullptr, false);
  if (read.is_object()) return read;
  return fail(
      error_code::bad_usage,
      fmt::format("'{}' holds no template for the pods of hosts: 'dlrun manifests' writes a ConfigMap "
                  "that does",
                  path));
}

verb_end ended_for(const std::optional<kubernetes::pods_end>& why, verb_end ended) {
  if (!why || ended.code != static_cast<int>(job::exit_code::interrupted)) return ended;
  ended.code = why->exit_code;
  ended.reason = why->why;
  ended.error.reset();
  ended.is_for_good = true;
  return ended;
}

result<void> pods_hosts::begin() {
  const auto place = find_own_api();
  if (!place) return tl::unexpected(place.error());
  const auto pod_template = read_pod_template(pod_template_key),
             ps_template = read_pod_template(ps_template_key);
  if (!pod_template) return tl::unexpected(pod_template.error());
  if (!ps_template) return tl::unexpected(ps_template.error());
  for (const auto& [key, read] :
       {std::pair{pod_template_key, &*pod_template}, {ps_template_key, &*ps_template}})
    if (!read->is_null())
      if (auto sound = check_pod_template(*read, job_, fmt::format("{}/{}", job_folder, key)); !sound)
        return sound;
  const auto own = base::host_name();
  auto started = kubernetes::pod_service::start(
      *place, {.job = job_, .own_pod = own, .pod_template = *pod_template, .ps_template = *ps_template},
      {.tell = [](const auto& text) { note(text); },
       .warn = [](const auto& text) { warn(text); },
       .has_standby = kubernetes::has_standby(*pod_template),
       .budget = kubernetes::budget_of(*pod_template),
       .rules = {.memory_max = kubernetes::memory_max_of(*pod_template)},
       .starts = kubernetes::start_rules_of(*pod_template),
       .silences = {.root = fmt::format("control pod {} ({}) at TCP port {}", own, address_, join_port)}});
  if (!started) return tl::unexpected(started.error());
  const std::scoped_lock lock{mutex_};
  service_ = std::move(*started);
  return {};
}

std::shared_ptr<kubernetes::pod_service> pods_hosts::service() const {
  const std::scoped_lock lock{mutex_};
  return service_;
}

result<void> pods_hosts::may_join(const agent::arriving_host& who) const {
  const auto slot = kubernetes::slot_of(job_, who.name);
  if (!slot)
    return fail(error_code::bad_usage,
                fmt::format("host {} is no pod of job '{}', and its hosts are its pods", who.name, job_));
  const auto of = service();
  if (!of) return fail(error_code::in_use, "no pods are made for the job now");
  const auto why = of->why_not_in({*slot, who.pod, who.address});
  if (why.empty()) return {};
  return fail(error_code::in_use, fmt::format("host {}: {}", who.name, why));
}

void pods_hosts::see(const agent::run_snapshot& now) {
  if (const auto to = service(); to && !now.hosts.empty()) to->hosts_are(sights_of(job_, now));
}

void pods_hosts::see_who_comes(const agent::run_snapshot& now) {
  if (const auto to = service()) to->hosts_come(sights_of(job_, now));
}

void pods_hosts::pause() {
  if (const auto to = service()) to->pause();
}

std::optional<kubernetes::pods_end> pods_hosts::end() const {
  const auto of = service();
  return of ? of->end() : std::nullopt;
}

term_wish pods_hosts::on_term() {
  auto wish = kubernetes::job_wish::go_on; // unless somebody says otherwise
  const auto asked = with_own_api([&](kubernetes::api_client& client) {
    wish = kubernetes::wish_of(client, job_, run_volume, client.time().now() + wish_patience).value_or(wish);
  });
  if (!asked) warn(asked.error().message);
  if (wish == kubernetes::job_wish::go_on) return term_wish::hand_over;
  if (wish != kubernetes::job_wish::suspend) return term_wish::stop;
  const auto ended = [this] {
    const std::scoped_lock lock{mutex_};
    return std::exchange(service_, nullptr);
  }();
  return term_wish::suspend;
}

std::vector<std::string> pods_hosts::held_up_by() const {
  const auto of = service();
  return of ? of->held_up_by() : std::vector<std::string>{};
}

} // namespace dlrun::cli
