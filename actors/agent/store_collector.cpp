#include "actors/agent/store_collector.hpp"

#include "actors/agent/host_question.hpp"
#include "actors/common/history_conversion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

namespace dlrun::agent {
namespace {

constexpr int parts_at_a_time = 8;

} // namespace

std::vector<protocol::job_event> tell_collected(const std::vector<collected_store>& stores) {
  std::vector<protocol::job_event> events;
  const auto tell = [&](const char* event, std::string text) {
    events.push_back({event, {protocol::role_kind::agent, 0}, {1}, std::move(text)});
  };
  std::vector<std::string> there;
  std::uint64_t bytes = 0;
  for (const auto& one : stores) {
    const auto name = protocol::to_string(protocol::ps_shard_role(one.shard));
    if (one.failure.empty()) {
      there.push_back(fmt::format("{} from host {}", name, one.host));
      bytes += one.bytes;
    } else {
      tell("store-stays",
           fmt::format("the store of {} stays on host {}: {}; copy ps_shard-{} from its folder "
                       "into the run folder to use the model",
                       name, one.host, one.failure, one.shard));
    }
  }
  if (!there.empty())
    tell("stores-collected", fmt::format("brought into the run folder: {:.1f} MB, {}",
                                         static_cast<double>(bytes) / 1e6, fmt::join(there, ", ")));
  return events;
}

void store_collector::collect(std::vector<store_elsewhere> stores, done_handler done) {
  stores_ = std::move(stores);
  done_ = std::move(done);
  begin_next();
}

void store_collector::begin_next() {
  if (collected_.size() == stores_.size()) return done_(collected_);
  if (!current().agent) return end_store("that host is away");
  ask<protocol::store_listing>(protocol::store_listing_wanted{current().shard},
                               [this](const auto& listing) { on_listing(listing); });
}

/// Of those that are asked at a time the first that fails ends the store.
template <class Answer, class Wanted>
void store_collector::ask(const Wanted& wanted, std::function<void(const Answer&)> on_answer) {
  const auto is_wanted = [this, place = collected_.size()] { return collected_.size() == place; };
  ask_host(self_, host_question<Answer, Wanted>{current().agent, wanted, is_wanted, std::move(on_answer),
                                                [this](std::string why) { end_store(std::move(why)); }});
}

void store_collector::on_listing(const protocol::store_listing& listing) {
  if (!listing.failure.empty()) return end_store(listing.failure);
  const auto shard = current().shard;
  auto begun = store_intake::begin(common::store_directory(run_dir_, shard), shard, listing.files);
  if (!begun) return end_store(begun.error().message);
  intake_ = std::move(*begun);
  if (intake_->is_whole()) return finish_store();
  for (int part = 0; part < parts_at_a_time; ++part) ask_for_next_part();
}

void store_collector::ask_for_next_part() {
  const auto wanted = intake_->next();
  if (!wanted) return;
  ask<protocol::store_part>(*wanted, [this, wanted = *wanted](const auto& part) { on_part(wanted, part); });
}

void store_collector::on_part(const protocol::store_part_wanted& wanted, const protocol::store_part& part) {
  if (!part.failure.empty()) return end_store(part.failure);
  if (auto kept = intake_->add(wanted, part.bytes); !kept) return end_store(kept.error().message);
  if (intake_->is_whole()) return finish_store();
  ask_for_next_part();
}

/// On a thread of its own, since a disk takes long for a whole store. Meanwhile the actor leaves
/// the intake alone: no question about that store is open any more. Nor does anything start that
/// would set the store in the run folder aside.
void store_collector::finish_store() {
  placing_ = std::jthread{[this, post = common::poster<protocol::agent_actor>{self_}] {
    const auto placed = intake_->finish();
    post([this, failure = placed ? "" : placed.error().message] { end_store(failure); });
  }};
}

void store_collector::end_store(std::string failure) {
  const auto& store = current();
  if (intake_ && !failure.empty()) intake_->discard();
  collected_.push_back({store.shard, store.host, intake_ ? intake_->bytes() : 0, std::move(failure)});
  intake_.reset();
  begin_next();
}

} // namespace dlrun::agent
