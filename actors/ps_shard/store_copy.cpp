#include "actors/ps_shard/store_copy.hpp"

#include "actors/common/clock.hpp"
#include "actors/common/connect.hpp"

#include <utility>

namespace dlrun::ps_shard {
namespace {

/// Of the parts that are sent while a record and a snapshot wait, one in so many is of the
/// snapshot.
constexpr std::uint64_t snapshot_share = 4;
constexpr auto question_period = std::chrono::milliseconds(100);

} // namespace

store_copy::store_copy(pointer self, const common::role_context& context, events told)
    : self_(self)
    , context_(context)
    , told_(std::move(told))
    , book_(context.job->durability()) {}

void store_copy::offer_at(const std::shared_ptr<transport::segment_offers>& offers) {
  if (!context_.job->keeps_copies()) return;
  const copy_lane::events told{[this] { pump(); }, [this](const error& why) { fail_stream(why); }};
  const common::poster<protocol::ps_shard_actor> post{self_};
  records_.emplace(std::make_shared<copy_slots>(offers, protocol::copy_record_parts_max), post, told);
  snapshots_.emplace(std::make_shared<copy_slots>(offers, protocol::copy_snapshot_parts_max), post, told);
  reader_ = std::make_unique<common::task_thread>("copy");
}

void store_copy::restart(std::shared_ptr<threaded_store> store, const loaded_standing& restored) {
  if (!context_.job->keeps_copies()) {
    if (!std::exchange(store_, std::move(store))) told_.settled(restored);
    return;
  }
  book_.restart(restored.history, restored.stored());
  drop_pieces();
  if (!std::exchange(store_, std::move(store))) {
    begins_with_ = restored;
    return ask_until_settled();
  }
  if (keeper_) begin_stream();
}

void store_copy::ask_until_settled() {
  if (!begins_with_) return;
  on_tick();
  told_.ask();
  common::post_later(self_, caf::actor_cast<protocol::ps_shard_actor>(self_), question_period,
                     [this] { ask_until_settled(); });
}

own_store store_copy::mine() const { return store_ ? store_->held() : own_store{}; }

// ---- the own store

void store_copy::on_logged(version_id version) {
  if (!context_.job->keeps_copies()) return told_.committed(version);
  take(book_.on_logged(version));
  pump();
}

void store_copy::on_snapshot(version_id version) {
  if (!context_.job->keeps_copies()) return told_.snapshot_durable(version);
  take(book_.on_snapshot(version));
  pump();
}

void store_copy::take(const released_versions& news) {
  wait_.on_tick(waits(), common::now());
  if (news.committed) told_.committed(*news.committed);
  for (const auto version : news.snapshots) told_.snapshot_durable(version);
}

/// Nothing goes out before a copy that an earlier start counted has what this one begins with, or
/// is known to be over.
void store_copy::settle() {
  if (!begins_with_ || !place_.is_known) return;
  if (book_.counted().value != 0 && !book_.holds_all(mine())) return;
  told_.settled(*std::exchange(begins_with_, std::nullopt));
}

// ---- the agent and the keeper

void store_copy::on_keeper(const protocol::keeper_place& place) {
  if (!place.is_known || !store_) return;
  const bool is_first = !std::exchange(place_, place).is_known;
  if (is_first && place.counts) {
    context_.log->info("copy: an earlier start counted that of keeper incarnation {}", place.incarnation);
    book_.begin_with(place.incarnation);
  }
  const auto before = book_.counted();
  take(book_.on_keeper(place.incarnation));
  if (before.value != 0 && book_.counted().value == 0)
    context_.log->warn("copy: keeper incarnation {} is over, the copy counts no more", before);
  if (keeper_ && link_ != place.incarnation) lose();
  connect();
  settle();
}

void store_copy::connect() {
  if (keeper_ || is_connecting_ || place_.incarnation.value == 0 || place_.at.process == 0) return;
  is_connecting_ = true;
  const auto start = place_.incarnation;
  common::connect<protocol::keeper_actor>(
      self_, context_, protocol::keeper_role({context_.role.index}), start, place_.at,
      [this, start](const protocol::keeper_actor& found) {
        is_connecting_ = false;
        if (start != place_.incarnation) return;
        context_.log->info("linked: keeper incarnation {}", start);
        keeper_ = found;
        link_ = start;
        self_->monitor(keeper_);
        begin_stream();
      },
      [this](const std::string& why) {
        context_.log->info("connect-failed: {}; trying again", why); // with the agent's next word
        is_connecting_ = false;
      });
}

void store_copy::on_down(const caf::actor_addr& gone) {
  if (keeper_ && keeper_.address() == gone) lose();
}

void store_copy::lose() {
  keeper_ = nullptr;
  drop_pieces();
  stream_.end();
}

void store_copy::drop_pieces() {
  if (records_) records_->drop();
  if (snapshots_) snapshots_->drop();
  on_the_way_.clear();
}

void store_copy::on_standing(const protocol::copy_standing& standing) {
  const auto now = common::now();
  if (!store_ || standing.incarnation != place_.incarnation || standing.shard != context_.self.incarnation ||
      !stream_.on_standing(standing, now))
    return;
  while (!on_the_way_.empty() && on_the_way_.front().number < stream_.taken()) on_the_way_.pop_front();
  wait_.on_standing(standing, now);
  const auto before = book_.counted();
  take(book_.on_standing(standing, mine(), now));
  if (before != book_.counted())
    context_.log->info("copy: that of keeper incarnation {} holds all, and counts", standing.incarnation);
  settle();
  pump();
}

awaited_parts store_copy::waits() const {
  const bool begins = begins_with_ && book_.counted().value != 0;
  return {book_.is_log_awaited(), book_.is_snapshot_awaited(), begins};
}

void store_copy::on_tick() {
  const auto now = common::now();
  wait_.on_tick(waits(), now);
  if (wait_.is_too_long(now)) take(book_.let_go());
  connect();
  if (keeper_ && stream_.is_stuck(now)) begin_stream();
  pump();
}

protocol::copy_word store_copy::word() const {
  protocol::copy_word said{.is_known = store_ && !begins_with_, .counted = book_.counted()};
  said.is_silent = said.counted.value != 0 && wait_.is_too_long(common::now());
  if (const auto& newest = book_.newest_standing()) {
    said.keeper = newest->incarnation;
    said.timeline = newest->timeline;
    said.end = newest->end;
    said.floor = newest->floor;
  }
  return said;
}

// ---- what is sent

void store_copy::begin_stream() {
  drop_pieces();
  stream_.begin(common::now());
  send({.kind = protocol::copy_kind::hello});
}

void store_copy::pump() {
  if (!keeper_ || !store_ || !stream_.has_room()) return;
  const auto own = mine();
  while (stream_.has_room()) {
    if (!records_->is_busy())
      if (const auto item = stream_.next(own)) {
        begin(*item);
        continue;
      }
    records_->read_more(*reader_);
    snapshots_->read_more(*reader_);
    auto* next = lane_to_send();
    if (next == nullptr) return;
    send_part_of(*next);
  }
}

/// Records go first: steps wait for them. A snapshot gets on all the same.
copy_lane* store_copy::lane_to_send() {
  if (snapshots_->has_part() && (!records_->has_part() || stream_.is_turn_of(snapshot_share)))
    return &*snapshots_;
  return records_->has_part() ? &*records_ : nullptr;
}

void store_copy::send_part_of(copy_lane& lane) {
  auto [part, slot] = lane.take_part();
  if (&lane == &*snapshots_ && !lane.is_busy()) stream_.on_snapshot_sent();
  on_the_way_.push_back({send(std::move(part)), std::move(slot)});
}

void store_copy::begin(const copy_item& item) {
  protocol::copy_part head{.kind = item.kind, .timeline = item.timeline, .version = item.version};
  if (item.kind == protocol::copy_kind::rewind) {
    for (const auto& entry : store_->history())
      if (entry.timeline <= item.timeline) head.history.push_back(entry);
    send(std::move(head));
    return;
  }
  head.has_kept = item.kept.has_value();
  head.kept = item.kept.value_or(version_id{});
  if (item.kind == protocol::copy_kind::floor) {
    send(std::move(head));
    return;
  }
  auto& lane = item.kind == protocol::copy_kind::record ? *records_ : *snapshots_;
  lane.begin(std::move(head), [store = store_, item] { return store->open_for_copy(item); });
}

/// Dropped or cut off meanwhile, or damaged: the next stream sees what is there.
void store_copy::fail_stream(const error& why) {
  context_.log->warn("copy: {}", why.message);
  drop_pieces();
  stream_.fail(common::now());
}

/// @returns its number.
std::uint64_t store_copy::send(protocol::copy_part part) {
  part.role = context_.role;
  part.incarnation = context_.self.incarnation;
  part.keeper = link_;
  part.stream = stream_.stream();
  part.number = stream_.take_number();
  self_->send(keeper_, part);
  return part.number;
}

} // namespace dlrun::ps_shard
