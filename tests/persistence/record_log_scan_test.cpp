// What is said of logs that RocksDB wrote.
#include "persistence/record_log_scan.hpp"

#include "persistence/database.hpp"
#include "tests/data/files.hpp"
#include "tests/persistence/damage.hpp"
#include "tests/persistence/payload.hpp"

#include <gtest/gtest.h>

namespace dlrun::persistence {
namespace {

class record_log_scan_test : public ::testing::Test {
protected:
  record_log_scan_test() {
    const auto written =
        database::open({folder.path().string(), files, true, false, false, std::size_t{4} << 20, "-"})
            .value();
    for (std::uint64_t i = 0; i < 12; ++i) { // the larger ones span blocks of 32 KiB
      rocksdb::WriteBatch batch;
      const auto bytes = test::payload_of({i}, {0}, i % 3 == 2 ? 50'000 : 1'000);
      batch.Put(std::to_string(i), rocksdb::Slice(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
      EXPECT_TRUE(written->write(batch, false));
    }
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      if (entry.path().extension() == ".log") path = entry.path();
    whole = test::content_of(path);
  }

  record_log_scan scan() { return scan_record_log(*files, path.string()).value(); }
  /// Where the last record begins.
  std::uint64_t last_record() const {
    std::uint64_t last = 0;
    for (const auto border : test::log_record_borders(whole))
      if (whole[border + 6] == 1 || whole[border + 6] == 2) last = border;
    return last;
  }

  test::temporary_folder folder;
  std::shared_ptr<file_system> files = default_file_system();
  std::filesystem::path path;
  std::string whole;
};

TEST_F(record_log_scan_test, a_log_that_was_closed_is_intact) {
  const auto found = scan();
  EXPECT_EQ(found.tail, log_tail::intact) << found.why;
  EXPECT_EQ(found.valid_bytes, whole.size());
  EXPECT_GT(whole.size(), 200'000U);
}

TEST_F(record_log_scan_test, a_log_that_is_cut_off_is_torn_or_ends_at_a_record) {
  const auto borders = test::log_record_borders(whole);
  for (const auto& harm : test::damages(whole.size(), borders, 200, 3)) {
    if (!harm.truncate) continue;
    harm.apply_to(path);
    const auto found = scan();
    harm.undo(path, whole);
    EXPECT_NE(found.tail, log_tail::damaged) << harm.describe() << ": " << found.why;
    EXPECT_LE(found.valid_bytes, harm.offset);
    EXPECT_EQ(found.tail == log_tail::intact, found.valid_bytes == harm.offset) << harm.describe();
  }
}

TEST_F(record_log_scan_test, a_flipped_bit_is_damage_wherever_it_is) {
  auto all = test::damages(whole.size(), {}, 400, 4);
  for (const auto border : test::log_record_borders(whole)) // each head, hence each length
    for (std::uint64_t i = 0; i < 7; ++i)
      for (const std::uint8_t bit : {0x01, 0x80}) all.push_back({false, border + i, bit});
  for (const auto& harm : all) {
    if (harm.truncate) continue;
    harm.apply_to(path);
    const auto found = scan();
    harm.undo(path, whole);
    if (found.tail == log_tail::intact) {
      EXPECT_EQ(whole[harm.offset], 0) << harm.describe(); // the unused end of a block
      continue;
    }
    EXPECT_EQ(found.tail, log_tail::damaged) << harm.describe() << ": " << found.why;
    EXPECT_LE(found.valid_bytes, harm.offset);
  }
}

TEST_F(record_log_scan_test, a_last_record_whose_pages_are_zero_is_torn) {
  const auto last = last_record();
  const auto page = (last / 4096 + 1) * 4096;
  ASSERT_LT(page, whole.size());
  std::filesystem::resize_file(path, page);
  std::filesystem::resize_file(path, whole.size());
  const auto found = scan();
  EXPECT_EQ(found.tail, log_tail::torn) << found.why;
  EXPECT_EQ(found.valid_bytes, last);
}

TEST_F(record_log_scan_test, zeroes_behind_the_last_record_are_torn) {
  std::filesystem::resize_file(path, whole.size() + 10'000);
  const auto found = scan();
  EXPECT_EQ(found.tail, log_tail::torn) << found.why;
  EXPECT_EQ(found.valid_bytes, whole.size());
}

TEST_F(record_log_scan_test, an_empty_log_is_intact) {
  std::filesystem::resize_file(path, 0);
  EXPECT_EQ(scan().tail, log_tail::intact);
}

} // namespace
} // namespace dlrun::persistence
