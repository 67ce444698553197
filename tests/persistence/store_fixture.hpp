/// What the tests of the store share: a folder, records whose bytes follow from their step, and
/// comparisons.
#pragma once

#include "persistence/shard_store.hpp"
#include "tests/data/files.hpp"
#include "tests/persistence/faulty_file_system.hpp"
#include "tests/persistence/payload.hpp"

#include <algorithm>
#include <gtest/gtest.h>

namespace dlrun::test {

class store_test : public ::testing::Test {
protected:
  /// RocksDB has threads: a child that is only forked may wait for ever for a lock that one of them
  /// held.
  store_test() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  persistence::shard_store_options options(std::uint64_t opener = 1) const {
    persistence::shard_store_options made;
    made.directory = directory();
    made.opener = {opener};
    made.files = files;
    made.inline_bytes_max = small_inline_bytes_max;
    made.segment_bytes = std::uint64_t{64} << 10;
    return made;
  }
  std::string directory() const { return (folder.path() / "shard").string(); }

  static result<void> append(persistence::shard_store& store, std::uint64_t first, std::uint64_t end,
                             std::uint64_t timeline = 0) {
    std::vector<std::vector<std::byte>> payloads;
    std::vector<std::string> extras;
    std::vector<persistence::log_record> records;
    for (auto step = first; step < end; ++step) {
      payloads.push_back(payload_of({step}, {timeline}, size_of({step})));
      extras.push_back("extra of " + std::to_string(step));
    }
    for (auto step = first; step < end; ++step)
      records.push_back({{step}, {timeline}, extras[step - first], payloads[step - first]});
    return store.append(records);
  }
  /// Each in an append of its own.
  static result<void> append_each(persistence::shard_store& store, std::uint64_t first, std::uint64_t end,
                                  std::uint64_t timeline = 0) {
    for (auto step = first; step < end; ++step)
      if (auto done = append(store, step, step + 1, timeline); !done) return done;
    return {};
  }

  /// The record is exactly what append() wrote on that timeline.
  static ::testing::AssertionResult holds(const persistence::shard_store& store, std::uint64_t step,
                                          std::uint64_t timeline = 0) {
    const auto record = store.read(step_id{step});
    if (!record) return ::testing::AssertionFailure() << record.error().message;
    if (record->head.step.value != step || record->head.timeline.value != timeline ||
        record->head.extra != "extra of " + std::to_string(step))
      return ::testing::AssertionFailure() << "another head at step " << step;
    if (record->payload != payload_of({step}, {timeline}, size_of({step})))
      return ::testing::AssertionFailure() << "other bytes at step " << step;
    return ::testing::AssertionSuccess();
  }
  static ::testing::AssertionResult holds_all(const persistence::shard_store& store, std::uint64_t first,
                                              std::uint64_t end, std::uint64_t timeline = 0) {
    for (auto step = first; step < end; ++step)
      if (auto held = holds(store, step, timeline); !held) return held;
    return ::testing::AssertionSuccess();
  }

  static result<persistence::snapshot_info> snapshot(persistence::shard_store& store, std::uint64_t version,
                                                     std::uint64_t timeline = 0, std::size_t size = 10'000) {
    auto writer = store.begin_snapshot({version}, {timeline});
    if (!writer) return tl::unexpected(writer.error());
    if (auto written = writer->write(payload_of({version}, {timeline}, size)); !written)
      return tl::unexpected(written.error());
    return writer->commit(payload_of({version}, {timeline}, 64));
  }
  static ::testing::AssertionResult has_snapshot(const persistence::shard_store& store, std::uint64_t version,
                                                 std::uint64_t timeline = 0, std::size_t size = 10'000) {
    auto reader = store.open_snapshot({version});
    if (!reader) return ::testing::AssertionFailure() << reader.error().message;
    std::vector<std::byte> bytes(size + 1);
    const auto got = reader->read(bytes);
    if (!got) return ::testing::AssertionFailure() << got.error().message;
    bytes.resize(*got);
    if (bytes != payload_of({version}, {timeline}, size))
      return ::testing::AssertionFailure() << "other bytes";
    const auto metadata = payload_of({version}, {timeline}, 64);
    if (!std::ranges::equal(reader->metadata(), metadata))
      return ::testing::AssertionFailure() << "other metadata";
    return ::testing::AssertionSuccess();
  }

  bool is_empty(const std::string& part) const {
    return persistence::list_files(*files, directory() + part).value().empty();
  }

  using ranges = std::vector<base::version_range>;

  temporary_folder folder;
  /// Without faults until a test asks for some. It does not bother the real disk with syncs, so
  /// tests are quick.
  std::shared_ptr<faulty_file_system> files = std::make_shared<faulty_file_system>(1);
};

} // namespace dlrun::test
