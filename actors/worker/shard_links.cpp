#include "actors/worker/shard_links.hpp"

#include "actors/common/connect.hpp"

namespace dlrun::worker {

shard_links::shard_links(pointer self, const common::role_context& context, events told)
    : self_(self)
    , context_(context)
    , told_(std::move(told)) {}

void shard_links::connect(const protocol::directory_entry& entry) {
  const ps_shard_id shard{entry.role.index};
  const auto start = entry.incarnation;
  links_[shard] = {start, {}};
  common::connect<protocol::ps_shard_actor>(
      self_, context_, entry.role, start, entry.at,
      [this, shard, start](const protocol::ps_shard_actor& handle) {
        auto& found = links_[shard];
        if (found.incarnation != start) return;
        found.handle = handle;
        told_.connected(shard, start);
      },
      [this, shard, start](const std::string& why) {
        context_.log->info("connect-failed: {}; trying again", why);
        told_.failed(shard, start);
      });
}

} // namespace dlrun::worker
