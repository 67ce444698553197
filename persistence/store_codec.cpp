#include "persistence/store_codec.hpp"

#include "base/crc32c.hpp"
#include "persistence/framing.hpp"
#include "proto/storage_records.pb.h"

#include <array>
#include <dlrun/check.hpp>

namespace dlrun::persistence {

namespace {

constexpr std::size_t step_bytes = 8;
/// Tag of field 15, fixed32: earlier versions pass over it.
constexpr char seal_tag = 0x7d;
constexpr std::size_t seal_bytes = 1 + sizeof(std::uint32_t);
/// No value that is not sealed begins with a higher tag, and no flipped bit makes one of these of
/// `seal_tag`.
constexpr unsigned char unsealed_tag_max = 0x3a;

std::string big_endian(std::uint64_t value) {
  std::string bytes(step_bytes, '\0');
  for (std::size_t i = 0; i < step_bytes; ++i)
    bytes[i] = static_cast<char>(value >> (8 * (step_bytes - 1 - i)));
  return bytes;
}

std::uint32_t checksum_of(std::string_view key, std::string_view body) {
  return base::crc32c_extend(base::crc32c(key), std::as_bytes(std::span(body)));
}

template <class Message>
std::optional<Message> parse(std::string_view bytes) {
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return std::nullopt;
  return message;
}

template <class Message>
std::string serialise(const Message& message) {
  std::string bytes;
  DLRUN_CHECK(message.SerializeToString(&bytes), "a {} that cannot be serialised", message.GetTypeName());
  return bytes;
}

} // namespace

namespace keys {

std::string of_step(step_id step) { return big_endian(step.value); }

std::optional<step_id> to_step(std::string_view key) {
  if (key.size() != step_bytes) return std::nullopt;
  std::uint64_t value = 0;
  for (const char byte : key) value = value << 8 | static_cast<std::uint8_t>(byte);
  return step_id{value};
}

std::string after_all_steps() { return std::string(step_bytes + 1, '\xff'); }

std::string of_snapshot(version_id version) {
  return std::string(snapshot_prefix) + big_endian(version.value);
}

} // namespace keys

std::string seal_value(std::string_view key, std::string_view body) {
  std::array<std::byte, seal_bytes> seal{};
  put(seal, 0, seal_tag);
  put(seal, 1, checksum_of(key, body));
  std::string value;
  value.reserve(seal.size() + body.size());
  value.append(as_text(seal)).append(body);
  return value;
}

std::optional<std::string_view> unseal_value(std::string_view key, std::string_view value) {
  if (value.empty() || static_cast<unsigned char>(value.front()) <= unsealed_tag_max) return value;
  if (value.front() != seal_tag || value.size() < seal_bytes) return std::nullopt;
  const auto body = value.substr(seal_bytes);
  const auto sealed = get<std::uint32_t>(std::as_bytes(std::span(value)), 1);
  return sealed == checksum_of(key, body) ? std::optional(body) : std::nullopt;
}

std::string encode(const log_record& record, std::uint32_t payload_crc32c,
                   const std::optional<segment_place>& place) {
  storage::LogRecord message;
  message.set_timeline(record.timeline.value);
  message.set_extra(record.extra.data(), record.extra.size());
  message.set_payload_bytes(record.payload.size());
  message.set_payload_crc32c(payload_crc32c);
  if (place) {
    message.mutable_segment()->set_segment(place->segment);
    message.mutable_segment()->set_offset(place->offset);
  } else {
    message.set_inline_(record.payload.data(), record.payload.size());
  }
  return seal_value(keys::of_step(record.step), serialise(message));
}

std::optional<logged_record> decode_record(step_id step, std::string_view bytes) {
  const auto body = unseal_value(keys::of_step(step), bytes);
  auto message = body ? parse<storage::LogRecord>(*body) : std::nullopt;
  if (!message) return std::nullopt;
  logged_record record;
  record.head = {step, {message->timeline()}, std::move(*message->mutable_extra()), message->payload_bytes()};
  record.payload_crc32c = message->payload_crc32c();
  if (message->has_segment())
    record.place = segment_place{message->segment().segment(), message->segment().offset()};
  else if (message->inline_().size() == message->payload_bytes())
    record.inlined = std::move(*message->mutable_inline_());
  else
    return std::nullopt;
  return record;
}

std::string encode(const snapshot_info& snapshot) {
  storage::SnapshotRecord message;
  message.set_version(snapshot.version.value);
  message.set_timeline(snapshot.timeline.value);
  message.set_payload_bytes(snapshot.payload_bytes);
  message.set_file_bytes(snapshot.file_bytes);
  return seal_value(keys::of_snapshot(snapshot.version), serialise(message));
}

std::optional<snapshot_info> decode_snapshot(std::string_view key, std::string_view bytes) {
  const auto body = unseal_value(key, bytes);
  const auto message = body ? parse<storage::SnapshotRecord>(*body) : std::nullopt;
  if (!message) return std::nullopt;
  return snapshot_info{
      {message->version()}, {message->timeline()}, message->payload_bytes(), message->file_bytes()};
}

std::string encode(const std::vector<history_entry>& history) {
  storage::History message;
  for (const auto& entry : history) {
    auto& added = *message.add_entries();
    added.set_timeline(entry.timeline.value);
    added.set_branch(entry.branch.value);
    added.set_spec_revision(entry.spec_revision);
    for (const auto& one : entry.parked) {
      auto& parked = *added.add_parked();
      parked.set_step(one.step.value);
      parked.set_slot(one.slot.value);
      parked.set_record_after(one.record_after);
    }
  }
  return seal_value(keys::history, serialise(message));
}

std::optional<std::vector<history_entry>> decode_history(std::string_view bytes) {
  const auto body = unseal_value(keys::history, bytes);
  const auto message = body ? parse<storage::History>(*body) : std::nullopt;
  if (!message) return std::nullopt;
  std::vector<history_entry> history;
  for (const auto& entry : message->entries()) {
    history.push_back({{entry.timeline()}, {entry.branch()}, entry.spec_revision(), {}});
    for (const auto& parked : entry.parked())
      history.back().parked.push_back({{parked.step()}, {parked.slot()}, parked.record_after()});
  }
  return history;
}

std::string encode_opener(incarnation opener) {
  storage::Opener message;
  message.set_incarnation(opener.value);
  return seal_value(keys::opener, serialise(message));
}

std::optional<incarnation> decode_opener(std::string_view bytes) {
  const auto body = unseal_value(keys::opener, bytes);
  const auto message = body ? parse<storage::Opener>(*body) : std::nullopt;
  return message ? std::optional(incarnation{message->incarnation()}) : std::nullopt;
}

std::string encode_floor(version_id floor) {
  storage::Floor message;
  message.set_version(floor.value);
  return seal_value(keys::floor, serialise(message));
}

std::optional<version_id> decode_floor(std::string_view bytes) {
  const auto body = unseal_value(keys::floor, bytes);
  const auto message = body ? parse<storage::Floor>(*body) : std::nullopt;
  return message ? std::optional(version_id{message->version()}) : std::nullopt;
}

} // namespace dlrun::persistence
