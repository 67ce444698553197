#include "actors/ps_shard/copy_lane.hpp"

#include <dlrun/check.hpp>
#include <utility>

namespace dlrun::ps_shard {

copy_lane::copy_lane(std::shared_ptr<copy_slots> slots, copy_threads threads, events told)
    : slots_(std::move(slots))
    , threads_(std::move(threads))
    , told_(std::move(told)) {}

void copy_lane::begin(protocol::copy_part head, std::function<result<copy_source>()> open) {
  piece_ = std::make_shared<piece>(piece{std::move(head), std::move(open)});
}

void copy_lane::read_more() {
  if (!piece_ || !piece_->read.empty() || !slots_->has_free() || std::exchange(piece_->is_reading, true))
    return;
  threads_.read([this, of = piece_, slots = slots_, post = threads_.post] {
    for (bool goes_on = true; goes_on;) {
      auto got = read(*of, *slots);
      goes_on = got && got->part && !got->is_last;
      post([this, of, got = std::move(got)]() mutable { on_read(of, std::move(got)); });
    }
  });
}

result<copy_lane::news> copy_lane::read(piece& of, copy_slots& into) {
  if (!of.source) {
    auto opened = of.open();
    if (!opened) return tl::unexpected(opened.error());
    of.source.emplace(std::move(*opened));
  }
  news all{of.source->content_bytes(), of.source->total_bytes()};
  auto slot = into.lend();
  if (!slot) return tl::unexpected(slot.error());
  if (!*slot) return all;
  const auto had = of.source->read((*slot)->memory.mutable_bytes());
  if (!had) return tl::unexpected(had.error());
  all.part = read_part{std::move(*slot), *had};
  all.is_last = of.source->is_over();
  return all;
}

void copy_lane::on_read(const std::shared_ptr<piece>& of, result<news> got) {
  if (!got || !got->part || got->is_last) of->is_reading = false;
  if (of != piece_) {
    if (got) got->part.reset(); // the piece that was begun since may have waited for that room
    return told_.ready();
  }
  if (!got) return told_.failed(got.error());
  of->next.content_bytes = got->content_bytes;
  of->next.total_bytes = got->total_bytes;
  if (got->part) of->read.push_back(std::move(*got->part));
  told_.ready();
}

ready_part copy_lane::take_part() {
  DLRUN_CHECK(has_part(), "a part is taken where none is ready");
  auto& of = *piece_;
  auto next = std::move(of.read.front());
  of.read.pop_front();
  ready_part made{of.next, std::move(next.slot)};
  made.part.bytes = next.had.bytes;
  made.part.crc32c = next.had.crc32c;
  made.part.piece_crc32c = next.had.piece_crc32c;
  made.part.where = {slots_->address(), made.slot->id.value, made.slot->memory.size()};
  of.next.offset += next.had.bytes;
  if (of.next.offset == of.next.total_bytes) drop();
  return made;
}

} // namespace dlrun::ps_shard
