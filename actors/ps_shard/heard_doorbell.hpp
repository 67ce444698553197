/// What a worker says through its doorbell, as a PS shard hears it.
#pragma once

#include "actors/protocol/step_packets.hpp"

#include <functional>
#include <optional>
#include <span>
#include <utility>

namespace dlrun::ps_shard {

/// Reads the packets of one doorbell: first whose it is, then what that start of the worker pushes.
/// Whatever else comes ends it. Called by its owner only; copies hear each for itself.
class heard_doorbell {
public:
  struct events {
    /// @returns whether that start of a worker may use it: nothing more is heard otherwise.
    std::function<bool(worker_id, const protocol::fence&)> greeted;
    std::function<void(const protocol::push&)> pushed;
    /// From float `from` of the flat gradient on that push is there already.
    std::function<void(const protocol::push&, std::uint64_t from)> begun;
    /// One that had been greeted says no more.
    std::function<void(worker_id)> ended;
  };

  explicit heard_doorbell(events told)
      : told_(std::move(told)) {}

  /// @param packet nothing: the worker is gone. @returns whether to listen on.
  bool on_packet(std::optional<std::span<const std::byte>> packet) {
    if (!packet) return end();
    if (!from_) return greet(*packet);
    if (const auto push = protocol::read_packet<protocol::push_packet>(*packet)) {
      told_.pushed(protocol::unpacked(*push, *from_));
      return true;
    }
    if (const auto part = protocol::read_packet<protocol::part_packet>(*packet)) {
      told_.begun(protocol::unpacked(part->of, *from_), part->from);
      return true;
    }
    return end();
  }

private:
  bool greet(std::span<const std::byte> packet) {
    from_ = protocol::read_packet<protocol::hello_packet>(packet);
    return from_ && told_.greeted(from_->worker, from_->self);
  }
  bool end() {
    if (from_) told_.ended(from_->worker);
    return false;
  }

  events told_;
  std::optional<protocol::hello_packet> from_; ///< once it has been said
};

} // namespace dlrun::ps_shard
