// Bits that are flipped on their way into a copy, and on its disk.
#include "tests/actors/keeper/mirror_fixture.hpp"
#include "tests/actors/keeper/mirror_memory.hpp"
#include "tests/actors/protocol/field_bits.hpp"
#include "tests/persistence/damage.hpp"

#include <filesystem>
#include <gmock/gmock.h>
#include <random>

namespace dlrun::keeper {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class store_mirror_damage_test : public mirrored_store {};

TEST_F(store_mirror_damage_test, bytes_that_are_not_what_was_sent_are_never_written) {
  ASSERT_TRUE(append(*primary, 0, large_step + 1));
  ASSERT_TRUE(snapshot(*primary, 1));
  begin();
  send_records(0, large_step);
  std::mt19937_64 random{1};
  for (const auto kind : {copy_kind::record, copy_kind::snapshot}) {
    for (int turn = 0; turn < 50; ++turn) {
      begin();
      auto parts = parts_of(kind, kind == copy_kind::record ? large_step : 1);
      auto& damaged = parts[random() % parts.size()];
      damaged.come[random() % damaged.come.size()] ^= static_cast<char>(1U << (random() % 8));
      EXPECT_THAT(take(parts).failure, HasSubstr("its checksum is wrong"));
      EXPECT_EQ(copy().next_step(), step_id{large_step});
      EXPECT_THAT(copy().snapshots(), IsEmpty());
    }
  }
  begin();
  send_records(large_step, large_step + 1);
  EXPECT_TRUE(holds_all(copy(), 0, large_step + 1)) << "the next stream goes on";
}

/// Memory keeps a part until the record is whole: what is written is compared once more.
TEST_F(store_mirror_damage_test, what_changes_in_memory_after_its_check_is_never_written) {
  ASSERT_TRUE(append(*primary, 0, large_step + 1));
  ASSERT_TRUE(snapshot(*primary, 1));
  begin();
  send_records(0, large_step);
  for (std::size_t bit = 0; bit < 8; ++bit) {
    begin();
    const auto parts = parts_of(copy_kind::record, large_step);
    EXPECT_EQ(take({parts.begin(), parts.end() - 1}).failure, "");
    store_mirror_memory::bytes_of(mirror, copy_kind::record)[1000 * bit] ^= static_cast<char>(1U << bit);
    EXPECT_THAT(taken(parts.back()).failure, HasSubstr("the record is not what was sent"));
    EXPECT_EQ(copy().next_step(), step_id{large_step});
  }
  begin();
  send_records(large_step, large_step + 1);
  EXPECT_TRUE(holds_all(copy(), 0, large_step + 1));
}

/// Of a snapshot's metadata memory keeps the begin; its parts are on the disk, which is read back.
TEST_F(store_mirror_damage_test, a_snapshot_counts_only_when_its_file_is_what_was_sent) {
  ASSERT_TRUE(append(*primary, 0, 3));
  constexpr std::size_t metadata_bytes = 2 * bytes_a_part;
  auto writer = primary->begin_snapshot({1}, {}).value();
  ASSERT_TRUE(writer.write(test::payload_of({1}, {}, 5000)));
  ASSERT_TRUE(writer.commit(test::payload_of({1}, {}, metadata_bytes)));
  begin();
  send_records(0, 3);
  begin();
  const auto parts = parts_of(copy_kind::snapshot, 1);
  EXPECT_EQ(take({parts.begin(), parts.end() - 1}).failure, "");
  store_mirror_memory::bytes_of(mirror, copy_kind::snapshot)[3] ^= 1;
  EXPECT_THAT(taken(parts.back()).failure, HasSubstr("its file is not what was sent"));
  EXPECT_THAT(copy().snapshots(), IsEmpty());
  begin();
  EXPECT_THAT(send(copy_kind::snapshot, 1).snapshots, ElementsAre(version_id{1}));
}

/// As if a field had changed before it was sealed.
TEST_F(store_mirror_damage_test, right_bytes_in_the_wrong_place_are_never_written) {
  ASSERT_TRUE(append(*primary, 0, large_step + 1));
  for (const std::uint64_t version : {1, 2}) ASSERT_TRUE(snapshot(*primary, version));
  for (const auto kind : {copy_kind::record, copy_kind::snapshot}) {
    begin();
    auto parts = parts_of(kind, 1);
    for (auto& part : parts) part.version = {kind == copy_kind::record ? 0U : 2U};
    EXPECT_THAT(take(parts).failure, HasSubstr("not what was sent"));
  }
  EXPECT_EQ(copy().next_step(), step_id{0});
  EXPECT_THAT(copy().snapshots(), IsEmpty());
}

TEST_F(store_mirror_damage_test, of_a_message_with_a_flipped_bit_nothing_is_taken) {
  ASSERT_TRUE(append(*primary, 0, large_step + 1));
  begin();
  send_records(0, large_step);
  const auto bits = test::bits_of(copy_part{});
  for (std::uint64_t bit = 0; bit < bits; ++bit) {
    begin();
    const auto part = parts_of(copy_kind::record, large_step).front();
    const auto answer = mirror.take(test::with_flipped(sealed(part), bit),
                                    [&] { return std::as_bytes(std::span(part.come)); });
    ASSERT_TRUE(answer && *answer) << bit;
    EXPECT_THAT((*answer)->failure, HasSubstr("fields are not what was sent")) << bit;
    EXPECT_EQ((*answer)->record_bytes, 0U) << bit;
  }
}

TEST_F(store_mirror_damage_test, what_it_answers_is_sealed) {
  const auto said = begin();
  EXPECT_TRUE(protocol::is_sealed(said));
  for (std::uint64_t bit = 0; bit < test::bits_of(said); ++bit)
    EXPECT_FALSE(protocol::is_sealed(test::with_flipped(said, bit))) << bit;
}

/// It would never be filled: records are appended.
TEST_F(store_mirror_damage_test, a_store_that_lacks_a_record_in_the_middle_is_set_aside_and_another_filled) {
  ASSERT_TRUE(append(*primary, 0, 12));
  for (const std::uint64_t version : {3, 9}) ASSERT_TRUE(snapshot(*primary, version));
  begin();
  send_records(0, 12);
  for (const std::uint64_t version : {3, 9}) send(copy_kind::snapshot, version);
  mirror = store_mirror{copy_options()};
  const auto segment = copy_options().store.directory + "/segments/000001.seg";
  test::flip_byte(segment, 64 + 32 + 17, 4); // in the first large record, of step 3
  auto hello = stamped({.kind = copy_kind::hello}, {6});
  hello.number = 0;
  const auto broken = give(hello);
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, error_code::storage_damaged);
  EXPECT_THAT(broken.error().message, HasSubstr("lacks a record in the middle"));
  EXPECT_EQ(mirror.store(), nullptr);
  ASSERT_TRUE(mirror.set_aside_damaged(broken.error()));
  EXPECT_TRUE(std::filesystem::exists(copy_options().store.directory + ".damaged/FORMAT"));
  EXPECT_EQ(begin({6}).end, version_id{0});
}

TEST_F(store_mirror_damage_test, a_damaged_snapshot_is_dropped_before_it_counts_and_comes_again) {
  ASSERT_TRUE(append(*primary, 0, 12));
  for (const std::uint64_t version : {3, 9}) ASSERT_TRUE(snapshot(*primary, version));
  begin();
  send_records(0, 12);
  for (const std::uint64_t version : {3, 9}) send(copy_kind::snapshot, version);
  const auto identity = copy().identity();
  mirror = store_mirror{copy_options()};
  test::flip_byte(copy_options().store.directory + "/snapshots/9-0.snap", 1000, 1);
  const auto found = begin();
  EXPECT_THAT(found.snapshots, ElementsAre(version_id{3}));
  EXPECT_EQ(found.end, version_id{12});
  EXPECT_NE(copy().identity(), identity);
  EXPECT_THAT(send(copy_kind::snapshot, 9).snapshots, ElementsAre(version_id{3}, version_id{9}));
  EXPECT_TRUE(has_snapshot(copy(), 9));
}

} // namespace
} // namespace dlrun::keeper
