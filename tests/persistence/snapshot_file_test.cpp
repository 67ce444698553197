// The writer and the reader of snapshot files, as a pair.
#include "persistence/snapshot_file.hpp"

#include "persistence/snapshot_file_writer.hpp"
#include "persistence/snapshot_reader.hpp"
#include "tests/data/files.hpp"
#include "tests/persistence/damage.hpp"
#include "tests/persistence/payload.hpp"

#include <gtest/gtest.h>

namespace dlrun::persistence {
namespace {

class snapshot_file_test : public ::testing::Test {
protected:
  void write(const std::vector<std::byte>& payload, const std::vector<std::byte>& metadata,
             std::size_t piece) {
    auto writer = snapshot_file_writer::create(files, folder.path().string(), {40}, {2}).value();
    for (std::size_t at = 0; at < payload.size(); at += piece)
      ASSERT_TRUE(writer->write(std::span(payload).subspan(at, std::min(piece, payload.size() - at))));
    const auto info = writer->finish(metadata).value();
    EXPECT_EQ(info.payload_bytes, payload.size());
    EXPECT_EQ(info.file_bytes, std::filesystem::file_size(path));
  }
  /// What comes of reading all of it in pieces.
  result<std::vector<std::byte>> read(std::size_t piece) {
    auto reader = snapshot_reader::open(files, path.string());
    if (!reader) return tl::unexpected(reader.error());
    std::vector<std::byte> all;
    while (true) {
      const auto before = all.size();
      all.resize(before + piece);
      const auto got = reader->read(std::span(all).subspan(before));
      if (!got) return tl::unexpected(got.error());
      all.resize(before + *got);
      if (*got < piece) return all;
    }
  }

  test::temporary_folder folder;
  std::filesystem::path path = folder.path() / snapshot_file_name({40}, {2});
  std::shared_ptr<file_system> files = default_file_system();
};

TEST_F(snapshot_file_test, gives_back_any_size_whatever_the_pieces) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, snapshot_chunk_bytes - 1, snapshot_chunk_bytes,
        snapshot_chunk_bytes + 1, 2 * snapshot_chunk_bytes, 3'333'333UL}) {
    const auto payload = test::payload_of({size}, {0}, size);
    const auto metadata = test::payload_of({9}, {9}, size % 1000);
    write(payload, metadata, size % 2 == 0 ? 300'007 : 5'000'000);
    for (const std::size_t piece : {std::size_t{70'001}, snapshot_chunk_bytes, std::size_t{4'000'000}})
      EXPECT_EQ(read(piece).value(), payload) << size << " in pieces of " << piece;
    const auto reader = snapshot_reader::open(files, path.string()).value();
    EXPECT_TRUE(std::ranges::equal(reader.metadata(), metadata));
    EXPECT_EQ(reader.info(), (snapshot_info{{40}, {2}, size, std::filesystem::file_size(path)}));
  }
}

TEST_F(snapshot_file_test, without_an_end_it_leaves_nothing) {
  {
    auto writer = snapshot_file_writer::create(files, folder.path().string(), {40}, {2}).value();
    ASSERT_TRUE(writer->write(test::payload_of({1}, {0}, 3'000'000)));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST_F(snapshot_file_test, damage_anywhere_is_an_error_that_names_file_and_offset) {
  const auto payload = test::payload_of({1}, {0}, 2 * snapshot_chunk_bytes + 50'000);
  write(payload, test::payload_of({2}, {0}, 500), payload.size());
  const auto whole = test::content_of(path);
  const std::vector<std::uint64_t> borders{0,
                                           64,
                                           80,
                                           80 + snapshot_chunk_bytes,
                                           96 + 2 * snapshot_chunk_bytes,
                                           whole.size() - 548,
                                           whole.size() - 48};
  auto all = test::damages(whole.size(), borders, 120, 5);
  for (const auto border : borders) all.push_back({false, border, 1});
  for (std::uint64_t i = 1; i <= 48; ++i)
    all.push_back({false, whole.size() - i, 0x80}); // all of the trailer
  for (const auto& harm : all) {
    SCOPED_TRACE(harm.describe());
    harm.apply_to(path);
    const auto got = read(2 * snapshot_chunk_bytes);
    harm.undo(path, whole);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, error_code::storage_damaged);
    EXPECT_NE(got.error().message.find(path.string()), std::string::npos);
    EXPECT_NE(got.error().message.find("byte"), std::string::npos) << got.error().message;
  }
}

TEST_F(snapshot_file_test, chunks_that_changed_places_are_noticed) {
  write(test::payload_of({1}, {0}, 2 * snapshot_chunk_bytes), {}, snapshot_chunk_bytes);
  auto content = test::content_of(path);
  const auto chunk = snapshot_chunk_bytes + snapshot_chunk_head::encoded_bytes;
  const auto first = content.substr(64, chunk);
  content.replace(64, chunk, content, 64 + chunk, chunk);
  content.replace(64 + chunk, chunk, first);
  std::ofstream(path, std::ios::binary) << content;
  EXPECT_EQ(read(100'000).error().code, error_code::storage_damaged);
}

} // namespace
} // namespace dlrun::persistence
