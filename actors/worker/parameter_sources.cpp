#include "actors/worker/parameter_sources.hpp"

#include <utility>

namespace dlrun::worker {
namespace {

constexpr auto fetch_deadline = std::chrono::seconds(2);

} // namespace

parameter_sources::parameter_sources(const common::role_context& context, transport::segment_fetches& client,
                                     common::way_back back)
    : context_(context)
    , client_(client)
    , back_(std::move(back)) {}

/// Whoever waits for the start before hears of its end later: the owner learns of the new one
/// first.
void parameter_sources::follow(const protocol::shard_state& state) {
  auto& memory = shards_[state.shard];
  if (state.incarnation <= memory.incarnation) return;
  const auto waiting = std::exchange(memory.waiting, {});
  memory = {};
  memory.incarnation = state.incarnation;
  memory.parameters = state.parameters;
  for (const auto& done : waiting) back_.post([done] { done(nullptr); });
}

void parameter_sources::get(ps_shard_id shard, taker done) {
  auto& memory = shards_[shard];
  if (memory.source) return done(memory.source);
  memory.waiting.push_back(std::move(done));
  if (!std::exchange(memory.is_fetching, true)) fetch(shard);
}

std::vector<parameter_source> parameter_sources::all() const {
  std::vector<parameter_source> sources;
  for (ps_shard_id shard{0}; shard.value < context_.job->ps_shards(); ++shard.value) {
    const auto found = shards_.find(shard);
    sources.push_back(found == shards_.end() ? nullptr : found->second.source);
  }
  return sources;
}

bool parameter_sources::is_shared(ps_shard_id shard) const {
  const auto found = shards_.find(shard);
  return found != shards_.end() && client_.is_shared(found->second.parameters.address);
}

void parameter_sources::fetch(ps_shard_id shard) {
  auto& memory = shards_[shard];
  const auto& range = context_.job->shards.at(shard.value);
  const auto asked = client_.fetch(
      memory.parameters.address, {memory.parameters.segment}, transport::parameter_segment_bytes(range.size),
      transport::parameter_part(range.size, std::exchange(memory.buffer, 1 - memory.buffer), range.offset),
      std::chrono::steady_clock::now() + fetch_deadline,
      [this, post = back_.post, shard, start = memory.incarnation](result<transport::segment> fetched) {
        auto shared = std::make_shared<result<transport::segment>>(std::move(fetched));
        post([this, shard, start, shared] { on_fetched(shard, start, std::move(*shared)); });
      });
  if (!asked) on_fetched(shard, memory.incarnation, tl::unexpected(asked.error()));
}

void parameter_sources::on_fetched(ps_shard_id shard, incarnation start, result<transport::segment> fetched) {
  auto& memory = shards_[shard];
  if (memory.incarnation != start) return; // a newer start of the shard took its place meanwhile
  memory.is_fetching = false;
  const auto& range = context_.job->shards.at(shard.value);
  auto reader = fetched ? transport::parameter_reader::open(std::move(*fetched), range.size, range.offset)
                        : result<transport::parameter_reader>{tl::unexpected(fetched.error())};
  const auto source =
      reader ? std::make_shared<const transport::parameter_reader>(std::move(*reader)) : nullptr;
  if (!source) context_.log->warn("parameters-unreachable: ps_shard {}: {}", shard, reader.error().message);
  if (is_shared(shard)) memory.source = source;
  for (const auto& done : std::exchange(memory.waiting, {})) done(source);
}

} // namespace dlrun::worker
