/// The copy of a PS shard's store: does to it what the PS shard sends (rules R21, R23, R26, R27).
#pragma once

#include "actors/protocol/copy_messages.hpp"
#include "persistence/shard_store.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace dlrun::keeper {

struct store_mirror_options {
  /// Who answers.
  protocol::role_name role{};
  dlrun::incarnation self{};
  /// Of the store, without an opener: that is the start of the PS shard that speaks first.
  persistence::shard_store_options store{};
  /// Larger records and what is kept with a snapshot are refused before memory is taken for them.
  std::uint64_t record_bytes_max = std::uint64_t{1} << 30;
};

/// Waits until the bytes of a part are there, which stay while this does; or why they do not come.
using part_bytes = std::function<result<std::span<const std::byte>>()>;

/// Takes the parts of a stream in order, and what is whole into the store: a record at a time, and
/// a snapshot whose parts may come between those of records. Knows no model and no numbers. A part
/// that is late, doubled or of another stream changes nothing; a higher stream begins anew. Blocks;
/// called by one thread at a time.
class store_mirror {
public:
  explicit store_mirror(store_mirror_options options)
      : options_(std::move(options)) {}

  /// Opens the store with the first part, and reads all of it: a snapshot that is damaged is
  /// dropped, and comes again. @param bytes called for a part that is due and fits, and nothing of
  /// what it gives is used before its checksum is right @returns the answer, sealed, unless the
  /// part changed nothing; or why this process must end: another start of the PS shard has the
  /// store, or it must be opened again, or is damaged.
  result<std::optional<protocol::copy_standing>> take(const protocol::copy_part& part,
                                                      const part_bytes& bytes);

  /// A store that cannot be opened for damage, or lacks a record in the middle, is renamed to
  /// *.damaged, in place of one before, and the next stream fills another: nobody counts what no
  /// start of the keeper has opened.
  /// @param why take() failed @returns false where that is not the reason, or the file system
  ///   refuses
  bool set_aside_damaged(const error& why) const;
  /// Null before the first part.
  const persistence::shard_store* store() const { return store_.get(); }

private:
  friend struct store_mirror_memory; ///< where tests flip bits
  /// That is in hand.
  struct piece {
    protocol::copy_part head{}; ///< its first part
    std::string bytes{};        ///< of a record; of a snapshot what is kept with it
    std::uint64_t had = 0;
  };

  piece& piece_of(const protocol::copy_part& part) {
    return part.kind == protocol::copy_kind::record ? record_ : snapshot_;
  }
  std::optional<protocol::copy_standing> give_up(std::string why);
  result<void> follow(const protocol::copy_part& part, const part_bytes& bytes);
  result<void> open(dlrun::incarnation opener);
  result<void> add(const protocol::copy_part& part, const part_bytes& bytes);
  result<void> begin(const protocol::copy_part& part);
  result<void> add_to_snapshot(std::span<const std::byte> content, std::span<const std::byte> rest);
  result<void> finish(const protocol::copy_part& part);
  result<void> append(const protocol::copy_part& part);
  result<void> drop_below(const protocol::copy_part& part);
  result<void> go_back(const protocol::copy_part& part);
  protocol::copy_standing standing() const;
  void drop_pieces();

  store_mirror_options options_;
  std::unique_ptr<persistence::shard_store> store_;
  dlrun::incarnation shard_{}; ///< newest start of the PS shard that has spoken
  std::uint64_t stream_ = 0;
  std::uint64_t taken_ = 0;
  std::string failure_{}; ///< of this stream, which is over
  piece record_{};
  piece snapshot_{};
  std::optional<persistence::snapshot_writer> writer_{}; ///< of `snapshot_`
};

} // namespace dlrun::keeper
