#include "actors/agent/wind_up.hpp"

#include "actors/common/ask.hpp"
#include "actors/common/held_store.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

namespace dlrun::agent {
namespace {

protocol::job_event agent_event(const char* event, std::string text) {
  return {event, {protocol::role_kind::agent, 0}, {1}, std::move(text)};
}

/// Of one that was brought: "" when it holds the last version.
std::string why_short(const wind_up_parts& parts, ps_shard_id shard, const last_stores& last) {
  const auto found = common::look_at_held_store(parts.run_dir, shard, parts.run);
  if (!found) return found.error().message;
  if (holds(&*found, last)) return "";
  return fmt::format("what came holds step {} of timeline {}, and the last one is step {} of timeline {}",
                     found->end, found->timeline, last.version, last.timeline);
}

/// The store of a PS shard, on a host that is to give it.
store_elsewhere reach(ps_shard_id shard, const std::string& host, const routed_launcher& hosts) {
  return {shard, host, hosts.links().agent_of(host).value_or(protocol::host_agent_actor{})};
}

/// Of the PS shards that ran last on another host.
std::vector<store_elsewhere> last_elsewhere(const routed_launcher& hosts, std::uint32_t ps_shards) {
  std::vector<store_elsewhere> all;
  for (ps_shard_id shard{0}; shard.value < ps_shards; ++shard.value) {
    const auto host = hosts.roles().places().host_of(protocol::ps_shard_role(shard));
    if (!host.empty() && host != hosts.roles().root()) all.push_back(reach(shard, host, hosts));
  }
  return all;
}

} // namespace

wind_up::wind_up(pointer self, wind_up_parts parts)
    : self_{self}
    , parts_{std::move(parts)}
    , stores_{self, parts_.run_dir}
    , logs_{self, parts_.run_dir}
    , gathering_{parts_.gathers.value_or(last_stores{})} {}

void wind_up::on_job_ended(const protocol::job_ended& ended) {
  if (parts_.hosts && ended.outcome == protocol::job_outcome::completed) parts_.hosts->hold_hosts();
}

void wind_up::bring_all() {
  brings_all_ = true;
  if (parts_.hosts) parts_.hosts->hold_hosts();
}

void wind_up::begin(const protocol::job_ended& ended) {
  ended_ = ended;
  std::vector<store_elsewhere> elsewhere;
  if (parts_.hosts && (ended.outcome == protocol::job_outcome::completed || brings_all_))
    elsewhere = last_elsewhere(*parts_.hosts, parts_.ps_shards);
  stores_.collect(std::move(elsewhere), [this](const auto& collected) { end_with(collected); });
}

// ---- a job that was complete before

void wind_up::gather(protocol::time_point now) {
  if (is_gathered_) return;
  const auto found = gathering_.decide(parts_.hosts->roles(), now);
  if (!found.is_settled) return tell_waits(found);
  is_gathered_ = true;
  bring(found);
}

void wind_up::tell_waits(const gathered_stores& found) {
  const auto& roles = parts_.hosts->roles();
  if (found.missing.empty() || !roles.starts().is_empty()) return;
  const auto awaited = roles.joining().awaited(roles.roster(), roles.places());
  auto text = fmt::format("the job is complete, and the last version of PS shard {} is on no host that is "
                          "there yet{}",
                          fmt::join(found.missing, ", "), awaited.empty() ? "" : "; " + awaited);
  if (text == told_) return;
  parts_.tell(agent_event("stores-awaited", text));
  told_ = std::move(text);
}

void wind_up::bring(const gathered_stores& found) {
  std::vector<store_elsewhere> elsewhere;
  for (const auto& one : found.bring) elsewhere.push_back(reach(one.shard, one.host, *parts_.hosts));
  stores_.collect(std::move(elsewhere), [this, missing = found.missing](auto collected) {
    for (auto& one : collected)
      if (one.failure.empty()) one.failure = why_short(parts_, one.shard, *parts_.gathers);
    for (const auto shard : missing) {
      parts_.tell(agent_event("store-stays", fmt::format("the last version of ps_shard {} is on no host "
                                                         "that is there",
                                                         shard)));
      may_go_ = false;
    }
    end_with(std::move(collected));
  });
}

void wind_up::stop(const std::string& reason) {
  if (is_over_) return;
  is_gathered_ = true;
  ended_ = {protocol::job_outcome::interrupted, reason};
  may_go_ = false;
  finish();
}

// ---- the end

void wind_up::end_with(std::vector<collected_store> stores) {
  if (is_over_) return;
  for (const auto& event : tell_collected(stores)) parts_.tell(event);
  if (ended_.outcome != protocol::job_outcome::completed) return copy_logs();
  if (std::ranges::any_of(stores, [](const auto& one) { return !one.failure.empty(); })) may_go_ = false;
  if (!parts_.lacking) return on_judged(std::nullopt);
  work_ =
      std::jthread{[this, lacking = parts_.lacking, post = common::poster<protocol::agent_actor>{self_}](
                       const std::stop_token&) { post([this, found = lacking()] { on_judged(found); }); }};
}

/// The run folder decides, whatever was brought: a PS shard that has just been placed anew has an
/// empty store, and a copy there may have what could not be fetched.
void wind_up::on_judged(const std::optional<std::string>& lacking) {
  if (is_over_) return;
  if (lacking) may_go_ = lacking->empty();
  if (may_go_) return parts_.deliver ? deliver() : copy_logs();
  ended_ = {protocol::job_outcome::failed, "the job is complete, and not all of its stores could be brought",
            error_code::role_lost};
  copy_logs();
}

/// Hosts are heard and answered meanwhile.
void wind_up::deliver() {
  work_ = std::jthread{[this, deliver = parts_.deliver,
                        post = common::poster<protocol::agent_actor>{self_}](const std::stop_token& stop) {
    auto why_not = deliver(stop);
    post([this, why_not = std::move(why_not)] { on_delivered(why_not); });
  }};
}

void wind_up::on_delivered(const std::string& why_not) {
  if (is_over_) return;
  if (!why_not.empty()) {
    may_go_ = false;
    ended_ = {protocol::job_outcome::failed, why_not, error_code::system};
  }
  copy_logs();
}

/// However it has ended: the hosts may be gone when somebody looks.
void wind_up::copy_logs() {
  std::vector<logging_host> elsewhere;
  if (parts_.hosts) elsewhere = parts_.hosts->links().with_logs();
  logs_.collect(std::move(elsewhere), [this](const auto& staying) {
    if (is_over_) return;
    for (const auto& event : tell_staying(staying)) parts_.tell(event);
    finish();
  });
}

void wind_up::finish() {
  is_over_ = true;
  parts_.done(ended_, may_go_);
}

} // namespace dlrun::agent
