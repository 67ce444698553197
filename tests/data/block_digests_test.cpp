#include "data/block_digests.hpp"

#include "base/sha256.hpp"
#include "data/decode.hpp"
#include "data/idx_reader.hpp"
#include "tests/data/files.hpp"

#include <gtest/gtest.h>
#include <random>

namespace dlrun::data {
namespace {

/// Records of three bytes, behind a head of five that is no part of them.
stored_array array_of(test::bytes values) {
  stored_array array;
  array.dims = {values.size() / 3, 3};
  values.insert(values.begin(), 5, 0xEE);
  const test::temporary_folder folder;
  array.memory = std::make_shared<blob>(blob::map_file(folder.write("x", values)).value());
  array.offset = 5;
  array.type = element_type::u1;
  return array;
}

test::bytes some_bytes(std::size_t count) {
  std::minstd_rand random(7);
  test::bytes values(count);
  for (auto& value : values) value = static_cast<std::uint8_t>(random() >> 8);
  return values;
}

std::string sha256_of_block(const test::bytes& values, const block_digests& digests, std::uint64_t block) {
  const auto run = bytes_of_block(values.size(), digests.block_bytes, block);
  return base::sha256_of({reinterpret_cast<const char*>(values.data()) + run.first,
                          static_cast<std::size_t>(run.end - run.first)});
}

TEST(block_digests, blocks_are_of_one_mebibyte_smaller_in_small_arrays_and_never_too_many) {
  constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;
  EXPECT_EQ(block_bytes_of(1), 1U);
  EXPECT_EQ(block_bytes_of(1200), 16U);
  EXPECT_EQ(block_bytes_of(64 * mebibyte), mebibyte);
  EXPECT_EQ(block_bytes_of(64 * mebibyte - 1), mebibyte / 2);
  EXPECT_EQ(block_bytes_of((mebibyte << 16) - 1), mebibyte);
  EXPECT_EQ(block_bytes_of((mebibyte << 16) + 1), 2 * mebibyte);
  for (std::uint64_t bytes = 1; bytes < std::uint64_t{1} << 46; bytes = bytes * 3 / 2 + 1) {
    const auto blocks = (bytes + block_bytes_of(bytes) - 1) / block_bytes_of(bytes);
    EXPECT_LE(blocks, digest_blocks_max) << bytes;
    EXPECT_GE(blocks, std::min<std::uint64_t>(64, bytes)) << bytes;
  }
}

TEST(block_digests, each_is_the_sha256_of_its_bytes_and_they_hold_all) {
  for (const std::size_t records : {1, 2, 21, 22, 64, 1000, 70'000}) {
    const auto values = some_bytes(records * 3);
    const auto digests = digests_of(array_of(values));
    std::uint64_t next = 0;
    for (std::uint64_t block = 0; block < digests->blocks.size(); ++block) {
      EXPECT_EQ(bytes_of_block(values.size(), digests->block_bytes, block).first, next);
      next = bytes_of_block(values.size(), digests->block_bytes, block).end;
      EXPECT_EQ(digests->blocks[block], sha256_of_block(values, *digests, block));
    }
    EXPECT_EQ(next, values.size());
  }
}

TEST(block_digests, a_flipped_bit_changes_the_block_that_holds_it_and_no_other) {
  auto values = some_bytes(3000);
  const auto before = digests_of(array_of(values));
  values[1500] ^= 1U;
  const auto after = digests_of(array_of(values));
  ASSERT_EQ(after->blocks.size(), before->blocks.size());
  for (std::uint64_t block = 0; block < before->blocks.size(); ++block) {
    const auto run = bytes_of_block(3000, before->block_bytes, block);
    EXPECT_EQ(before->blocks[block] != after->blocks[block], run.first <= 1500 && 1500 < run.end) << block;
  }
}

// Larger than what is hashed without a thread.
TEST(block_digests, those_made_while_an_array_is_filled_are_those_of_the_full_one) {
  const auto values = some_bytes((std::size_t{9} << 20) + 12'345);
  test::bytes filled(values.size());
  block_hasher hasher{filled};
  for (std::size_t done = 0; done < values.size();) {
    const auto size = std::min<std::size_t>(777'777, values.size() - done);
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(done), size,
                filled.begin() + static_cast<std::ptrdiff_t>(done));
    done += size;
    hasher.filled(done);
  }
  const auto digests = hasher.finish();
  for (std::uint64_t block = 0; block < digests->blocks.size(); ++block)
    EXPECT_EQ(digests->blocks[block], sha256_of_block(values, *digests, block)) << block;
}

TEST(block_digests, a_hasher_that_is_given_up_waits_for_nobody) {
  test::bytes filled(std::size_t{9} << 20);
  block_hasher hasher{filled};
  hasher.filled(1'000'000);
}

TEST(block_digests, decoded_arrays_bring_theirs_and_mapped_ones_have_the_same) {
  const test::temporary_folder folder;
  const auto values = some_bytes(std::size_t{6} << 20);
  const auto count = static_cast<std::uint32_t>(values.size() / 64);
  const auto content = test::idx_bytes({count, 64}, values);
  folder.write("plain", content);
  folder.write("packed", test::gzip(content));
  folder.write("labels", test::idx_bytes({count}, test::bytes(count, 1)));
  memory_budget memory;
  const auto open = [&](const std::string& name) {
    reader_request request;
    request.records = folder.path() / name;
    request.labels = folder.path() / "labels";
    return decode_idx(request, memory, true).value().records;
  };
  const auto packed = open("packed");
  ASSERT_TRUE(packed.digests);
  EXPECT_FALSE(open("plain").digests);
  EXPECT_EQ(*digests_of(open("plain")), *packed.digests);
}

/// Counting records of four bytes, and classes.
class hashed_reader final : public reader {
public:
  result<record_layout> open(const reader_request&) override {
    return record_layout{.records = 1'500'000, .shape = {4}, .bytes = true};
  }
  result<void> read(std::uint64_t first, std::uint64_t count, const record_buffers& into) override {
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t byte = 0; byte < 4; ++byte)
        into.bytes[4 * i + byte] = static_cast<std::uint8_t>((first + i) >> (8 * byte));
      into.classes[i] = static_cast<std::int32_t>((first + i) % 10);
    }
    return {};
  }
};

TEST(block_digests, what_a_reader_fills_is_hashed_meanwhile_records_and_targets) {
  hashed_reader source;
  memory_budget memory;
  const auto decoded = decode_with(source, {}, "counted", memory, true).value();
  auto again = decode_with(source, {}, "counted", memory).value();
  ASSERT_TRUE(decoded.records.digests && decoded.targets->digests);
  EXPECT_FALSE(again.records.digests);
  EXPECT_EQ(*digests_of(again.records), *decoded.records.digests);
  EXPECT_EQ(*digests_of(*again.targets), *decoded.targets->digests);
}

} // namespace
} // namespace dlrun::data
