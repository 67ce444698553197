#include "tests/data/files.hpp"
#include "weights/safetensors_file.hpp"
#include "weights/safetensors_writer.hpp"

#include <cstring>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace dlrun::weights {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class safetensors_test : public testing::Test {
protected:
  static std::span<const std::byte> bytes_of_all(const auto& values) {
    return std::as_bytes(std::span{values});
  }

  /// A file with this head (its length is told as `length` where that is given) and data.
  std::filesystem::path write_raw(const std::string& head, const test::bytes& data,
                                  std::optional<std::uint64_t> length = {}) const {
    const std::uint64_t told = length.value_or(head.size());
    test::bytes all(sizeof told);
    std::memcpy(all.data(), &told, sizeof told);
    all.insert(all.end(), head.begin(), head.end());
    all.insert(all.end(), data.begin(), data.end());
    return folder.write("raw.safetensors", all);
  }
  std::string refusal(const std::filesystem::path& file) const {
    const auto opened = safetensors_file::open(file);
    if (opened) return "";
    EXPECT_EQ(opened.error().code, error_code::bad_data);
    EXPECT_THAT(opened.error().message, HasSubstr(file.string()));
    return opened.error().message;
  }
  /// All elements of a tensor in a file with just this one.
  std::vector<float> read_one(const std::string& dtype, const auto& values) const {
    const written_tensor one{"t", dtype, {static_cast<std::int64_t>(values.size())}, bytes_of_all(values)};
    EXPECT_TRUE(write_safetensors(path, std::span{&one, 1}, {}));
    const auto file = safetensors_file::open(path);
    std::vector<float> out(values.size());
    const auto read = file->read(file->tensors().front(), 0, out);
    EXPECT_TRUE(read) << read.error().message;
    return out;
  }

  test::temporary_folder folder;
  std::filesystem::path path = folder.path() / "w.safetensors";
};

TEST_F(safetensors_test, what_is_written_is_read_back) {
  const std::vector<float> weight{1, -2, 3.5F, 0, 1e-30F, 6};
  const std::vector<std::int64_t> counter{7};
  const std::vector<written_tensor> tensors{{"bn.num_batches_tracked", "I64", {}, bytes_of_all(counter)},
                                            {"fc.weight", "F32", {2, 3}, bytes_of_all(weight)}};
  ASSERT_TRUE(write_safetensors(path, tensors, {{"job", "mine \"quoted\""}}));
  const auto file = safetensors_file::open(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->metadata().at("job"), "mine \"quoted\"");
  ASSERT_NE(file->find("fc.weight"), nullptr);
  EXPECT_EQ(file->find("fc.bias"), nullptr);
  EXPECT_THAT(file->find("fc.weight")->extents, ElementsAre(2, 3));
  std::vector<float> all(6), part(2);
  ASSERT_TRUE(file->read(*file->find("fc.weight"), 0, all));
  EXPECT_EQ(all, weight);
  ASSERT_TRUE(file->read(*file->find("fc.weight"), 2, part));
  EXPECT_THAT(part, ElementsAre(3.5F, 0));
}

/// Other readers map the file and look at floats in place.
TEST_F(safetensors_test, data_begins_at_a_multiple_of_eight_bytes) {
  const std::vector<float> one{1};
  for (const char* name : {"a", "ab", "abc", "abcd", "abcdefgh"}) {
    const written_tensor tensor{name, "F32", {1}, bytes_of_all(one)};
    ASSERT_TRUE(write_safetensors(path, std::span{&tensor, 1}, {}));
    EXPECT_EQ(std::filesystem::file_size(path) % 8, 4U) << name;
    EXPECT_EQ(refusal(path), "");
  }
}

TEST_F(safetensors_test, other_floats_are_converted) {
  EXPECT_THAT(read_one("F64", std::vector<double>{1.5, 0.1, -1e-300}), ElementsAre(1.5F, 0.1F, 0));
  EXPECT_THAT(read_one("F16", std::vector<std::uint16_t>{0x3c00, 0xc000}), ElementsAre(1, -2));
  EXPECT_THAT(read_one("BF16", std::vector<std::uint16_t>{0x3f80, 0xc040}), ElementsAre(1, -3));
}

TEST_F(safetensors_test, conversion_goes_on_beyond_one_part) {
  std::vector<double> many(200'001);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<double>(i) / 2;
  const auto read = read_one("F64", many);
  for (std::size_t i = 0; i < many.size(); ++i) ASSERT_EQ(read[i], static_cast<float>(many[i])) << i;
}

TEST_F(safetensors_test, integers_are_not_read_as_weights) {
  const std::vector<std::int64_t> values{1};
  const written_tensor one{"t", "I64", {1}, bytes_of_all(values)};
  ASSERT_TRUE(write_safetensors(path, std::span{&one, 1}, {}));
  const auto file = safetensors_file::open(path);
  std::vector<float> out(1);
  const auto read = file->read(file->tensors().front(), 0, out);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("tensor \"t\" has the dtype I64"));
}

TEST_F(safetensors_test, a_length_that_lies_is_refused_before_memory_is_taken) {
  for (const std::uint64_t length : {std::uint64_t{3}, std::uint64_t{1} << 24, header_bytes_max + 1,
                                     std::uint64_t{1} << 40, ~std::uint64_t{0}, ~std::uint64_t{0} - 7})
    EXPECT_THAT(refusal(write_raw("{}", {}, length)), HasSubstr("not a whole safetensors file")) << length;
}

TEST_F(safetensors_test, what_is_no_such_file_is_refused) {
  EXPECT_THAT(refusal(folder.path() / "nowhere"), HasSubstr("No such file"));
  EXPECT_THAT(refusal(folder.path()), HasSubstr("not a regular file"));
  EXPECT_THAT(refusal(folder.write("empty", {})), HasSubstr("it is empty"));
  EXPECT_THAT(refusal(folder.write("short", {1, 0, 0})), HasSubstr("it has only 3 bytes"));
}

TEST_F(safetensors_test, a_pipe_is_refused_without_waiting_for_somebody_who_writes_to_it) {
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(refusal(pipe), HasSubstr("not a regular file"));
}

TEST_F(safetensors_test, weights_in_another_format_are_told_by_its_name) {
  const std::pair<std::string, const char*> others[] = {{"PK\x03\x04", "a PyTorch file (torch.save)"},
                                                        {"\x80\x02}q", "a pickle"},
                                                        {"\x89HDF\r\n\x1a\n", "an HDF5 file"},
                                                        {"\x93NUMPY\x01", "a .npy file"},
                                                        {"GGUF\x03", "a GGUF file"},
                                                        {"\x1f\x8b\x08", "gzip-compressed"}};
  for (const auto& [begin, format] : others) {
    auto content = test::text_bytes(begin);
    content.resize(100);
    const auto said = refusal(folder.write("other", content));
    EXPECT_THAT(said, HasSubstr(format));
    EXPECT_THAT(said, HasSubstr("not a safetensors file"));
  }
}

/// What is exported must be readable, here and elsewhere.
TEST_F(safetensors_test, a_head_that_nobody_reads_is_not_written) {
  const std::string name(1'000'000, 'x');
  std::vector<written_tensor> tensors;
  for (int i = 0; i < 100; ++i) tensors.push_back({name + std::to_string(i), "F32", {0}, {}});
  EXPECT_FALSE(check_header(tensors, {}));
  const auto written = write_safetensors(path, tensors, {});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, error_code::limit_exceeded);
  EXPECT_THAT(written.error().message, HasSubstr("100 tensors"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  tensors.resize(20);
  EXPECT_TRUE(check_header(tensors, {}));
  ASSERT_TRUE(write_safetensors(path, tensors, {}));
  EXPECT_EQ(refusal(path), "");
}

TEST_F(safetensors_test, a_file_that_was_cut_off_is_refused) {
  const std::vector<float> weight(100, 1.0F);
  const written_tensor one{"t", "F32", {100}, bytes_of_all(weight)};
  ASSERT_TRUE(write_safetensors(path, std::span{&one, 1}, {}));
  const auto whole = std::filesystem::file_size(path);
  for (const auto size :
       {whole - 1, whole - 399, whole - 401, std::uintmax_t{9}, std::uintmax_t{8}, std::uintmax_t{0}}) {
    std::filesystem::resize_file(path, size);
    EXPECT_NE(refusal(path), "") << size;
  }
}

TEST_F(safetensors_test, a_file_that_became_shorter_is_noticed_when_it_is_read) {
  const std::vector<float> weight(100, 1.0F);
  const written_tensor one{"t", "F32", {100}, bytes_of_all(weight)};
  ASSERT_TRUE(write_safetensors(path, std::span{&one, 1}, {}));
  const auto file = safetensors_file::open(path);
  std::filesystem::resize_file(path, 100);
  std::vector<float> out(100);
  const auto read = file->read(file->tensors().front(), 0, out);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("it ends at byte 100"));
}

TEST_F(safetensors_test, a_file_that_cannot_be_written_leaves_nothing) {
  const written_tensor none{"t", "F32", {0}, {}};
  const auto written = write_safetensors(folder.path() / "no" / "w.safetensors", std::span{&none, 1}, {});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, error_code::bad_usage);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

} // namespace
} // namespace dlrun::weights
