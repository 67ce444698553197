/// How a PS shard tells the others its part of a norm, and hears theirs (R12).
#include "actors/common/connect.hpp"
#include "actors/common/membership.hpp"
#include "actors/ps_shard/ps_shard.hpp"

#include <dlrun/check.hpp>

namespace dlrun::ps_shard {

// ---- who the others are
// ------------------------------------------------------------------------------------------------

void ps_shard_state::connect_shards() {
  if (!context_.job->couples()) return;
  for (const auto& entry : directory_.entries)
    if (entry.role.kind == protocol::role_kind::ps_shard && entry.role.index != context_.role.index &&
        entry.role.index < context_.job->ps_shards() && entry.joined)
      connect_shard(entry);
}

void ps_shard_state::connect_shard(const protocol::directory_entry& entry) {
  auto& link = shards_[{entry.role.index}];
  const bool known = link.incarnation == entry.incarnation && (link.handle || link.connecting);
  if (known || entry.incarnation < link.incarnation) return;
  link.incarnation = entry.incarnation;
  link.handle = nullptr;
  link.connecting = true;
  common::connect<protocol::ps_shard_actor>(
      self_, *context_.job, entry.role, entry.incarnation, entry.at,
      [this, entry](const protocol::ps_shard_actor& handle) {
        auto& found = shards_[{entry.role.index}];
        if (found.incarnation != entry.incarnation) return;
        found.handle = handle;
        found.connecting = false;
        carry_out(core_->on_tick()); // says again what went to nobody
      },
      [this, entry](const std::string& why) {
        context_.log->info("connect-failed: {}; trying again", why);
        auto& found = shards_[{entry.role.index}];
        if (found.incarnation != entry.incarnation) return;
        found.connecting = false;
        self_->delayed_send(self_, common::join_retry,
                            protocol::continuation{std::make_shared<const std::function<void()>>(
                                [this, entry] { connect_shard(entry); })});
      });
}

// ---- what is said
// ------------------------------------------------------------------------------------------------------

void ps_shard_state::on_norm(const protocol::norm& message) {
  const auto& job = *context_.job;
  if (message.from.value >= job.ps_shards() ||
      message.partials.size() !=
          engine::parameter_blocks(job.model->layout(), job.shards.at(message.from.value))) {
    context_.log->warn("norm-refused: {} partials of step {} by ps_shard {}", message.partials.size(),
                       message.step, message.from);
    return;
  }
  carry_out(core_->on_norm(message));
}

/// What is sent to a shard that is not connected is sent again by timer.
void ps_shard_state::carry_out(const send_norm& action) {
  if (const auto found = shards_.find(action.to); found != shards_.end() && found->second.handle)
    self_->send(found->second.handle, action.message);
}

void ps_shard_state::carry_out(const send_norm_request& action) {
  if (const auto found = shards_.find(action.to); found != shards_.end() && found->second.handle)
    self_->send(found->second.handle, action.message);
}

void ps_shard_state::carry_out(const measure& action) {
  const auto shape = shape_of(context_.job->sampler, action.step, action.revision, core_->state().parked);
  const auto post = common::poster<protocol::ps_shard_actor>{self_};
  values_thread_.run([this, values = values_, parameters = parameters_, action, shape, post] {
    const auto root = values->find(action.root);
    DLRUN_CHECK(root != values->end(), "the core measures a root that is there");
    auto partials = std::make_shared<norm_partials>(parameters->measure(shape, root->second.floats));
    if (root->second.intact && !root->second.intact())
      return post([this] { lose_trust("a gradient changed while its norm was taken"); });
    post([this, action, partials] { carry_out(core_->on_measured(action.step, std::move(*partials))); });
  });
}

} // namespace dlrun::ps_shard
