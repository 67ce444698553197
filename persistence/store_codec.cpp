#include "persistence/store_codec.hpp"

#include "proto/storage_records.pb.h"

#include <dlrun/check.hpp>

namespace dlrun::persistence {

namespace {

constexpr std::size_t step_bytes = 8;

std::string big_endian(std::uint64_t value) {
  std::string bytes(step_bytes, '\0');
  for (std::size_t i = 0; i < step_bytes; ++i)
    bytes[i] = static_cast<char>(value >> (8 * (step_bytes - 1 - i)));
  return bytes;
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
  return serialise(message);
}

std::optional<logged_record> decode_record(step_id step, std::string_view bytes) {
  auto message = parse<storage::LogRecord>(bytes);
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
  return serialise(message);
}

std::optional<snapshot_info> decode_snapshot(std::string_view bytes) {
  const auto message = parse<storage::SnapshotRecord>(bytes);
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
  return serialise(message);
}

std::optional<std::vector<history_entry>> decode_history(std::string_view bytes) {
  const auto message = parse<storage::History>(bytes);
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
  return serialise(message);
}

std::optional<incarnation> decode_opener(std::string_view bytes) {
  const auto message = parse<storage::Opener>(bytes);
  return message ? std::optional(incarnation{message->incarnation()}) : std::nullopt;
}

std::string encode_floor(version_id floor) {
  storage::Floor message;
  message.set_version(floor.value);
  return serialise(message);
}

std::optional<version_id> decode_floor(std::string_view bytes) {
  const auto message = parse<storage::Floor>(bytes);
  return message ? std::optional(version_id{message->version()}) : std::nullopt;
}

} // namespace dlrun::persistence
