#include "persistence/log_of_record.hpp"

#include "base/crc32c.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <tuple>

namespace dlrun::persistence {

namespace {

/// What RocksDB and a segment take beside the payload, generously.
constexpr std::uint64_t record_overhead_bytes = 256;

} // namespace

void log_of_record::check_order(std::span<const log_record> records) const {
  const std::lock_guard lock(on_.mutex);
  auto expected = next_step_of(on_.state);
  const auto timeline = timeline_of(on_.state);
  for (const auto& record : records) {
    DLRUN_CHECK(record.step == expected, "step {} is appended to {} where step {} comes next", record.step,
                on_.options.directory, expected);
    DLRUN_CHECK(record.timeline >= timeline,
                "step {} of timeline {} is appended to {}, which is on timeline {}", record.step,
                record.timeline, on_.options.directory, timeline);
    DLRUN_CHECK(record.extra.size() <= extra_bytes_max, "step {} comes with {} bytes beside its payload",
                record.step, record.extra.size());
    ++expected.value;
  }
}

/// The value of each record; large payloads are in segments afterwards.
result<std::vector<std::string>> log_of_record::write_segments(std::span<const log_record> records) {
  std::vector<std::uint32_t> checksums;
  std::vector<segment_payload> large;
  for (const auto& record : records) {
    checksums.push_back(record.payload_crc32c ? *record.payload_crc32c : base::crc32c(record.payload));
    if (record.payload.size() > on_.options.inline_bytes_max)
      large.push_back(
          {{record.step, record.timeline, record.payload.size(), checksums.back()}, record.payload});
  }
  const auto places = on_.segments.append(large);
  if (!places) return tl::unexpected(places.error());
  std::vector<std::string> values;
  std::size_t next = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const bool inlined = records[i].payload.size() <= on_.options.inline_bytes_max;
    values.push_back(
        encode(records[i], checksums[i], inlined ? std::nullopt : std::optional((*places)[next++])));
  }
  return values;
}

result<void> log_of_record::append(std::span<const log_record> records) {
  const std::lock_guard log_lock(on_.log_mutex);
  check_order(records);
  if (records.empty()) return {};
  if (auto usable = on_.check_usable(); !usable) return usable;
  std::uint64_t payload_bytes = 0;
  for (const auto& record : records) payload_bytes += record.payload.size() + record.extra.size();
  if (auto room = on_.check_quota(payload_bytes + records.size() * record_overhead_bytes); !room) return room;
  if (auto ready = on_.recover(); !ready) return ready;
  const auto values = write_segments(records);
  if (!values) return tl::unexpected(values.error());
  rocksdb::WriteBatch batch;
  for (std::size_t i = 0; i < records.size(); ++i)
    batch.Put(on_.database->handle(table::log), keys::of_step(records[i].step), (*values)[i]);
  if (auto written = on_.write(batch, false); !written) {
    on_.segments.cut_from(records.front().step);
    on_.make_room();
    return written;
  }
  on_.bytes_logged += payload_bytes;
  {
    const std::lock_guard lock(on_.mutex);
    for (const auto& record : records) on_.state.steps.add(record.step);
  }
  if (on_.options.sync != sync_mode::power) return {};
  const auto synced = sync();
  return synced ? result<void>() : tl::unexpected(synced.error());
}

result<step_id> log_of_record::sync() {
  const auto [end, synced, rewinds] = on_.with_state([](const store_state& state) {
    return std::tuple(next_step_of(state), state.synced_end, state.rewinds);
  });
  if (auto usable = on_.check_usable(); !usable) return tl::unexpected(usable.error());
  if (synced == end) return end;
  auto done = on_.segments.sync();
  if (done) done = on_.database->sync();
  if (!done) {
    // A write that failed meanwhile is not a sync that failed; but this one is not done either.
    if (!on_.database->broken()) on_.lost = true;
    return tl::unexpected(done.error());
  }
  const std::lock_guard lock(on_.mutex);
  if (on_.state.rewinds == rewinds) on_.state.synced_end = std::max(on_.state.synced_end, end);
  return end;
}

result<logged_record> log_of_record::logged(step_id step) const {
  if (!on_.with_state([&](const store_state& state) { return state.steps.contains(step); }))
    return fail(error_code::bad_usage,
                fmt::format("{} holds no record of step {}", on_.options.directory, step));
  const auto value = on_.database->get(table::log, keys::of_step(step));
  if (!value) return tl::unexpected(value.error());
  auto record = *value ? decode_record(step, **value) : std::nullopt;
  if (!record)
    return fail(error_code::storage_damaged,
                fmt::format("{}: the record of step {} is not what was written", on_.log_directory, step));
  return std::move(*record);
}

result<record_head> log_of_record::read_head(step_id step) const {
  const auto record = logged(step);
  if (!record) return tl::unexpected(record.error());
  return record->head;
}

result<payload_reader> log_of_record::open_payload(step_id step) const {
  auto found = logged(step);
  if (!found) return tl::unexpected(found.error());
  if (!found->place)
    return payload_reader{std::move(found->head), found->payload_crc32c, std::move(found->inlined),
                          on_.log_directory};
  auto file = on_.segments.open(*found->place);
  if (!file) return tl::unexpected(file.error());
  const auto& head = found->head;
  const segment_record expected{head.step, head.timeline, head.payload_bytes, found->payload_crc32c};
  if (auto there = (*file)->check_head(found->place->offset, expected); !there)
    return tl::unexpected(there.error());
  return payload_reader{std::move(found->head), found->payload_crc32c, std::move(*file),
                        found->place->offset};
}

} // namespace dlrun::persistence
