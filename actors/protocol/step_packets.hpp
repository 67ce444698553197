/// What a worker and a PS shard of one host say through a doorbell: the two messages of a step,
/// shorter.
#pragma once

#include "actors/protocol/step_messages.hpp"
#include "actors/protocol/timeline.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

namespace dlrun::protocol {

// In host byte order: both ends are processes of one build on one host. Whatever is lost is
// repeated by the messages that these stand for, so nothing here is answered.

/// The first packet of a worker: whose doorbell it is. The pushes that follow are of this start.
struct hello_packet {
  static constexpr std::uint32_t magic = 0x68'6c'64'01; // "\1dlh"
  std::uint32_t kind = magic;
  worker_id worker;
  fence self;
  std::array<char, 64> tensor_address{}; ///< ended by a zero
};

/// A `push`.
struct push_packet {
  static constexpr std::uint32_t magic = 0x70'6c'64'01; // "\1dlp"
  std::uint32_t kind = magic;
  std::uint32_t reserved = 0;
  timeline_id timeline;
  step_id step;
  slot_range slots;
  std::uint64_t records = 0;
  std::uint64_t tensor_sequence = 0;
  std::uint64_t segment = 0;
  std::uint64_t bytes = 0;
};

/// Of a `push` that will come: from float `from` of the flat gradient on it is there already.
struct part_packet {
  static constexpr std::uint32_t magic = 0x67'6c'64'01; // "\1dlg"
  std::uint32_t kind = magic;
  std::uint32_t reserved = 0;
  push_packet of;
  std::uint64_t from = 0;
};

/// A `shard_state`, without what changes with the timeline or with the PS shard's start alone.
struct state_packet {
  static constexpr std::uint32_t magic = 0x73'6c'64'01; // "\1dls"
  std::uint32_t kind = magic;
  std::uint32_t serves_previous = 0;
  incarnation shard_incarnation;
  timeline_id timeline;
  version_id applied;
  version_id committed;
};

template <class Packet>
std::span<const std::byte> bytes_of(const Packet& packet) {
  static_assert(std::is_trivially_copyable_v<Packet> && std::has_unique_object_representations_v<Packet>);
  return std::as_bytes(std::span{&packet, 1});
}

/// @returns nothing when the bytes are no such packet.
template <class Packet>
std::optional<Packet> read_packet(std::span<const std::byte> bytes) {
  static_assert(std::is_trivially_copyable_v<Packet>);
  Packet packet;
  if (bytes.size() != sizeof packet) return std::nullopt;
  std::memcpy(static_cast<void*>(&packet), bytes.data(), sizeof packet);
  if (packet.kind != Packet::magic) return std::nullopt;
  return packet;
}

/// `tensor_address` must have fewer than 64 characters; @returns nothing otherwise.
inline std::optional<hello_packet> make_hello(worker_id worker, const fence& self,
                                              std::string_view tensor_address) {
  hello_packet hello{.worker = worker, .self = self};
  if (tensor_address.size() >= hello.tensor_address.size()) return std::nullopt;
  std::ranges::copy(tensor_address, hello.tensor_address.begin());
  return hello;
}

inline std::string tensor_address_of(const hello_packet& hello) {
  const auto end = std::ranges::find(hello.tensor_address, '\0');
  return {hello.tensor_address.begin(), end};
}

inline push_packet packed(const push& message) {
  return {.timeline = message.timeline,
          .step = message.step,
          .slots = message.slots,
          .records = message.records,
          .tensor_sequence = message.tensor_sequence,
          .segment = message.where.segment,
          .bytes = message.where.bytes};
}

inline push unpacked(const push_packet& packet, const hello_packet& from) {
  return {.timeline = packet.timeline,
          .worker = from.worker,
          .self = from.self,
          .step = packet.step,
          .slots = packet.slots,
          .records = packet.records,
          .tensor_sequence = packet.tensor_sequence,
          .where = {tensor_address_of(from), packet.segment, packet.bytes}};
}

inline state_packet packed(const shard_state& message) {
  return {.serves_previous = message.serves_previous,
          .shard_incarnation = message.incarnation,
          .timeline = message.timeline,
          .applied = message.applied,
          .committed = message.committed};
}

/// `known` is a state of the same start of that PS shard and of the same timeline.
inline shard_state unpacked(const state_packet& packet, shard_state known) {
  known.applied = packet.applied;
  known.committed = packet.committed;
  known.serves_previous = packet.serves_previous != 0;
  known.lacks = {};
  return known;
}

} // namespace dlrun::protocol
