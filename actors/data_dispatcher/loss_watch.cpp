#include "actors/data_dispatcher/loss_watch.hpp"

#include <dlrun/check.hpp>
#include <utility>

namespace dlrun::data_dispatcher {
namespace {

/// Of the ids of one dispatcher's searches, so that no answer to another's is taken for its own.
constexpr int search_id_bits = 20;

} // namespace

loss_watch::loss_watch(loss_watch_config config)
    : config_(std::move(config))
    , repeats_(config_.repeat_after) {
  DLRUN_CHECK(config_.slots_of != nullptr, "who looks for gradients must know how many a step has");
}

void loss_watch::set_workers(std::map<worker_id, incarnation> heard, bool all_known) {
  workers_ = std::move(heard);
  workers_are_known_ = all_known;
  if (search_) search_->keep_workers(workers_);
}

void loss_watch::on_shard(const protocol::shard_status& status) {
  if (search_) search_->on_shard(status);
}

bool loss_watch::on_kept(const protocol::kept& answer, timeline_id timeline) {
  if (search_) search_->on_kept(answer, timeline);
  return search_.has_value();
}

std::optional<std::string> loss_watch::look(const shard_statuses& shards,
                                            const std::vector<protocol::parked_slot>& parked,
                                            protocol::time_point now, data_dispatcher_actions& out) {
  if (!search_) {
    const auto stuck = find_stuck(shards, config_.couples);
    if (stuck.empty() || !workers_are_known_) return std::nullopt;
    search_.emplace((config_.self.value << search_id_bits) + next_search_++, stuck, workers_,
                    config_.ps_shards);
  }
  if (search_->complete()) {
    auto lost = search_->verdict(shards, config_.couples, parked, config_.slots_of);
    search_.reset();
    return lost;
  }
  for (const auto& role : search_->waits_for()) ask(role, now, out);
  return std::nullopt;
}

void loss_watch::ask(protocol::role_name whom, protocol::time_point now, data_dispatcher_actions& out) {
  if (!repeats_.is_due(repeats::subject::probe, whom, search_->id(), now)) return;
  const protocol::probe question{search_->id()};
  if (whom.kind == protocol::role_kind::worker)
    out.emplace_back(to_worker{{whom.index}, question});
  else
    out.emplace_back(to_ps_shard{{whom.index}, question});
}

} // namespace dlrun::data_dispatcher
