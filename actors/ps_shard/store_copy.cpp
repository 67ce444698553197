#include "actors/ps_shard/store_copy.hpp"

#include "actors/common/clock.hpp"
#include "actors/common/connect.hpp"
#include "base/crc32c.hpp"

#include <utility>

namespace dlrun::ps_shard {
namespace {

/// A keeper that counts and says nothing for so long is given up: it keeps training waiting.
constexpr auto silence_max = std::chrono::seconds(3);
/// Longer between two ticks: this process was stopped, and heard nothing for that reason.
constexpr auto own_pause_min = std::chrono::milliseconds(500);
constexpr auto question_period = std::chrono::milliseconds(100);

} // namespace

store_copy::store_copy(pointer self, const common::role_context& context, events told)
    : self_(self)
    , context_(context)
    , told_(std::move(told)) {}

void store_copy::restart(std::shared_ptr<threaded_store> store, const loaded_standing& restored) {
  if (!context_.job->keeps_copies()) {
    if (!std::exchange(store_, std::move(store))) told_.settled(restored);
    return;
  }
  book_.restart(restored.history, restored.version);
  piece_.reset();
  if (!std::exchange(store_, std::move(store))) {
    begins_with_ = restored;
    return wait();
  }
  if (keeper_) begin_stream();
}

void store_copy::wait() {
  if (!begins_with_) return;
  on_tick();
  told_.ask();
  common::post_later(self_, caf::actor_cast<protocol::ps_shard_actor>(self_), question_period,
                     [this] { wait(); });
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
  if (!book_.is_awaited() && !begins_with_) awaited_since_.reset();
  if (news.committed) told_.committed(*news.committed);
  for (const auto version : news.snapshots) told_.snapshot_durable(version);
}

/// Nothing goes out before a copy that an earlier start counted has what this one begins with, or
/// is known to be over.
void store_copy::settle() {
  if (!begins_with_ || !place_.is_known) return;
  if (book_.counted().value != 0 && !book_.holds_all(mine())) return;
  awaited_since_.reset();
  told_.settled(*std::exchange(begins_with_, std::nullopt));
}

// ---- the agent and the keeper

void store_copy::on_keeper(const protocol::keeper_place& place) {
  if (!place.is_known || !store_) return;
  const bool is_first = !std::exchange(place_, place).is_known;
  if (is_first && place.counts) {
    context_.log->info("copy: an earlier start counted that of keeper incarnation {}", place.incarnation);
    book_.begin_with(place.incarnation);
    awaited_since_ = common::now();
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
  piece_.reset();
  stream_.end();
}

void store_copy::on_standing(const protocol::copy_standing& standing) {
  const auto now = common::now();
  if (!store_ || standing.incarnation != place_.incarnation || standing.shard != context_.self.incarnation ||
      !stream_.on_standing(standing, now))
    return;
  if (awaited_since_ && standing.failure.empty() && standing.taken > 1) awaited_since_ = now;
  const auto before = book_.counted();
  take(book_.on_standing(standing, mine()));
  if (before != book_.counted())
    context_.log->info("copy: that of keeper incarnation {} holds all, and counts", standing.incarnation);
  settle();
  pump();
}

void store_copy::on_tick() {
  const auto now = common::now();
  const bool waits = book_.is_awaited() || (begins_with_ && book_.counted().value != 0);
  const bool was_stopped = ticked_ && now - *ticked_ >= own_pause_min;
  ticked_ = now;
  if (waits && (!awaited_since_ || was_stopped)) awaited_since_ = now;
  connect();
  if (keeper_ && stream_.is_stuck(now)) begin_stream();
  pump();
}

protocol::copy_word store_copy::word() const {
  protocol::copy_word said{.is_known = store_ && !begins_with_, .counted = book_.counted()};
  said.is_silent = said.counted.value != 0 && awaited_since_ && common::now() - *awaited_since_ > silence_max;
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
  piece_.reset();
  stream_.begin(common::now());
  send({.kind = protocol::copy_kind::hello});
}

void store_copy::pump() {
  while (keeper_ && store_ && stream_.has_room()) {
    if (!piece_) {
      const auto item = stream_.next(mine());
      if (!item) return;
      begin(*item);
      continue;
    }
    if (piece_->read.empty()) return read_more();
    auto part = piece_->next;
    part.bytes = std::move(piece_->read.front());
    piece_->read.pop_front();
    part.crc32c = base::crc32c(part.bytes);
    piece_->next.offset += part.bytes.size();
    if (piece_->next.offset == piece_->next.total_bytes) piece_.reset();
    send(std::move(part));
  }
}

void store_copy::begin(const copy_item& item) {
  protocol::copy_part head{.kind = item.kind, .version = item.version};
  if (item.kind == protocol::copy_kind::rewind) {
    head.timeline = item.timeline;
    for (const auto& entry : store_->history())
      if (entry.timeline <= item.timeline) head.history.push_back(entry);
    return send(std::move(head));
  }
  head.has_kept = item.kept.has_value();
  head.kept = item.kept.value_or(version_id{});
  if (item.kind == protocol::copy_kind::floor) return send(std::move(head));
  piece_ = std::make_shared<piece>();
  piece_->item = item;
  piece_->next = std::move(head);
}

/// As many bytes as may be on the way.
void store_copy::read_more() {
  if (std::exchange(piece_->is_reading, true)) return;
  if (!reader_) reader_ = std::make_unique<common::task_thread>("copy");
  reader_->run([this, of = piece_, store = store_, post = common::poster<protocol::ps_shard_actor>{self_}] {
    auto bytes = store->read_for_copy(of->item, of->source,
                                      copy_stream::parts_on_the_way_max * protocol::copy_part_bytes_max);
    post([this, of, bytes] { on_read(of, bytes); });
  });
}

void store_copy::on_read(const std::shared_ptr<piece>& of, const result<std::string>& bytes) {
  of->is_reading = false;
  if (of != piece_) return;
  if (!bytes) { // dropped or cut off meanwhile, or damaged: the next stream sees what is there
    context_.log->warn("copy: {}", bytes.error().message);
    piece_.reset();
    return stream_.fail(common::now());
  }
  piece_->next.timeline = of->source->timeline();
  piece_->next.content_bytes = of->source->content_bytes();
  piece_->next.total_bytes = of->source->total_bytes();
  if (bytes->empty()) piece_->read.emplace_back(); // an empty piece is one part all the same
  for (std::size_t from = 0; from < bytes->size(); from += protocol::copy_part_bytes_max)
    piece_->read.push_back(bytes->substr(from, protocol::copy_part_bytes_max));
  pump();
}

void store_copy::send(protocol::copy_part part) {
  part.role = context_.role;
  part.incarnation = context_.self.incarnation;
  part.keeper = link_;
  part.stream = stream_.stream();
  part.number = stream_.take_number();
  self_->send(keeper_, part);
}

} // namespace dlrun::ps_shard
