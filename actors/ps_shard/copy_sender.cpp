#include "actors/ps_shard/copy_sender.hpp"

#include <utility>

namespace dlrun::ps_shard {
namespace {

/// Of the parts that are sent while a record and a snapshot wait, one in so many is of the
/// snapshot.
constexpr std::uint64_t snapshot_share = 4;

std::shared_ptr<copy_slots> slots_for(const copy_sender_options& options, std::size_t count_max) {
  return std::make_shared<copy_slots>(options.offers, count_max, options.part_bytes);
}

} // namespace

copy_sender::copy_sender(copy_sender_options options)
    : options_(std::move(options))
    , records_(slots_for(options_, protocol::copy_record_parts_max), options_.threads,
               {[this] { pump(); }, [this](const error& why) { fail(why); }})
    , snapshots_(slots_for(options_, protocol::copy_snapshot_parts_max), options_.threads,
                 {[this] { pump(); }, [this](const error& why) { fail(why); }}) {}

void copy_sender::serve(copied_store store) {
  drop_pieces();
  store_ = std::move(store);
}

void copy_sender::begin(dlrun::incarnation keeper) {
  drop_pieces();
  keeper_ = keeper;
  stream_.begin(options_.now());
  send({.kind = protocol::copy_kind::hello});
}

void copy_sender::end() {
  drop_pieces();
  stream_.end();
}

void copy_sender::drop_pieces() {
  records_.drop();
  snapshots_.drop();
  on_the_way_.clear();
}

bool copy_sender::on_standing(const protocol::copy_standing& standing) {
  if (!protocol::is_sealed(standing)) {
    options_.warn("what the keeper said has changed on the way: it is passed over");
    return false;
  }
  if (standing.incarnation != keeper_ || standing.shard != options_.incarnation ||
      !stream_.on_standing(standing, options_.now()))
    return false;
  for (; !on_the_way_.empty() && on_the_way_.front().number < stream_.taken(); on_the_way_.pop_front())
    bytes_taken_ += on_the_way_.front().bytes;
  return true;
}

void copy_sender::pump() {
  if (!store_.held || !stream_.has_room()) return;
  const auto own = store_.held();
  while (stream_.has_room()) {
    if (!records_.is_busy())
      if (const auto item = stream_.next(own)) {
        begin_piece(*item, own);
        continue;
      }
    records_.read_more();
    snapshots_.read_more();
    auto* next = lane_to_send();
    if (next == nullptr) return;
    send_part_of(*next);
  }
}

/// Records go first: steps wait for them. A snapshot gets on all the same.
copy_lane* copy_sender::lane_to_send() {
  if (snapshots_.has_part() && (!records_.has_part() || stream_.is_turn_of(snapshot_share)))
    return &snapshots_;
  return records_.has_part() ? &records_ : nullptr;
}

void copy_sender::send_part_of(copy_lane& lane) {
  auto [part, slot] = lane.take_part();
  if (&lane == &snapshots_ && !lane.is_busy()) stream_.on_snapshot_sent();
  const auto bytes = part.bytes;
  on_the_way_.push_back({send(std::move(part)), bytes, std::move(slot)});
}

void copy_sender::begin_piece(const copy_item& item, const own_store& own) {
  protocol::copy_part head{.kind = item.kind, .timeline = item.timeline, .version = item.version};
  if (item.kind == protocol::copy_kind::rewind) {
    for (const auto& entry : own.history)
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
  auto& lane = item.kind == protocol::copy_kind::record ? records_ : snapshots_;
  lane.begin(std::move(head), [open = store_.open, item] { return open(item); });
}

/// Dropped or cut off meanwhile, or damaged: the next stream sees what is there.
void copy_sender::fail(const error& why) {
  options_.warn(why.message);
  drop_pieces();
  stream_.fail(options_.now());
}

/// @returns its number.
std::uint64_t copy_sender::send(protocol::copy_part part) {
  part.role = options_.role;
  part.incarnation = options_.incarnation;
  part.keeper = keeper_;
  part.stream = stream_.stream();
  part.number = stream_.take_number();
  protocol::seal(part);
  options_.send(part);
  return part.number;
}

} // namespace dlrun::ps_shard
