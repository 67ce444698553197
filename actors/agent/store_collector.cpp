#include "actors/agent/store_collector.hpp"

#include "actors/common/ask.hpp"
#include "actors/common/history_conversion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

namespace dlrun::agent {
namespace {

constexpr int parts_at_a_time = 8;
constexpr int tries_of_each = 3;
constexpr auto answer_deadline = std::chrono::seconds(2);
constexpr auto retry_pause = std::chrono::milliseconds(200);

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
    tell("stores-collected", fmt::format("the run folder has the whole model now: {:.1f} MB, {}",
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
  if (!stores_[collected_.size()].agent) return end_store("that host is away");
  ask_for_listing(tries_of_each);
}

void store_collector::ask_for_listing(int tries) {
  const auto& store = stores_[collected_.size()];
  common::ask(
      self_, store.agent, answer_deadline, protocol::store_listing_wanted{store.shard},
      [this](const protocol::store_listing& listing) { on_listing(listing); },
      [this, tries](const caf::error& why) {
        try_again(tries, to_string(why), [this](int left) { ask_for_listing(left); });
      });
}

void store_collector::on_listing(const protocol::store_listing& listing) {
  if (!listing.failure.empty()) return end_store(listing.failure);
  const auto shard = stores_[collected_.size()].shard;
  auto begun = store_intake::begin(common::store_directory(run_dir_, shard), shard, listing.files);
  if (!begun) return end_store(begun.error().message);
  intake_ = std::move(*begun);
  if (intake_->is_whole()) return finish_store();
  for (int part = 0; part < parts_at_a_time; ++part) ask_for_next_part();
}

void store_collector::ask_for_next_part() {
  if (const auto wanted = intake_->next()) ask_for(*wanted, tries_of_each);
}

void store_collector::ask_for(const protocol::store_part_wanted& wanted, int tries) {
  common::ask(
      self_, stores_[collected_.size()].agent, answer_deadline, wanted,
      [this, wanted](const protocol::store_part& part) { on_part(wanted, part); },
      [this, wanted, tries](const caf::error& why) {
        if (!is_current(wanted.shard)) return;
        try_again(tries, to_string(why), [this, wanted](int left) { ask_for(wanted, left); });
      });
}

void store_collector::on_part(const protocol::store_part_wanted& wanted, const protocol::store_part& part) {
  if (!is_current(wanted.shard)) return;
  if (!part.failure.empty()) return end_store(part.failure);
  if (auto kept = intake_->add(wanted, part.bytes); !kept) return end_store(kept.error().message);
  if (intake_->is_whole()) return finish_store();
  ask_for_next_part();
}

void store_collector::finish_store() {
  const auto placed = intake_->finish();
  end_store(placed ? "" : placed.error().message);
}

void store_collector::end_store(std::string failure) {
  const auto& store = stores_[collected_.size()];
  if (intake_ && !failure.empty()) intake_->discard();
  collected_.push_back({store.shard, store.host, intake_ ? intake_->bytes() : 0, std::move(failure)});
  intake_.reset();
  begin_next();
}

/// Of those that were asked for at a time the first that fails ends the store.
bool store_collector::is_current(ps_shard_id shard) const {
  return intake_ && stores_[collected_.size()].shard == shard;
}

void store_collector::try_again(int tries, const std::string& why, std::function<void(int)> ask) {
  if (tries == 1) return end_store(fmt::format("it does not answer: {}", why));
  const auto shard = stores_[collected_.size()].shard;
  auto again = [this, shard, tries, ask = std::move(ask)] {
    if (collected_.size() < stores_.size() && stores_[collected_.size()].shard == shard) ask(tries - 1);
  };
  self_->delayed_send(
      self_, retry_pause,
      protocol::continuation{std::make_shared<const std::function<void()>>(std::move(again))});
}

} // namespace dlrun::agent
