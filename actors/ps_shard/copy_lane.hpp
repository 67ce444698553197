/// The piece that the keeper is sent of one kind, a record or a snapshot: read ahead, part by part.
///
///   begin() ──> reading thread: copy_source ──> copy_slots ──> take_part() ──> copy_part
#pragma once

#include "actors/ps_shard/copy_slots.hpp"
#include "actors/ps_shard/copy_source.hpp"

#include <deque>
#include <functional>
#include <memory>

namespace dlrun::ps_shard {

/// A part that may be sent, and what its bytes lie in until it is taken.
struct ready_part {
  protocol::copy_part part; ///< but for what says which part of the stream it is
  std::shared_ptr<copy_slot> slot;
};

/// Where tasks run.
struct copy_threads {
  std::function<void(std::function<void()>)> read; ///< those that block: elsewhere, one after the other
  std::function<void(std::function<void()>)> post; ///< on the actor, later
};

/// One piece at a time. Called by one actor, which it outlives no more than what it posts.
class copy_lane {
public:
  struct events {
    std::function<void()> ready; ///< there is a part, or room to read another one
    std::function<void(const error& why)> failed;
  };
  copy_lane(std::shared_ptr<copy_slots> slots, copy_threads threads, events told);

  /// @param head what all its parts have in common @param open called on the reading thread; what
  ///   it holds outlives the source
  void begin(protocol::copy_part head, std::function<result<copy_source>()> open);
  void drop() { piece_.reset(); }
  bool is_busy() const { return piece_ != nullptr; }

  /// Reads on as far as there is room, unless that is being done.
  void read_more();
  bool has_part() const { return piece_ && !piece_->read.empty(); }
  /// Requires has_part(). With the last one the piece is over.
  ready_part take_part();

private:
  struct read_part {
    std::shared_ptr<copy_slot> slot;
    copy_source::given had;
  };
  struct piece {
    protocol::copy_part next; ///< without its bytes
    std::function<result<copy_source>()> open;
    std::optional<copy_source> source{}; ///< of the reading thread
    std::deque<read_part> read{};        ///< not sent yet
    bool is_reading = false;
  };
  /// What the reading thread has got.
  struct news {
    std::uint64_t content_bytes = 0;
    std::uint64_t total_bytes = 0;
    std::optional<read_part> part{}; ///< nothing: there was no room
    bool is_last = false;
  };

  static result<news> read(piece& of, copy_slots& into);
  void on_read(const std::shared_ptr<piece>& of, result<news> got);

  std::shared_ptr<copy_slots> slots_;
  copy_threads threads_;
  events told_;
  std::shared_ptr<piece> piece_; ///< null: none
};

} // namespace dlrun::ps_shard
