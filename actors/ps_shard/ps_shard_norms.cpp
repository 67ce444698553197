/// How a PS shard tells the others its part of a norm, and hears theirs (R12).
#include "actors/common/connect.hpp"
#include "actors/common/membership.hpp"
#include "actors/ps_shard/ps_shard.hpp"

#include <dlrun/check.hpp>

namespace dlrun::ps_shard {

// ---- who the others are

/// Of two shards the one with the higher index connects, and the other answers whoever speaks: if both
/// connect at once, CAF may take each of the two connections for superfluous and close both.
void ps_shard_state::connect_shards() {
  if (!context_.job->couples()) return;
  for (const auto& entry : directory_.entries)
    if (entry.role.kind == protocol::role_kind::ps_shard && entry.role.index < context_.role.index &&
        entry.joined)
      connect_shard(entry);
}

void ps_shard_state::connect_shards_soon() {
  self_->delayed_send(
      self_, common::join_retry,
      protocol::continuation{std::make_shared<const std::function<void()>>([this] { connect_shards(); })});
}

void ps_shard_state::connect_shard(const protocol::directory_entry& entry) {
  const ps_shard_id shard{entry.role.index};
  auto& link = shards_[shard];
  const bool known = link.incarnation == entry.incarnation && (link.handle || link.connecting);
  if (known || entry.incarnation < link.incarnation) return;
  link.incarnation = entry.incarnation;
  link.handle = nullptr;
  link.connecting = true;
  common::connect<protocol::ps_shard_actor>(
      self_, context_, entry.role, entry.incarnation, entry.at,
      [this, shard, inc = entry.incarnation](const protocol::ps_shard_actor& handle) {
        auto& found = shards_[shard];
        if (found.incarnation != inc) return;
        context_.log->info("linked: ps_shard {} incarnation {}", shard, inc);
        found.handle = handle;
        found.connecting = false;
        self_->monitor(handle); // one that was gone before says so at once
        introduce_to(handle);
        carry_out(core_->on_tick());
      },
      [this, shard, inc = entry.incarnation](const std::string& why) {
        context_.log->info("connect-failed: {}; trying again", why);
        auto& found = shards_[shard];
        if (found.incarnation != inc) return;
        found.connecting = false;
        connect_shards_soon();
      });
}

/// The other one may need a norm of a step that is over here, when this shard has nothing to say or to ask:
/// it must know whom to ask.
void ps_shard_state::introduce_to(const protocol::ps_shard_actor& shard) {
  self_->send(shard, protocol::norm_request{
                         core_->timeline(), {context_.role.index}, step_from(core_->state().applied)});
}

/// A shard, or the connection to it, is gone: it is connected to again while the directory names it.
void ps_shard_state::on_link_down(const caf::actor_addr& gone) {
  for (auto& [shard, link] : shards_)
    if (link.handle && link.handle->address() == gone) {
      context_.log->info("link-lost: ps_shard {} incarnation {}", shard, link.incarnation);
      link.handle = nullptr;
    }
  connect_shards_soon();
}

/// Who speaks can be spoken to. What went to nobody before is said again.
void ps_shard_state::note_sender(ps_shard_id shard) {
  const auto sender = caf::actor_cast<protocol::ps_shard_actor>(self_->current_sender());
  if (!sender || shard.value >= context_.job->ps_shards()) return;
  auto& link = shards_[shard];
  const bool is_new = !link.handle || link.handle->address() != sender->address();
  if (is_new) context_.log->info("linked: ps_shard {} has spoken", shard);
  link.handle = sender;
  if (is_new) carry_out(core_->on_tick());
}

// ---- what is said

void ps_shard_state::on_norm(const protocol::norm& message) {
  const auto& job = *context_.job;
  if (message.from.value >= job.ps_shards() ||
      message.partials.size() !=
          engine::parameter_blocks(job.model->layout(), job.shards.at(message.from.value))) {
    context_.log->warn("norm-refused: {} partials of step {} by ps_shard {}", message.partials.size(),
                       message.step, message.from);
    return;
  }
  note_sender(message.from);
  carry_out(core_->on_norm(message));
}

void ps_shard_state::on_norm_request(const protocol::norm_request& message) {
  note_sender(message.from);
  carry_out(core_->on_norm_request(message));
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
