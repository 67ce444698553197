/// The copy of a store, which is sent pieces of it, part by part.
#pragma once

#include "actors/keeper/store_mirror.hpp"
#include "actors/ps_shard/copy_source.hpp"
#include "base/crc32c.hpp"
#include "tests/persistence/store_fixture.hpp"

#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

namespace dlrun::keeper {

using protocol::copy_kind;
using protocol::copy_part;
using protocol::copy_standing;
using ps_shard::copy_item;

inline constexpr incarnation shard_start{5};
inline constexpr std::size_t bytes_a_part = 1000;
inline constexpr std::uint64_t large_step = 5; ///< its record takes ten parts

/// And what its bytes are where they come from.
struct played_part : copy_part {
  std::string come{};
};

class mirrored_store : public test::store_test {
protected:
  store_mirror_options copy_options() const {
    store_mirror_options made;
    made.store.directory = (folder.path() / "copy").string();
    made.store.files = files;
    made.store.inline_bytes_max = test::small_inline_bytes_max;
    made.record_bytes_max = std::uint64_t{1} << 20;
    return made;
  }
  /// Of a start of the PS shard: the next stream.
  copy_standing begin(incarnation start = shard_start) {
    ++stream_;
    number_ = 0;
    return taken(stamped({.kind = copy_kind::hello}, start));
  }
  played_part stamped(const copy_part& of, incarnation start = shard_start, std::string come = {}) {
    played_part part{of, std::move(come)};
    part.role = protocol::ps_shard_role({0});
    part.incarnation = start;
    part.stream = stream_;
    part.number = number_++;
    part.bytes = part.come.size();
    part.crc32c = base::crc32c(part.come);
    return part;
  }
  auto give(const played_part& part) {
    return mirror.take(sealed(part), [&] { return std::as_bytes(std::span(part.come)); });
  }
  auto give(const copy_part& part) { return give(played_part{part}); }
  static copy_part sealed(copy_part part) {
    protocol::seal(part);
    return part;
  }
  /// A record or a snapshot of the primary.
  std::vector<played_part> parts_of(copy_kind kind, std::uint64_t version, timeline_id timeline = {}) {
    auto source = ps_shard::copy_source::open(*primary, copy_item{kind, {version}}).value();
    std::vector<played_part> all;
    for (std::uint64_t offset = 0; offset < source.total_bytes() || all.empty();) {
      const copy_part part{.kind = kind,
                           .timeline = timeline,
                           .version = {version},
                           .content_bytes = source.content_bytes(),
                           .total_bytes = source.total_bytes(),
                           .offset = offset};
      std::string come(bytes_a_part, 'x');
      const auto had = source.read(std::as_writable_bytes(std::span(come))).value();
      come.resize(had.bytes);
      offset += had.bytes;
      all.push_back(stamped(part, shard_start, std::move(come)));
      all.back().piece_crc32c = had.piece_crc32c;
      EXPECT_EQ(all.back().crc32c, had.crc32c);
    }
    return all;
  }
  /// What it answers, which it must.
  copy_standing taken(const played_part& part) {
    const auto answer = give(part).value();
    EXPECT_TRUE(answer.has_value()) << "part " << part.number;
    return answer.value_or(copy_standing{});
  }
  /// All in order. @returns the last answer
  copy_standing take(const std::vector<played_part>& parts) {
    for (const auto& part : parts)
      if (const auto answer = give(part).value()) last_ = *answer;
    return last_;
  }
  copy_standing send(copy_kind kind, std::uint64_t version, timeline_id timeline = {}) {
    return take(parts_of(kind, version, timeline));
  }
  void send_records(std::uint64_t first, std::uint64_t end, timeline_id timeline = {}) {
    for (auto step = first; step < end; ++step)
      EXPECT_EQ(send(copy_kind::record, step, timeline).failure, "");
  }
  const persistence::shard_store& copy() const { return *mirror.store(); }

  std::unique_ptr<persistence::shard_store> primary = persistence::shard_store::open(options()).value();
  store_mirror mirror{copy_options()};

private:
  std::uint64_t stream_ = 0;
  std::uint64_t number_ = 0;
  copy_standing last_{};
};

} // namespace dlrun::keeper
