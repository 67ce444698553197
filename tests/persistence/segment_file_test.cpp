// The writer and the reader of segment files, as a pair.
#include "persistence/segment_file.hpp"

#include "base/crc32c.hpp"
#include "tests/data/files.hpp"
#include "tests/persistence/damage.hpp"
#include "tests/persistence/faulty_file_system.hpp"
#include "tests/persistence/payload.hpp"

#include <gtest/gtest.h>

namespace dlrun::persistence {
namespace {

constexpr std::uint64_t preallocation = std::uint64_t{1} << 20;

class segment_file_test : public ::testing::Test {
protected:
  struct written {
    segment_record head;
    std::uint64_t offset = 0;
    std::vector<std::byte> payload;
  };

  /// All of a payload, checked.
  static result<void> read(const segment_reader& reader, std::uint64_t offset, const segment_record& expected,
                           std::vector<std::byte>& payload) {
    if (auto there = reader.check_head(offset, expected); !there) return there;
    payload.resize(expected.bytes);
    const auto crc = reader.read_part(offset, payload);
    return crc ? reader.check_sum(offset, expected, *crc) : tl::unexpected(crc.error());
  }

  std::vector<written> write(std::uint64_t number, int count) {
    return write(*segment_writer::create(files, directory, number, preallocation).value(), 0, count);
  }
  std::vector<written> write_over(const spare_segment& over, std::uint64_t number, int first, int count) {
    return write(*segment_writer::reuse(files, directory, number, preallocation, over).value(), first, count);
  }

  /// `count` records of the steps from `first` on.
  static std::vector<written> write(segment_writer& writer, int first, int count) {
    std::vector<written> records;
    for (int i = first; i < first + count; ++i) {
      const step_id step{static_cast<std::uint64_t>(i)};
      auto payload = test::payload_of(step, {3}, 700 + 91 * i);
      const segment_record head{step, {3}, payload.size(), base::crc32c(payload)};
      const auto offset = writer.append(head, payload).value();
      records.push_back({head, offset, std::move(payload)});
    }
    EXPECT_FALSE(writer.synced());
    EXPECT_TRUE(writer.sync());
    EXPECT_TRUE(writer.synced());
    writer.close();
    return records;
  }

  test::temporary_folder folder;
  std::string directory = folder.path().string();
  std::shared_ptr<file_system> files = default_file_system();
};

TEST_F(segment_file_test, gives_back_what_was_appended_in_any_order) {
  const auto records = write(7, 20);
  const auto reader = segment_reader::open(files, directory, 7).value();
  std::vector<std::byte> payload;
  for (auto record = records.rbegin(); record != records.rend(); ++record) {
    ASSERT_TRUE(read(*reader, record->offset, record->head, payload));
    EXPECT_EQ(payload, record->payload);
    EXPECT_EQ(record->offset % 32, 0U);
  }
}

TEST_F(segment_file_test, takes_no_more_space_than_it_needs_when_it_is_closed) {
  const auto records = write(7, 3);
  const auto path = folder.path() / segment_file_name(7);
  EXPECT_LT(std::filesystem::file_size(path), records.back().offset + records.back().payload.size() + 64);
}

TEST_F(segment_file_test, what_is_written_over_is_gone_and_its_room_is_used) {
  const auto before = write(7, 30);
  const auto size = [&](std::uint64_t number) {
    return std::filesystem::file_size(folder.path() / segment_file_name(number));
  };
  for (const auto& [number, first, count] : {std::tuple{8U, 100, 3}, {9U, 200, 1}, {10U, 300, 60}}) {
    const auto size_before = size(number - 1);
    const auto records = write_over({number - 1, size_before}, number, first, count);
    EXPECT_FALSE(std::filesystem::exists(folder.path() / segment_file_name(number - 1)));
    const auto end = records.back().offset + records.back().payload.size();
    EXPECT_EQ(size(number), std::max(size_before, (end + 63) / 64 * 64));
    const auto reader = segment_reader::open(files, directory, number).value();
    std::vector<std::byte> payload;
    for (const auto& record : records) {
      ASSERT_TRUE(read(*reader, record.offset, record.head, payload)) << number;
      EXPECT_EQ(payload, record.payload);
    }
    EXPECT_EQ(reader->verify(before[0].offset, before[0].head).error().code, error_code::storage_damaged);
  }
}

TEST_F(segment_file_test, what_is_written_over_can_be_cut_off) {
  write(7, 30);
  const auto path = folder.path() / segment_file_name(8);
  auto writer = segment_writer::reuse(files, directory, 8, preallocation,
                                      {7, std::filesystem::file_size(folder.path() / segment_file_name(7))})
                    .value();
  const auto payload = test::payload_of({0}, {3}, 500);
  const segment_record head{{0}, {3}, payload.size(), base::crc32c(payload)};
  const auto offset = writer->append(head, payload).value();
  const auto end = writer->bytes();
  ASSERT_TRUE(writer->append(head, payload));
  writer->cut_to(end);
  writer->close();
  EXPECT_EQ(writer->file_bytes(), end);
  EXPECT_EQ(std::filesystem::file_size(path), end);
  EXPECT_TRUE(segment_reader::open(files, directory, 8).value()->verify(offset, head));
}

TEST_F(segment_file_test, much_that_is_synced_in_pieces_survives_a_power_cut) {
  const auto faulty = std::make_shared<test::faulty_file_system>(1);
  files = faulty;
  const auto payload = test::payload_of({0}, {3}, 20'000'000);
  const segment_record head{{0}, {3}, payload.size(), base::crc32c(payload)};
  auto writer = segment_writer::create(files, directory, 7, preallocation).value();
  const auto offset = writer->append(head, payload).value();
  ASSERT_TRUE(writer->sync());
  ASSERT_TRUE(sync_directory(*files, directory));
  faulty->cut_power_after(1);
  EXPECT_FALSE(writer->append(head, payload));
  writer.reset();
  faulty->restore_power();
  std::vector<std::byte> found;
  EXPECT_TRUE(read(*segment_reader::open(files, directory, 7).value(), offset, head, found));
}

TEST_F(segment_file_test, refuses_a_record_that_is_not_the_expected_one) {
  const auto records = write(7, 3);
  const auto reader = segment_reader::open(files, directory, 7).value();
  std::vector<std::byte> payload;
  EXPECT_EQ(read(*reader, records[1].offset, records[0].head, payload).error().code,
            error_code::storage_damaged);
  EXPECT_EQ(read(*reader, records[1].offset + 64, records[1].head, payload).error().code,
            error_code::storage_damaged);
  EXPECT_EQ(read(*reader, 3, records[0].head, payload).error().code, error_code::storage_damaged);
  auto other_timeline = records[1].head;
  other_timeline.timeline = {4};
  EXPECT_EQ(read(*reader, records[1].offset, other_timeline, payload).error().code,
            error_code::storage_damaged);
}

TEST_F(segment_file_test, refuses_a_file_that_is_missing_or_has_another_name_or_format) {
  write(7, 1);
  EXPECT_EQ(segment_reader::open(files, directory, 8).error().code, error_code::storage_damaged);
  std::filesystem::copy(folder.path() / segment_file_name(7), folder.path() / segment_file_name(8));
  const auto renamed = segment_reader::open(files, directory, 8);
  EXPECT_NE(renamed.error().message.find("it says that it is segment 7"), std::string::npos);
  auto content = test::content_of(folder.path() / segment_file_name(7));
  content[8] = 2;
  const auto checksum = base::crc32c(std::string_view(content).substr(0, 60));
  content.replace(60, 4, reinterpret_cast<const char*>(&checksum), 4);
  std::ofstream(folder.path() / segment_file_name(7), std::ios::binary) << content;
  const auto newer = segment_reader::open(files, directory, 7);
  EXPECT_EQ(newer.error().code, error_code::bad_usage) << "nothing is damaged: nobody may drop it";
  EXPECT_NE(newer.error().message.find("has format 2, this dlrun reads format 1"), std::string::npos)
      << newer.error().message;
}

TEST_F(segment_file_test, damage_anywhere_is_noticed_by_the_records_it_hits_and_only_by_them) {
  const auto records = write(7, 20);
  const auto path = folder.path() / segment_file_name(7);
  const auto whole = test::content_of(path);
  std::vector<std::uint64_t> borders{0, 64};
  for (const auto& record : records) borders.push_back(record.offset - 32);
  for (const auto& harm : test::damages(whole.size(), borders, 200, 11)) {
    SCOPED_TRACE(harm.describe());
    harm.apply_to(path);
    const auto repair = std::shared_ptr<void>(nullptr, [&](auto) { harm.undo(path, whole); });
    const auto reader = segment_reader::open(files, directory, 7);
    ASSERT_EQ(reader.has_value(), harm.offset >= 64);
    if (!reader) {
      EXPECT_NE(reader.error().message.find(path.string()), std::string::npos);
      continue;
    }
    std::vector<std::byte> payload;
    for (const auto& record : records) {
      const auto end = record.offset + record.payload.size();
      const bool hit =
          harm.truncate ? harm.offset < end : harm.offset >= record.offset - 32 && harm.offset < end;
      const auto got = read(**reader, record.offset, record.head, payload);
      const auto verified = (*reader)->verify(record.offset, record.head);
      ASSERT_EQ(verified.has_value(), !hit);
      ASSERT_EQ(got.has_value(), !hit);
      EXPECT_EQ(verified ? "" : verified.error().message, got ? "" : got.error().message);
      if (got)
        ASSERT_EQ(payload, record.payload);
      else
        ASSERT_EQ(got.error().code, error_code::storage_damaged);
    }
  }
}

} // namespace
} // namespace dlrun::persistence
