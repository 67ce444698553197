/// Sends a keeper what its copy lacks: the stream of parts, and the memory that they are fetched
/// from.
///
///   copied_store ──> copy_stream ──> copy_lane ──> sealed copy_part
///                         ▲ copy_standing
#pragma once

#include "actors/ps_shard/copy_lane.hpp"
#include "actors/ps_shard/copy_stream.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

namespace dlrun::ps_shard {

/// What is copied. The functions may be called as long as they exist; `open` from the thread that
/// reads.
struct copied_store {
  std::function<own_store()> held;
  std::function<result<copy_source>(const copy_item&)> open;
};

struct copy_sender_options {
  protocol::role_name role{};       ///< of the PS shard
  dlrun::incarnation incarnation{}; ///< its start
  std::shared_ptr<transport::segment_offers> offers;
  copy_threads threads;
  std::function<void(const protocol::copy_part&)> send;
  std::function<void(const std::string&)> warn; ///< for people
  std::function<protocol::time_point()> now;
  std::size_t part_bytes = protocol::copy_part_bytes_max;
};

/// No CAF, and no clock but the one that it is given. Called by one actor, which it outlives no
/// more than what it posts.
class copy_sender {
public:
  explicit copy_sender(copy_sender_options options);
  copy_sender(const copy_sender&) = delete;
  copy_sender& operator=(const copy_sender&) = delete;

  /// From now on pieces of that store are sent. What was begun is dropped: another stream is to
  /// begin.
  void serve(copied_store store);
  /// Another stream, to that start of the keeper.
  void begin(dlrun::incarnation keeper);
  /// There is nobody to send to.
  void end();
  /// @returns false for what is not of this stream, contradicts itself, or is not what was sealed:
  ///   nothing may be concluded from it.
  bool on_standing(const protocol::copy_standing& standing);
  /// Another stream is to begin.
  bool is_stuck() const { return stream_.is_stuck(options_.now()); }
  /// Some bytes, which the keeper may be fetching.
  bool has_bytes_on_the_way() const { return !on_the_way_.empty(); }
  /// That a keeper has taken, since this was made.
  std::uint64_t bytes_taken() const { return bytes_taken_; }
  /// Sends what there is room for. To be called when something of it may have changed.
  void pump();

private:
  /// Whose bytes the keeper may be fetching.
  struct part_on_the_way {
    std::uint64_t number = 0;
    std::uint64_t bytes = 0;
    std::shared_ptr<copy_slot> slot;
  };

  void drop_pieces();
  void begin_piece(const copy_item& item, const own_store& own);
  copy_lane* lane_to_send();
  void send_part_of(copy_lane& lane);
  void fail(const error& why);
  std::uint64_t send(protocol::copy_part part);

  copy_sender_options options_;
  copied_store store_;
  copy_stream stream_;
  dlrun::incarnation keeper_{};
  std::deque<part_on_the_way> on_the_way_;
  std::uint64_t bytes_taken_ = 0;
  copy_lane records_;
  copy_lane snapshots_;
};

} // namespace dlrun::ps_shard
