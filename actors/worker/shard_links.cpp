#include "actors/worker/shard_links.hpp"

#include "actors/common/connect.hpp"

#include <utility>

namespace dlrun::worker {

shard_links::shard_links(pointer self, const common::role_context& context, events told)
    : self_(self)
    , context_(context)
    , told_(std::move(told)) {}

void shard_links::connect(const protocol::directory_entry& entry) {
  const ps_shard_id shard{entry.role.index};
  const auto start = entry.incarnation;
  auto& before = links_[shard];
  before = {start, {}, before.incarnation == start && before.is_missed};
  common::connect<protocol::ps_shard_actor>(
      self_, context_, entry.role, start, entry.at,
      [this, shard, start](const protocol::ps_shard_actor& handle) {
        auto& found = links_[shard];
        if (found.incarnation != start) return;
        found = {start, handle};
        self_->monitor(handle); // one that was gone before says so at once
        told_.connected(shard, start);
      },
      [this, shard, start](const std::string& why) {
        auto& found = links_[shard];
        if (found.incarnation != start) return;
        if (!std::exchange(found.is_missed, true))
          context_.log->info("connect-failed: {}; trying again", why);
        told_.unconnected(shard, start);
      });
}

/// The shard may live on: only the connection is known to be gone.
void shard_links::on_down(const caf::actor_addr& gone) {
  for (auto& [shard, one] : links_) {
    if (!one.handle || one.handle->address() != gone) continue;
    context_.log->info("link-lost: ps_shard {} incarnation {}; connecting again", shard, one.incarnation);
    one = {one.incarnation, {}, true};
    told_.unconnected(shard, one.incarnation);
  }
}

} // namespace dlrun::worker
