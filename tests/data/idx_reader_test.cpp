#include "data/idx_reader.hpp"

#include "tests/data/files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace dlrun::data {
namespace {

using test::bytes;
using test::counting;
using test::gzip;
using test::idx_bytes;
using test::temporary_folder;

result<blob> open_idx(const std::filesystem::path& file) {
  memory_budget memory;
  return data::open_idx(file, memory);
}
result<blob> decode_idx_to_memfd(const std::filesystem::path& file) {
  memory_budget memory;
  return data::decode_idx_to_memfd(file, memory);
}

bytes copy_of_span(std::span<const std::uint8_t> b) { return {b.begin(), b.end()}; }

std::string message_of(const result<blob>& r) { return r ? "no error" : r.error().message; }

void expect_error(const result<blob>& r, const std::string& part) {
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, error_code::bad_data) << r.error().message;
  EXPECT_NE(r.error().message.find(part), std::string::npos) << r.error().message;
}

const bytes small = idx_bytes({2, 3, 4}, counting(24));

TEST(idx_reader, reads_plain_and_gzip_alike) {
  const temporary_folder folder;
  const auto plain = folder.write("plain", small);
  const auto compressed = folder.write("compressed.gz", gzip(small));
  for (const auto& decoded :
       {open_idx(plain), open_idx(compressed), decode_idx_to_memfd(plain), decode_idx_to_memfd(compressed)}) {
    ASSERT_TRUE(decoded) << message_of(decoded);
    const auto view = view_idx(*decoded);
    ASSERT_TRUE(view);
    EXPECT_EQ(view->header.dims, (std::vector<std::uint32_t>{2, 3, 4}));
    EXPECT_EQ(copy_of_span(view->values), counting(24));
  }
}

TEST(idx_reader, seals_the_memory_file_against_every_change) {
  const temporary_folder folder;
  const auto decoded = decode_idx_to_memfd(folder.write("x.gz", gzip(small)));
  ASSERT_TRUE(decoded) << message_of(decoded);
  constexpr int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
  EXPECT_EQ(::fcntl(decoded->fd(), F_GET_SEALS) & all, all);
  EXPECT_NE(::ftruncate(decoded->fd(), 0), 0);
  EXPECT_LT(::write(decoded->fd(), "x", 1), 0);
}

TEST(idx_reader, a_child_reads_the_same_bytes_through_the_descriptor) {
  const temporary_folder folder;
  const auto decoded = decode_idx_to_memfd(folder.write("x.gz", gzip(small)));
  ASSERT_TRUE(decoded);
  const auto adopted = blob::from_fd(::dup(decoded->fd()), "x.gz");
  ASSERT_TRUE(adopted) << message_of(adopted);
  EXPECT_EQ(copy_of_span(adopted->bytes()), small);
}

TEST(idx_reader, a_file_cut_at_any_byte_is_an_error_that_names_it) {
  const temporary_folder folder;
  const bytes compressed = gzip(small);
  for (const auto& [name, whole] : {std::pair<std::string, bytes>{"plain", small}, {"x.gz", compressed}}) {
    for (std::size_t length = 0; length < whole.size(); ++length) {
      const auto file =
          folder.write(name, bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)));
      for (const auto& decoded : {open_idx(file), decode_idx_to_memfd(file)}) {
        ASSERT_FALSE(decoded) << name << " cut at " << length;
        EXPECT_EQ(decoded.error().code, error_code::bad_data);
        EXPECT_NE(decoded.error().message.find(file.string()), std::string::npos) << decoded.error().message;
        EXPECT_NE(decoded.error().message.find("byte"), std::string::npos) << decoded.error().message;
      }
    }
  }
}

TEST(idx_reader, a_flipped_bit_anywhere_never_crashes_and_in_gzip_content_is_found) {
  const temporary_folder folder;
  const bytes compressed = gzip(small);
  for (std::size_t bit = 0; bit < compressed.size() * 8; ++bit) {
    bytes broken = compressed;
    broken[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    const auto decoded = decode_idx_to_memfd(folder.write("x.gz", broken));
    // The checksum covers the content; bits of the gzip head (time, system) mean nothing.
    const bool right = !decoded || copy_of_span(decoded->bytes()) == small;
    EXPECT_TRUE(right) << "bit " << bit;
  }
  for (std::size_t bit = 0; bit < small.size() * 8; ++bit) {
    bytes broken = small;
    broken[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    const auto opened = open_idx(folder.write("plain", broken));
    EXPECT_EQ(opened.has_value(), bit >= 16 * 8) << "only flips within the values go unseen, bit " << bit;
  }
}

TEST(idx_reader, trailing_bytes_are_an_error) {
  const temporary_folder folder;
  bytes longer = small;
  longer.push_back(0);
  expect_error(open_idx(folder.write("plain", longer)), "plain: byte 40: trailing bytes");
  expect_error(decode_idx_to_memfd(folder.write("plain", longer)), "trailing bytes");
  expect_error(open_idx(folder.write("inside.gz", gzip(longer))), "trailing bytes");
  bytes after = gzip(small);
  after.push_back(0);
  expect_error(open_idx(folder.write("after.gz", after)), "trailing bytes that are not gzip");
}

TEST(idx_reader, a_checksum_mismatch_is_named) {
  const temporary_folder folder;
  bytes broken = gzip(small);
  broken[broken.size() - 6] ^= 1; // CRC32 is the last but one word
  expect_error(open_idx(folder.write("x.gz", broken)), "incorrect data check");
}

TEST(idx_reader, reads_gzip_files_of_several_members) {
  const temporary_folder folder;
  const auto half = small.begin() + 20;
  bytes members = gzip({small.begin(), half});
  const bytes second = gzip({half, small.end()});
  members.insert(members.end(), second.begin(), second.end());
  const auto decoded = open_idx(folder.write("x.gz", members));
  ASSERT_TRUE(decoded) << message_of(decoded);
  EXPECT_EQ(copy_of_span(decoded->bytes()), small);
}

TEST(idx_reader, names_what_a_wrong_head_says) {
  const temporary_folder folder;
  const auto open = [&](const bytes& content) { return open_idx(folder.write("f", content)); };
  expect_error(open({}), "byte 0: too short");
  expect_error(open({'n', 'o', 'p', 'e', '!'}), "not an IDX file: it starts with 6e 6f");
  expect_error(open({0, 0, 0x0D, 1, 0, 0, 0, 1, 0}), "byte 2: holds 32-bit floats (type 0x0d)");
  expect_error(open({0, 0, 0x77, 1, 0, 0, 0, 1, 0}), "an unknown type");
  expect_error(open({0, 0, 8, 0}), "byte 3: has 0 dimensions");
  expect_error(open({0, 0, 8, 9, 0, 0, 0, 0}), "byte 3: has 9 dimensions");
  expect_error(open({0, 0, 8, 3, 0, 0, 0, 1}), "byte 8: the file ends within its head");
  expect_error(open(idx_bytes({3, 0, 2}, {})), "byte 8: dimension 1 is 0");
}

TEST(idx_reader, a_head_that_promises_more_than_there_can_be_takes_no_memory) {
  const temporary_folder folder;
  const std::uint32_t huge = 0xFFFFFFFF;
  const bytes overflowing = idx_bytes({huge, huge, huge}, {1, 2, 3});
  const bytes enormous = idx_bytes({huge, 1000}, {1, 2, 3});
  // With the file size limited to 1 MiB, creating memory of the promised size could not succeed.
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit tight{1 << 20, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &tight);
  for (const bool compressed : {false, true}) {
    const auto open = [&](const bytes& content) {
      return decode_idx_to_memfd(folder.write("f", compressed ? gzip(content) : content));
    };
    expect_error(open(overflowing), "byte 8: the head promises more than 64 TiB");
    expect_error(open(enormous), compressed ? "compressed bytes can hold" : "truncated");
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
}

TEST(idx_reader, stops_inflating_at_the_size_of_the_head) {
  const temporary_folder folder;
  // 64 MiB of zeros behind a head that promises 24 values: a bomb of 64 KiB.
  bytes bomb = idx_bytes({2, 3, 4}, {});
  bomb.resize(64 << 20);
  const auto file = folder.write("bomb.gz", gzip(bomb));
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  bomb = {};
  expect_error(open_idx(file), "trailing bytes");
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 8 << 10) << "KiB";
}

} // namespace
} // namespace dlrun::data
