// Values that RocksDB holds in memory for hours: a flipped bit is never taken for what was written.
#include "persistence/store_codec.hpp"

#include "tests/persistence/payload.hpp"

#include <gtest/gtest.h>

namespace dlrun::persistence {
namespace {

constexpr std::size_t seal_bytes = 5;

std::string sealed_record(step_id step) {
  const auto payload = test::payload_of(step, {2}, 100);
  return encode(log_record{step, {2}, "extra of it, some twenty", payload}, 1234, std::nullopt);
}

bool is_same(const logged_record& one, const logged_record& other) {
  return one.head == other.head && one.payload_crc32c == other.payload_crc32c &&
         one.inlined == other.inlined && one.place.has_value() == other.place.has_value();
}

/// Calls `decode` with each bit of `value` flipped. @returns how often it gave something.
template <class Decode>
std::size_t accepted(const std::string& value, Decode decode) {
  std::size_t count = 0;
  for (std::size_t bit = 0; bit < 8 * value.size(); ++bit) {
    auto damaged = value;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    if (decode(damaged)) ++count;
  }
  return count;
}

TEST(store_codec_test, a_value_with_a_flipped_bit_is_none) {
  EXPECT_EQ(accepted(sealed_record({7}), [](const auto& one) { return decode_record({7}, one); }), 0U);
  const segment_place place{3, 4096};
  EXPECT_EQ(accepted(encode(log_record{{7}, {}, {}, {}}, 1, place),
                     [](const auto& one) { return decode_record({7}, one); }),
            0U);
  const snapshot_info snapshot{{9}, {1}, 5000, 5200};
  EXPECT_EQ(accepted(encode(snapshot),
                     [](const auto& one) { return decode_snapshot(keys::of_snapshot({9}), one); }),
            0U);
  const std::vector<history_entry> history{{{1}, {14}, 2, {{{15}, {1}}}}};
  EXPECT_EQ(accepted(encode(history), [](const auto& one) { return decode_history(one); }), 0U);
  EXPECT_EQ(accepted(encode_opener({5}), [](const auto& one) { return decode_opener(one); }), 0U);
  EXPECT_EQ(accepted(encode_floor({5}), [](const auto& one) { return decode_floor(one); }), 0U);
}

TEST(store_codec_test, a_value_of_another_key_is_none) {
  EXPECT_TRUE(decode_record({7}, sealed_record({7})));
  EXPECT_FALSE(decode_record({5}, sealed_record({7})));
  EXPECT_FALSE(decode_snapshot(keys::of_snapshot({8}), encode(snapshot_info{{9}, {1}, 5000, 5200})));
}

TEST(store_codec_test, values_from_before_there_were_seals_are_read) {
  const auto record = decode_record({7}, sealed_record({7}).substr(seal_bytes));
  ASSERT_TRUE(record);
  EXPECT_TRUE(is_same(*record, *decode_record({7}, sealed_record({7}))));
  const snapshot_info snapshot{{9}, {1}, 5000, 5200};
  EXPECT_EQ(decode_snapshot(keys::of_snapshot({9}), encode(snapshot).substr(seal_bytes)), snapshot);
  EXPECT_EQ(decode_opener(encode_opener({5}).substr(seal_bytes)), incarnation{5});
  EXPECT_EQ(decode_opener(""), incarnation{0}) << "a new store";
}

} // namespace
} // namespace dlrun::persistence
