#include "actors/ps_shard/shard_links.hpp"

#include "actors/common/ask.hpp"
#include "actors/common/connect.hpp"
#include "actors/common/membership.hpp"

namespace dlrun::ps_shard {

shard_links::shard_links(pointer self, const common::role_context& context, events told)
    : self_(self)
    , context_(context)
    , told_(std::move(told)) {}

void shard_links::follow(const protocol::directory& directory) {
  directory_ = directory;
  connect_all();
}

void shard_links::connect_all() {
  if (!context_.job->couples()) return;
  for (const auto& entry : directory_.entries)
    if (entry.role.kind == protocol::role_kind::ps_shard && entry.role.index < context_.role.index &&
        entry.joined)
      connect(entry);
}

void shard_links::connect_soon() {
  common::post_later(self_, self_, common::join_retry, [this] { connect_all(); });
}

void shard_links::connect(const protocol::directory_entry& entry) {
  const ps_shard_id shard{entry.role.index};
  auto& one = links_[shard];
  const bool is_known = one.incarnation == entry.incarnation && (one.handle || one.is_connecting);
  if (is_known || entry.incarnation < one.incarnation) return;
  one = {entry.incarnation, {}, true};
  common::connect<protocol::ps_shard_actor>(
      self_, context_, entry.role, entry.incarnation, entry.at,
      [this, shard, start = entry.incarnation](const protocol::ps_shard_actor& handle) {
        on_connected(shard, start, handle);
      },
      [this, shard, start = entry.incarnation](const std::string& why) {
        context_.log->info("connect-failed: {}; trying again", why);
        auto& found = links_[shard];
        if (found.incarnation != start) return;
        found.is_connecting = false;
        connect_soon();
      });
}

/// The other one may need a norm of a step that is over here, when this shard has nothing to say or
/// to ask: it must know whom to ask, so it is greeted.
void shard_links::on_connected(ps_shard_id shard, incarnation start, const protocol::ps_shard_actor& handle) {
  auto& found = links_[shard];
  if (found.incarnation != start) return;
  context_.log->info("linked: ps_shard {} incarnation {}", shard, start);
  found.handle = handle;
  found.is_connecting = false;
  self_->monitor(handle); // one that was gone before says so at once
  self_->send(handle, told_.greeting());
  told_.linked();
}

void shard_links::on_down(const caf::actor_addr& gone) {
  for (auto& [shard, one] : links_)
    if (one.handle && one.handle->address() == gone) {
      context_.log->info("link-lost: ps_shard {} incarnation {}", shard, one.incarnation);
      one.handle = nullptr;
    }
  connect_soon();
}

bool shard_links::take_word(const protocol::norm& message) {
  const auto& job = *context_.job;
  if (message.from.value < job.ps_shards() &&
      message.partials.size() ==
          engine::parameter_blocks(job.model->layout(), job.shards.at(message.from.value)))
    return note_sender(message.from);
  context_.log->warn("norm-refused: {} partials of step {} by ps_shard {}", message.partials.size(),
                     message.step, message.from);
  return false;
}

bool shard_links::note_sender(ps_shard_id shard) {
  if (shard.value >= context_.job->ps_shards()) return false;
  const auto sender = caf::actor_cast<protocol::ps_shard_actor>(self_->current_sender());
  if (!sender) return true;
  auto& one = links_[shard];
  const bool is_new = !one.handle || one.handle->address() != sender->address();
  if (is_new) context_.log->info("linked: ps_shard {} has spoken", shard);
  one.handle = sender;
  if (is_new) told_.linked();
  return true;
}

} // namespace dlrun::ps_shard
