#include "tests/flipped_bits/bit_flip.hpp"

#include "tests/actors/keeper/mirror_memory.hpp"
#include "tests/actors/protocol/field_bits.hpp"

namespace dlrun::flipped_bits {
namespace {

using protocol::copy_kind;

constexpr std::uint64_t number_bits = 64;

void flip_in(std::span<std::byte> bytes, std::uint64_t bit) {
  const auto at = bit % (8 * bytes.size());
  bytes[at / 8] ^= static_cast<std::byte>(1U << (at % 8));
}

void flip_in(std::uint64_t& number, std::uint64_t bit) { number ^= std::uint64_t{1} << (bit % number_bits); }

template <class Message>
void flip_field(Message& message, std::uint64_t bit) {
  message = test::with_flipped(message, bit % test::bits_of(message));
}

bool has_begun(keeper::store_mirror& mirror, copy_kind kind) {
  return keeper::store_mirror_memory::had_of(mirror, kind) > 0;
}

} // namespace

std::string_view to_string(place where) {
  switch (where) {
  case place::part_fields: return "fields of a part";
  case place::standing_fields: return "fields of an answer";
  case place::item: return "what is read next";
  case place::part_sent: return "a part where it is fetched";
  case place::part_fetched: return "a part before its check";
  case place::piece: return "a piece behind its checks";
  case place::written: return "bytes that are written";
  case place::on_disk: return "a file";
  }
  return "unknown";
}

bool bit_flip::is_now(place where) {
  const std::scoped_lock lock{mutex_};
  const auto before = shown_[where]++;
  if (!plan_ || is_done_ || plan_->where != where || plan_->when != before) return false;
  is_done_ = true;
  return true;
}

bool bit_flip::is_done() const {
  const std::scoped_lock lock{mutex_};
  return is_done_;
}

std::uint64_t bit_flip::opportunities(place where) const {
  const std::scoped_lock lock{mutex_};
  const auto found = shown_.find(where);
  return found == shown_.end() ? 0 : found->second;
}

void bit_flip::show(protocol::copy_part& part) {
  if (is_now(place::part_fields)) flip_field(part, plan_->bit);
}

void bit_flip::show(protocol::copy_standing& standing) {
  if (is_now(place::standing_fields)) flip_field(standing, plan_->bit);
}

/// Of its version, or its kind.
void bit_flip::show(ps_shard::copy_item& item) {
  if (!is_now(place::item)) return;
  const auto bit = plan_->bit % (number_bits + 1);
  if (bit < number_bits)
    flip_in(item.version.value, bit);
  else
    item.kind = item.kind == copy_kind::record ? copy_kind::snapshot : copy_kind::record;
}

/// Half of the flips are in the bytes, where there are some.
void bit_flip::show(keeper::store_mirror& mirror) {
  for (const auto kind : {copy_kind::record, copy_kind::snapshot}) {
    if (!has_begun(mirror, kind) || !is_now(place::piece)) continue;
    const auto bit = plan_->bit / 4;
    auto& bytes = keeper::store_mirror_memory::bytes_of(mirror, kind);
    if (plan_->bit % 4 == 0)
      flip_in(keeper::store_mirror_memory::had_of(mirror, kind), bit);
    else if (plan_->bit % 4 == 1 || bytes.empty())
      flip_field(keeper::store_mirror_memory::head_of(mirror, kind), bit);
    else
      flip_in(std::as_writable_bytes(std::span(bytes)), bit);
  }
}

void bit_flip::show(place where, std::span<std::byte> bytes) {
  if (!bytes.empty() && is_now(where)) flip_in(bytes, plan_->bit);
}

} // namespace dlrun::flipped_bits
