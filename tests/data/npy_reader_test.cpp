#include "data/npy_reader.hpp"

#include "tests/data/decoded_job.hpp"

#include <gmock/gmock.h>

namespace dlrun::data {
namespace {

using test::bytes;
using test::bytes_of;
using test::npy_bytes;
using testing::ElementsAre;
using testing::HasSubstr;
using floats = std::vector<float>;

class npy_reader_test : public testing::Test {
protected:
  npy_reader_test() { job.write("y.npy", npy_bytes("<i8", "(2,)", bytes_of<std::int64_t>({1, 0}))); }
  result<std::shared_ptr<const dataset>> open(const bytes& records) {
    job.write("x.npy", records);
    return job.open(keys);
  }
  std::string refusal(const bytes& records) {
    job.write("x.npy", records);
    return job.refusal(keys);
  }
  const std::string keys = "{train: {format: npy, records: x.npy, labels: y.npy}}";
  test::decoded_job job;
};

TEST_F(npy_reader_test, maps_every_type_that_is_read) {
  const std::pair<const char*, bytes> files[] = {{"|u1", {51, 102, 153, 204}},
                                                 {"<i4", bytes_of<std::int32_t>({51, 102, 153, 204})},
                                                 {"<i8", bytes_of<std::int64_t>({51, 102, 153, 204})},
                                                 {"<f4", bytes_of<float>({51, 102, 153, 204})},
                                                 {"<f8", bytes_of<double>({51, 102, 153, 204})}};
  for (const auto& [type, values] : files) {
    const auto data = open(npy_bytes(type, "(2, 1, 2)", values));
    ASSERT_TRUE(data) << type << ": " << data.error().message;
    EXPECT_EQ((*data)->record_shape(), (std::vector<std::uint32_t>{1, 2}));
    const auto all = test::read_all(**data);
    const float scale = type == std::string("|u1") ? 255.0F : 1.0F;
    EXPECT_EQ(all.records, (floats{51 / scale, 102 / scale, 153 / scale, 204 / scale})) << type;
    EXPECT_THAT(all.classes, ElementsAre(1, 0));
  }
}

TEST_F(npy_reader_test, takes_no_memory) {
  job.write("x.npy", npy_bytes("|u1", "(2, 2)", {1, 2, 3, 4}));
  EXPECT_EQ(job.refusal("{memory_limit: 1B, " + keys.substr(1)), "");
}

TEST_F(npy_reader_test, floats_may_be_targets_of_a_loss_that_takes_values) {
  job.write("x.npy", npy_bytes("|u1", "(2, 2)", {1, 2, 3, 4}));
  job.write("y.npy", npy_bytes("<f8", "(2, 2)", bytes_of<double>({0.5, 1, 1.5, 2})));
  const auto data = job.open(keys, data_part::training, target_kind::values);
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ((*data)->target_values(), 2);
  EXPECT_EQ(test::read_all(**data).values, (floats{0.5, 1, 1.5, 2}));
  EXPECT_THAT(job.refusal(keys), HasSubstr("y.npy: targets are f8, but the loss takes class numbers"));
}

TEST_F(npy_reader_test, normalises_floats_in_float_and_others_in_double) {
  job.write("x.npy", npy_bytes("<f4", "(2,)", bytes_of<float>({0.1F, 0.7F})));
  const auto data =
      job.open("{train: {format: npy, records: x.npy, labels: y.npy, normalize: {mean: 0.3, std: 0.7}}}");
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ(test::read_all(**data).records, (floats{(0.1F - 0.3F) / 0.7F, (0.7F - 0.3F) / 0.7F}));
}

TEST_F(npy_reader_test, reads_what_numpy_wrote) {
  // numpy 1.24: numpy.save(f, numpy.array([[1.5, -2], [3, 4]], dtype="<f4"))
  const std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }";
  auto file = test::text_bytes(std::string("\x93NUMPY\x01\x00\x76\x00", 10) + head +
                               std::string(118 - head.size() - 1, ' ') + "\n");
  const auto values = bytes_of<float>({1.5, -2, 3, 4});
  file.insert(file.end(), values.begin(), values.end());
  const auto data = open(file);
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ(test::read_all(**data).records, (floats{1.5, -2, 3, 4}));
}

TEST_F(npy_reader_test, a_file_cut_at_any_byte_is_an_error) {
  const auto whole = npy_bytes("<f4", "(2, 1)", bytes_of<float>({1, 2}));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto said = refusal({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)});
    EXPECT_THAT(said, HasSubstr("x.npy")) << length;
    EXPECT_THAT(said, HasSubstr("byte")) << length;
  }
  auto longer = whole;
  longer.push_back(0);
  EXPECT_THAT(refusal(longer), HasSubstr("trailing bytes"));
}

TEST_F(npy_reader_test, heads_that_make_no_sense_are_refused_before_memory_is_taken) {
  const auto of = [&](const std::string& type, const std::string& shape, const std::string& order = "False") {
    return refusal(npy_bytes(type, shape, bytes(16), order));
  };
  EXPECT_THAT(of("<f4", "(4294967296, 4294967296, 4294967296)"), HasSubstr("more than 2^46 values"));
  EXPECT_THAT(of("<f4", "(99999999999999999999,)"), HasSubstr("expected a size"));
  EXPECT_THAT(of("<f4", "(-1,)"), HasSubstr("expected a size"));
  EXPECT_THAT(of("<f4", "(0, 4)"), HasSubstr("there is nothing in it"));
  EXPECT_THAT(of("<f4", "(1000000, 4)"), HasSubstr("truncated"));
  EXPECT_THAT(of("<f4", "()"), Not(testing::IsEmpty()));
  EXPECT_THAT(of(">f4", "(2, 2)"), HasSubstr("holds type '>f4'"));
  EXPECT_THAT(of("<c8", "(2,)"), HasSubstr("convert it with"));
  EXPECT_THAT(of("|O", "(2,)"), HasSubstr("holds type '|O'"));
  EXPECT_THAT(of("<f4", "(2, 2)", "True"), HasSubstr("Fortran order"));
  EXPECT_THAT(of("<f4", "(2, 2)", "__import__('os')"), HasSubstr("expected True or False"));
  EXPECT_THAT(of("<f4", "(2, 2), 'more': 1"), HasSubstr("expected one of the keys"));
  EXPECT_THAT(refusal(test::gzip(npy_bytes("<f4", "(2,)", bytes(8)))), HasSubstr("is gzip-compressed"));
  EXPECT_THAT(refusal(test::text_bytes("PK\x03\x04 an archive")), HasSubstr("not a .npy file"));
}

TEST_F(npy_reader_test, a_label_out_of_range_is_named_by_its_record) {
  job.write("x.npy", npy_bytes("|u1", "(2, 2)", {1, 2, 3, 4}));
  job.write("y.npy", npy_bytes("<i8", "(2,)", bytes_of<std::int64_t>({0, -1})));
  EXPECT_THAT(job.refusal(keys), HasSubstr("y.npy: record 1 has label -1"));
  job.write("y.npy", npy_bytes("<i8", "(2,)", bytes_of<std::int64_t>({std::int64_t{1} << 40, 0})));
  EXPECT_THAT(job.refusal(keys), HasSubstr("y.npy: record 0 has label 1099511627776"));
  job.write("y.npy", npy_bytes("<i8", "(3,)", bytes_of<std::int64_t>({0, 0, 0})));
  EXPECT_THAT(job.refusal(keys), HasSubstr("has 2 records"));
}

} // namespace
} // namespace dlrun::data
