#include "data/dataset.hpp"

#include "data/idx_reader.hpp"
#include "tests/data/files.hpp"

#include <gtest/gtest.h>
#include <numeric>
#include <zlib.h>

namespace dlrun::data {
namespace {

using test::bytes;
using test::counting;
using test::idx_bytes;

blob idx_blob(const char* name, const std::vector<std::uint32_t>& dims, const bytes& values) {
  return blob::from_bytes(idx_bytes(dims, values), name);
}

/// Three records of 2 x 2, values 0..11, labels 1, 0, 4.
result<std::shared_ptr<const dataset>> open_small(const spec::DatasetSpec& spec = {}) {
  return dataset::open(spec, idx_blob("images", {3, 2, 2}, counting(12)), idx_blob("labels", {3}, {1, 0, 4}));
}

TEST(dataset, knows_its_shape) {
  const auto data = open_small();
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ((*data)->record_count(), 3U);
  EXPECT_EQ((*data)->record_shape(), (std::vector<std::uint32_t>{2, 2}));
  EXPECT_EQ((*data)->record_values(), 4U);
  EXPECT_EQ((*data)->class_count(), 5U);
}

TEST(dataset, reads_records_in_the_order_asked_for) {
  spec::DatasetSpec spec;
  spec.mutable_normalize()->set_mean(0.5);
  spec.mutable_normalize()->set_std(2.0);
  const auto data = open_small(spec);
  ASSERT_TRUE(data);
  const std::array<std::uint64_t, 3> indices = {2, 0, 2};
  std::array<float, 12> records{};
  std::array<std::int32_t, 3> labels{};
  (*data)->read(indices, records, labels);
  EXPECT_EQ(labels, (std::array<std::int32_t, 3>{4, 1, 4}));
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 4; ++j)
      EXPECT_EQ(records[i * 4 + j], (static_cast<float>(indices[i] * 4 + j) / 255.0F - 0.5F) / 2.0F);
}

TEST(dataset, records_may_be_rows_of_features) {
  const auto data =
      dataset::open({}, idx_blob("rows", {2, 5}, counting(10)), idx_blob("labels", {2}, {0, 1}));
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ((*data)->record_values(), 5U);
  const auto single =
      dataset::open({}, idx_blob("values", {2}, counting(2)), idx_blob("labels", {2}, {0, 1}));
  ASSERT_TRUE(single) << single.error().message;
  EXPECT_EQ((*single)->record_values(), 1U);
}

TEST(dataset, refuses_unequal_counts_and_swapped_files) {
  const auto unequal =
      dataset::open({}, idx_blob("images", {3, 2}, counting(6)), idx_blob("labels", {2}, {0, 1}));
  ASSERT_FALSE(unequal);
  EXPECT_EQ(unequal.error().message, "images has 3 records, but labels has 2 labels");
  const auto swapped =
      dataset::open({}, idx_blob("labels", {2}, {0, 1}), idx_blob("images", {2, 2}, counting(4)));
  ASSERT_FALSE(swapped);
  EXPECT_NE(swapped.error().message.find("are records and labels swapped?"), std::string::npos);
}

TEST(dataset, refuses_bytes_that_are_not_idx) {
  const auto data = dataset::open({}, blob::from_bytes({1, 2, 3}, "noise"), idx_blob("labels", {2}, {0, 1}));
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().code, error_code::bad_data);
  EXPECT_NE(data.error().message.find("noise"), std::string::npos);
  const auto missing_labels =
      dataset::open({}, idx_blob("images", {3, 2}, counting(6)), blob::from_bytes({}, "none"));
  ASSERT_FALSE(missing_labels);
  EXPECT_NE(missing_labels.error().message.find("none"), std::string::npos);
}

TEST(dataset, tells_when_it_does_not_fit_a_model) {
  const auto data = open_small();
  ASSERT_TRUE(data);
  const std::array<std::int64_t, 3> image = {1, 2, 2};
  const std::array<std::int64_t, 1> flat = {4};
  const std::array<std::int64_t, 2> wrong = {3, 2};
  EXPECT_TRUE((*data)->check_fits(image, 5));
  EXPECT_TRUE((*data)->check_fits(flat, 10));
  const auto shape = (*data)->check_fits(wrong, 5);
  ASSERT_FALSE(shape);
  EXPECT_EQ(shape.error().message,
            "images: a record has 4 values (2 x 2), but the model's input [3, 2] has 6; set "
            "model.input to the shape of the records");
  const auto label = (*data)->check_fits(image, 4);
  ASSERT_FALSE(label);
  EXPECT_EQ(label.error().message,
            "labels: record 2 has label 4, but the model has only 4 outputs; the data needs 5");
}

// Expected checksums: PyTorch 1.13, (x / 255. - 0.2860) / 0.3530 of the whole test set.
TEST(dataset, reads_fashion_mnist_with_the_bits_of_pytorch) {
  const std::string folder = "/usr/share/datasets/fashion-mnist/";
  spec::DatasetSpec spec;
  spec.set_records(folder + "t10k-images-idx3-ubyte.gz");
  spec.set_labels(folder + "t10k-labels-idx1-ubyte.gz");
  spec.mutable_normalize()->set_mean(0.2860);
  spec.mutable_normalize()->set_std(0.3530);
  const auto data = dataset::open(spec);
  ASSERT_TRUE(data) << data.error().message;
  std::vector<std::uint64_t> indices((*data)->record_count());
  std::iota(indices.begin(), indices.end(), 0);
  std::vector<float> records(indices.size() * (*data)->record_values());
  std::vector<std::int32_t> labels(indices.size());
  (*data)->read(indices, records, labels);
  const auto crc = [](const void* from, std::size_t size) {
    return ::crc32_z(0, static_cast<const Bytef*>(from), size);
  };
  EXPECT_EQ(crc(records.data(), records.size() * sizeof(float)), 0x1dcb0772U);
  EXPECT_EQ(crc(labels.data(), labels.size() * sizeof(std::int32_t)), 0xc2ae269U);
  EXPECT_EQ((*data)->class_count(), 10U);
}

TEST(dataset, names_the_missing_file) {
  spec::DatasetSpec spec;
  spec.set_records("/nowhere/images");
  const auto data = dataset::open(spec);
  ASSERT_FALSE(data);
  EXPECT_NE(data.error().message.find("/nowhere/images"), std::string::npos);
}

} // namespace
} // namespace dlrun::data
