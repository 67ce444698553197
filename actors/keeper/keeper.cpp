#include "actors/keeper/keeper.hpp"

#include "actors/common/connect.hpp"
#include "actors/common/history_conversion.hpp"
#include "job/choices.hpp"
#include "job/quantity.hpp"

#include <chrono>

namespace dlrun::keeper {
namespace {

constexpr auto tick_period = std::chrono::milliseconds(100);
/// A record is a gradient, and what replay needs beside it.
constexpr std::uint64_t record_slack_bytes = std::uint64_t{1} << 20;

store_mirror_options mirror_options(const common::role_context& context) {
  const auto& job = *context.job;
  const auto shard = protocol::shard_of(context.role);
  const bool is_synced = job::durability_sync_of(job.spec) == job::durability_sync::power;
  store_mirror_options made{.role = context.role, .self = context.self.incarnation};
  made.store.directory = common::store_directory(job.run_dir, shard).string();
  made.store.run = job.run;
  made.store.sync = is_synced ? persistence::sync_mode::power : persistence::sync_mode::process;
  made.store.disk_quota_bytes =
      job::parse_bytes(job.spec.durability().disk_quota()).value_or(0) / job.ps_shards();
  made.record_bytes_max = job.shards.at(shard.value).size * sizeof(float) + record_slack_bytes;
  return made;
}

} // namespace

keeper_state::behavior keeper_state::start(pointer self, common::role_context context) {
  self->state.role.reset(new keeper_state(self, std::move(context)));
  auto& role = *self->state.role;
  if (const auto opened = role.open_channel(); !opened) role.quit(opened.error().message);
  return role.make_behavior();
}

keeper_state::keeper_state(pointer self, common::role_context context)
    : self_{self}
    , context_{std::move(context)}
    , post_{self}
    , endpoint_{common::publish<protocol::keeper_actor>(self_, context_, {})}
    , word_{.role = context_.role, .self = context_.self, .state = "waiting", .at = endpoint_}
    , mirror_{std::make_shared<store_mirror>(mirror_options(context_))} {
  context_.log->info("waiting: for the store of ps_shard {}, of which it keeps the copy",
                     protocol::shard_of(context_.role));
  self_->send(self_, protocol::tick{});
}

result<void> keeper_state::open_channel() {
  auto channel = transport::open_fetches(context_.job->channel());
  if (!channel) return tl::unexpected(channel.error());
  fetcher_.emplace(std::move(*channel));
  return {};
}

keeper_state::behavior keeper_state::make_behavior() {
  return {
      [this](const protocol::copy_part& part) { on_part(part); },
      [this](const protocol::tick&) { on_tick(); },
      [](const protocol::continuation& task) { common::run(task); },
  };
}

/// Whoever sends is a process of that PS shard, as its connection has shown (names_its_sender).
void keeper_state::on_part(const protocol::copy_part& part) {
  const auto shard = caf::actor_cast<protocol::ps_shard_actor>(self_->current_sender());
  const bool is_mine = part.role == protocol::ps_shard_role(protocol::shard_of(context_.role)) &&
                       part.keeper == context_.self.incarnation;
  if (!is_mine || !shard) return;
  disk_.run([this, mirror = mirror_, log = context_.log, part, bytes = fetcher_->fetch(part), shard,
             post = post_] {
    const auto answer = mirror->take(part, bytes);
    if (!answer && mirror->set_aside_damaged(answer.error()))
      return log->warn("copy-damaged: {}; it is set aside, and another is filled", answer.error().message);
    if (!answer || *answer) post([this, shard, answer] { on_taken(shard, answer); });
  });
}

void keeper_state::on_taken(const protocol::ps_shard_actor& shard,
                            const result<std::optional<protocol::copy_standing>>& answer) {
  if (!answer) return quit(answer.error().message);
  const auto& standing = **answer;
  if (!standing.failure.empty()) context_.log->warn("copy-refused: {}", standing.failure);
  self_->send(shard, standing);
  const auto identity = mirror_->store()->identity(); // there since the first answer, and its own to lock
  if (word_.state == "waiting") context_.log->info("filling: the copy ends at version {}", standing.end);
  word_.state = "filling";
  word_.step = word_.durable_step = standing.end.value;
  word_.store = {context_.job->host, identity, standing.floor};
  protocol::copy_word held{.is_known = true, .keeper = context_.self.incarnation};
  held.timeline = standing.timeline;
  held.end = standing.end;
  held.floor = standing.floor;
  word_.copies.all = {held};
  word_.restorable = standing.restorable;
}

void keeper_state::quit(const std::string& why) {
  context_.log->error("quit: {}", why);
  self_->quit(caf::make_error(caf::sec::runtime_error, why));
}

void keeper_state::on_tick() {
  self_->delayed_send(self_, tick_period, protocol::tick{});
  heartbeat_sender_.send_for_answer<protocol::coordinator_location>(self_, context_.agent, word_,
                                                                    [](const auto&) {});
}

} // namespace dlrun::keeper
