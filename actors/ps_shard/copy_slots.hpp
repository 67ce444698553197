/// Memory of a PS shard from which its keeper fetches what it is sent.
#pragma once

#include "actors/protocol/copy_messages.hpp"
#include "transport/tensor_channel.hpp"

#include <memory>
#include <mutex>
#include <vector>

namespace dlrun::ps_shard {

/// A segment that is offered on the tensor channel.
struct copy_slot {
  transport::segment memory;
  transport::segment_id id;
};

/// So many slots at most, which are made when they are first needed, and
/// offered until all of this and of its loans is gone. Thread-safe.
class copy_slots {
public:
  /// `offers` is shared with who else offers something there. Of `slot_bytes` each.
  copy_slots(std::shared_ptr<transport::segment_offers> offers, std::size_t count_max,
             std::size_t slot_bytes = protocol::copy_part_bytes_max);

  const std::string& address() const;
  bool has_free() const;
  /// A slot that comes back with its last owner, on any thread; null when none is free. Blocks for
  /// as long as memory takes. @returns as segment::create() and segment_offers::offer() do.
  result<std::shared_ptr<copy_slot>> lend();

private:
  class shelf;
  std::shared_ptr<shelf> shelf_;
};

} // namespace dlrun::ps_shard
