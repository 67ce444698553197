/// What a store_mirror has in memory between two parts: bits are flipped there.
#pragma once

#include "actors/keeper/store_mirror.hpp"
#include "tests/actors/protocol/field_bits.hpp"

#include <string>

namespace dlrun::keeper {

struct store_mirror_memory {
  static std::string& bytes_of(store_mirror& mirror, protocol::copy_kind kind) {
    return kind == protocol::copy_kind::record ? mirror.record_.bytes : mirror.snapshot_.bytes;
  }
  static protocol::copy_part& head_of(store_mirror& mirror, protocol::copy_kind kind) {
    return kind == protocol::copy_kind::record ? mirror.record_.head : mirror.snapshot_.head;
  }
  static std::uint64_t& had_of(store_mirror& mirror, protocol::copy_kind kind) {
    return kind == protocol::copy_kind::record ? mirror.record_.had : mirror.snapshot_.had;
  }
};

} // namespace dlrun::keeper
