#include "data/tfrecord_reader.hpp"

#include "tests/data/decoded_job.hpp"

#include <gmock/gmock.h>

namespace dlrun::data {
namespace {

using test::bytes;
using testing::ElementsAre;
using testing::HasSubstr;
using floats = std::vector<float>;

void put(bytes& out, std::uint64_t value, int size) {
  for (int i = 0; i < size; ++i) out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

bytes framed(const std::string& record) {
  bytes out;
  put(out, record.size(), 8);
  put(out, masked_crc32c(std::span(out).first(8)), 4);
  const auto content = test::text_bytes(record);
  out.insert(out.end(), content.begin(), content.end());
  put(out, masked_crc32c(content), 4);
  return out;
}

/// {image: two raw bytes, weight: a float, label: an int64}.
std::string example(const std::string& image, float weight, std::int64_t label) {
  tf::Example made;
  auto& features = *made.mutable_features()->mutable_feature();
  features["image"].mutable_bytes_list()->add_value(image);
  features["weight"].mutable_float_list()->add_value(weight);
  features["label"].mutable_int64_list()->add_value(label);
  return made.SerializeAsString();
}

class tfrecord_reader_test : public testing::Test {
protected:
  tfrecord_reader_test() {
    for (const auto& record : {example("\x33\x66", 0.5, 1), example("\x99\xcc", 1.5, 0)}) add(record);
    job.write("r.tfrecord", file);
  }
  void add(const std::string& record) {
    const auto more = framed(record);
    file.insert(file.end(), more.begin(), more.end());
  }
  static std::string keys(const std::string& section) {
    return "{train: {format: tfrecord, records: r.tfrecord, tfrecord: {" + section + "}}}";
  }
  std::string refusal(const bytes& content) {
    job.write("r.tfrecord", content);
    return job.refusal(keys("features: image, target: label"));
  }
  bytes file;
  test::decoded_job job;
};

TEST_F(tfrecord_reader_test, raw_bytes_are_bytes_and_int64_are_classes) {
  const auto data = job.open(keys("features: image, target: label, shape: [1, 2, 1]"));
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ((*data)->record_shape(), (std::vector<std::uint32_t>{1, 2, 1}));
  const auto all = test::read_all(**data);
  EXPECT_EQ(all.records, (floats{51 / 255.0F, 102 / 255.0F, 153 / 255.0F, 204 / 255.0F}));
  EXPECT_THAT(all.classes, ElementsAre(1, 0));
}

TEST_F(tfrecord_reader_test, several_features_are_one_record_of_floats) {
  const auto data = job.open(keys("features: [weight, image], target: [label, weight]"), data_part::training,
                             target_kind::values);
  ASSERT_TRUE(data) << data.error().message;
  const auto all = test::read_all(**data);
  EXPECT_EQ(all.records, (floats{0.5, 51, 102, 1.5, 153, 204}));
  EXPECT_EQ(all.values, (floats{1, 0.5, 0, 1.5}));
}

TEST_F(tfrecord_reader_test, raw_bytes_may_be_of_other_types) {
  file.clear();
  const auto raw = test::bytes_of<float>({0.25F, -2});
  add(example({raw.begin(), raw.end()}, 0, 3));
  job.write("r.tfrecord", file);
  const auto data = job.open(keys("features: image, target: label, bytes: f4"));
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ(test::read_all(**data).records, (floats{0.25F, -2}));
  EXPECT_THAT(job.refusal(keys("features: image, target: label, bytes: f8, shape: [2]")),
              HasSubstr("has 1 numbers, but tfrecord.shape [2] has 2"));
}

TEST_F(tfrecord_reader_test, checksums_are_masked_as_tensorflow_does_it) {
  // RFC 3720, B.4: CRC32C of 32 zero bytes is 0x8a9136aa; rotated by 15 and offset by 0xa282ead8.
  EXPECT_EQ(masked_crc32c(bytes(32)), ((0x8a9136aaU >> 15) | (0x8a9136aaU << 17)) + 0xa282ead8U);
}

TEST_F(tfrecord_reader_test, a_record_is_framed_as_it_is_read) {
  for (const std::string& record : {std::string{}, example("\x33\x66", 0.5, 1), std::string(1000, '\xff')})
    EXPECT_EQ(test::text_bytes(framed_tfrecord(record)), framed(record));
}

TEST_F(tfrecord_reader_test, reads_gzip) {
  job.write("r.tfrecord", test::gzip(file));
  const auto data = job.open(keys("features: weight, target: label"));
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ(test::read_all(**data).records, (floats{0.5, 1.5}));
}

TEST_F(tfrecord_reader_test, a_file_cut_at_any_byte_is_an_error_or_ends_between_records) {
  const std::size_t between = framed(example("\x33\x66", 0.5, 1)).size();
  for (std::size_t length = 0; length < file.size(); ++length) {
    const auto said = refusal({file.begin(), file.begin() + static_cast<std::ptrdiff_t>(length)});
    if (length == between)
      EXPECT_EQ(said, "") << "nothing in the file says how many records there should be";
    else
      EXPECT_THAT(said, HasSubstr("r.tfrecord")) << length;
  }
  EXPECT_THAT(refusal({}), HasSubstr("there are no records in it"));
}

TEST_F(tfrecord_reader_test, a_flipped_bit_anywhere_is_found) {
  for (std::size_t at = 0; at < file.size(); ++at) {
    auto broken = file;
    broken[at] ^= 0x04;
    EXPECT_THAT(refusal(broken), HasSubstr("record")) << at;
  }
}

TEST_F(tfrecord_reader_test, a_length_that_cannot_be_takes_no_memory) {
  bytes huge;
  put(huge, std::uint64_t{1} << 60, 8);
  put(huge, masked_crc32c(std::span(huge).first(8)), 4);
  EXPECT_THAT(refusal(huge), HasSubstr("byte 0: record 0: claims 1152921504606846976 bytes"));
}

TEST_F(tfrecord_reader_test, names_the_record_and_the_feature_that_is_wrong) {
  EXPECT_THAT(job.refusal(keys("features: img, target: label")),
              HasSubstr("record 0: has no feature \"img\"; it has image, label, weight"));
  auto more = file;
  const auto with = [&](const std::string& record) {
    auto all = file;
    const auto last = framed(record);
    all.insert(all.end(), last.begin(), last.end());
    return refusal(all);
  };
  EXPECT_THAT(with(example("\x01\x02\x03", 0, 0)),
              HasSubstr("record 2: has 3 numbers, but the first record 2"));
  EXPECT_THAT(with(example("\x01\x02", 0, -5)), HasSubstr("record 2: its class (\"label\") is -5"));
  EXPECT_THAT(with("no message"), HasSubstr("record 2: its bytes are no tf.train.Example"));
  EXPECT_THAT(with(""), HasSubstr("record 2: has no feature \"image\""));
}

} // namespace
} // namespace dlrun::data
