#include "data/dataset.hpp"

#include "data/array_dataset.hpp"
#include "data/idx_reader.hpp"
#include "data/npy_reader.hpp"
#include "tests/data/decoded_job.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <limits>
#include <zlib.h>

namespace dlrun::data {
namespace {

using test::bytes;
using test::counting;
using test::idx_bytes;
using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;

/// A data set of IDX bytes in memory, as `normalize` says.
result<std::shared_ptr<const dataset>> open_idx_bytes(const bytes& records, const bytes& labels,
                                                      const spec::NormalizeSpec& normalize = {},
                                                      target_kind kind = target_kind::classes) {
  const test::temporary_folder folder;
  memory_budget memory;
  auto decoded = decode_idx({.records = folder.write("images", records),
                             .labels = folder.write("labels", labels),
                             .options = {},
                             .targets = kind},
                            memory);
  if (!decoded) return tl::unexpected(decoded.error());
  return array_dataset::create(std::move(*decoded), normalize);
}

/// Three records of 2 x 2, values 0..11, labels 1, 0, 4.
result<std::shared_ptr<const dataset>> open_small(const spec::NormalizeSpec& normalize = {}) {
  return open_idx_bytes(idx_bytes({3, 2, 2}, counting(12)), idx_bytes({3}, {1, 0, 4}), normalize);
}

spec::NormalizeSpec normalize_by(std::vector<double> means, std::vector<double> stds) {
  spec::NormalizeSpec made;
  made.mutable_mean()->Assign(means.begin(), means.end());
  made.mutable_std()->Assign(stds.begin(), stds.end());
  return made;
}

TEST(dataset, knows_its_shape) {
  const auto data = open_small();
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ((*data)->record_count(), 3U);
  EXPECT_EQ((*data)->record_shape(), (std::vector<std::uint32_t>{2, 2}));
  EXPECT_EQ((*data)->record_values(), 4U);
  EXPECT_EQ((*data)->class_count(), 5U);
  EXPECT_EQ((*data)->targets(), target_kind::classes);
  EXPECT_EQ((*data)->target_values(), 1);
}

TEST(dataset, reads_records_in_the_order_asked_for) {
  const auto data = open_small(normalize_by({0.5}, {2.0}));
  ASSERT_TRUE(data);
  const std::array<std::uint64_t, 3> indices = {2, 0, 2};
  std::array<float, 12> records{};
  std::array<std::int32_t, 3> labels{};
  ASSERT_TRUE((*data)->read(indices, records, {.classes = labels, .values = {}}));
  EXPECT_EQ(labels, (std::array<std::int32_t, 3>{4, 1, 4}));
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 4; ++j)
      EXPECT_EQ(records[i * 4 + j], (static_cast<float>(indices[i] * 4 + j) / 255.0F - 0.5F) / 2.0F);
}

TEST(dataset, normalises_each_channel_by_its_own_numbers) {
  const auto data = open_idx_bytes(idx_bytes({1, 2, 1, 2}, {0, 255, 0, 255}), idx_bytes({1}, {0}),
                                   normalize_by({0.5, 0.25}, {2.0}));
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ(test::read_all(**data).records, (std::vector<float>{-0.25F, 0.25F, -0.125F, 0.375F}));
  EXPECT_EQ((*data)->zeroes(), (std::vector<float>{-0.25F, -0.125F}));
  const auto wrong = open_small(normalize_by({0.5, 0.5, 0.5}, {1.0}));
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message,
              HasSubstr("normalize has 3 values, but a record (2 x 2) has 2 channels"));
}

TEST(dataset, reads_labels_as_values_when_the_loss_takes_values) {
  const auto data = open_idx_bytes(idx_bytes({2, 3}, counting(6)), idx_bytes({2, 2}, {7, 8, 9, 250}), {},
                                   target_kind::values);
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ((*data)->target_values(), 2);
  EXPECT_EQ(test::read_all(**data).values, (std::vector<float>{7, 8, 9, 250}));
}

TEST(dataset, records_may_be_rows_of_features) {
  const auto data = open_idx_bytes(idx_bytes({2, 5}, counting(10)), idx_bytes({2}, {0, 1}));
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ((*data)->record_values(), 5U);
  const auto single = open_idx_bytes(idx_bytes({2}, counting(2)), idx_bytes({2}, {0, 1}));
  ASSERT_TRUE(single) << single.error().message;
  EXPECT_EQ((*single)->record_values(), 1U);
}

TEST(dataset, refuses_unequal_counts_and_swapped_files) {
  const auto unequal = open_idx_bytes(idx_bytes({3, 2}, counting(6)), idx_bytes({2}, {0, 1}));
  ASSERT_FALSE(unequal);
  EXPECT_THAT(unequal.error().message, MatchesRegex(".*/images has 3 records, but .*/labels has 2 labels"));
  const auto swapped = open_idx_bytes(idx_bytes({2}, {0, 1}), idx_bytes({2, 2}, counting(4)));
  ASSERT_FALSE(swapped);
  EXPECT_THAT(swapped.error().message, HasSubstr("are records and labels swapped?"));
}

TEST(dataset, refuses_bytes_that_are_not_idx) {
  const auto data = open_idx_bytes({1, 2, 3}, idx_bytes({2}, {0, 1}));
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().code, error_code::bad_data);
  EXPECT_THAT(data.error().message, HasSubstr("images"));
  const auto missing_labels = open_idx_bytes(idx_bytes({3, 2}, counting(6)), {});
  ASSERT_FALSE(missing_labels);
  EXPECT_THAT(missing_labels.error().message, HasSubstr("labels"));
}

TEST(dataset, tells_when_it_does_not_fit_a_model) {
  const auto data = open_small();
  ASSERT_TRUE(data);
  const auto fits = [&](std::vector<std::int64_t> input, std::int64_t outputs,
                        target_kind kind = target_kind::classes) {
    const auto said = (*data)->check_fits(input, kind, outputs);
    return said ? "" : said.error().message;
  };
  EXPECT_EQ(fits({1, 2, 2}, 5), "");
  EXPECT_EQ(fits({4}, 10), "");
  EXPECT_THAT(fits({3, 2}, 5),
              EndsWith("images: a record has 4 values (2 x 2), but the model's input [3, 2] has 6; set "
                       "model.input to the shape of the records"));
  EXPECT_THAT(fits({4, 1}, 5), HasSubstr("the same number of values in another order"));
  EXPECT_THAT(fits({4}, 4),
              EndsWith("labels: record 2 has label 4, but the model has only 4 outputs; the data needs 5"));
  EXPECT_THAT(fits({4}, 1, target_kind::values),
              HasSubstr("the targets are class numbers, but the loss takes values"));
}

TEST(dataset, tells_which_value_is_no_row_of_an_embedding) {
  const auto data = open_small(); // 0, 1/255, 2/255, ...
  ASSERT_TRUE(data);
  const auto rows = (*data)->check_rows(0, 1, 3, "words");
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().code, error_code::bad_data);
  EXPECT_THAT(rows.error().message,
              EndsWith("images: record 1 has the value 0.015686275 at place 0, but layer 'words' (embedding) "
                       "takes whole numbers from 0 to 2; correct the data or num_embeddings"));
  const auto black = open_idx_bytes(idx_bytes({2, 2}, {0, 9, 0, 9}), idx_bytes({2}, {0, 1}));
  ASSERT_TRUE(black);
  EXPECT_TRUE((*black)->check_rows(0, 1, 1, "words"));
  EXPECT_FALSE((*black)->check_rows(0, 2, 1, "words"));
}

// Expected checksums: PyTorch 1.13, (x / 255. - 0.2860) / 0.3530 of the whole test set.
/// `values` as records of three, of type f4.
std::shared_ptr<const dataset> floats_of(const std::vector<float>& values, double std = 1) {
  const test::temporary_folder folder;
  const auto shape = fmt::format("({}, 3)", values.size() / 3);
  reader_request request;
  request.records = folder.write("records.npy", test::npy_bytes("<f4", shape, test::bytes_of(values)));
  request.with_targets = false;
  return array_dataset::create(decode_npy(request).value(), normalize_by({0}, {std})).value();
}

TEST(dataset, names_the_first_number_that_is_none) {
  std::vector<float> values(300'000, 1.0F);
  EXPECT_TRUE(floats_of(values)->check_finite());
  values[250'001] = std::numeric_limits<float>::infinity();
  values[200'000] = std::numeric_limits<float>::quiet_NaN();
  const auto fine = floats_of(values)->check_finite();
  ASSERT_FALSE(fine);
  EXPECT_EQ(fine.error().code, error_code::bad_data);
  EXPECT_THAT(fine.error().message, HasSubstr("records.npy: record 66666 has nan at place 2"));
}

TEST(dataset, a_number_that_normalisation_makes_too_large_is_none) {
  EXPECT_TRUE(floats_of({1e38F, 0, 0})->check_finite());
  EXPECT_THAT(floats_of({0, 1e38F, 0}, 1e-6)->check_finite().error().message,
              HasSubstr("record 0 has inf at place 1 (after normalize)"));
}

TEST(dataset, names_the_first_target_that_a_loss_does_not_take) {
  const auto data = open_small();
  ASSERT_TRUE(data);
  std::vector<std::int32_t> seen;
  const auto check = [&](std::int32_t wrong) {
    return (*data)->check_targets(
        [&](const batch& batch) -> std::optional<std::pair<std::size_t, std::string>> {
          seen.assign(batch.classes.begin(), batch.classes.end());
          const auto at = std::ranges::find(batch.classes, wrong);
          if (at == batch.classes.end()) return std::nullopt;
          return std::pair{static_cast<std::size_t>(at - batch.classes.begin()), "has a class that is wrong"};
        });
  };
  EXPECT_TRUE(check(3));
  EXPECT_EQ(seen, (std::vector<std::int32_t>{1, 0, 4}));
  EXPECT_THAT(check(4).error().message, EndsWith("labels: record 2 has a class that is wrong"));
}

TEST(dataset, reads_fashion_mnist_with_the_bits_of_pytorch) {
  const std::string folder = "/usr/share/datasets/fashion-mnist/";
  memory_budget memory;
  const auto decoded = decode_idx({.records = folder + "t10k-images-idx3-ubyte.gz",
                                   .labels = folder + "t10k-labels-idx1-ubyte.gz",
                                   .options = {}},
                                  memory);
  ASSERT_TRUE(decoded) << decoded.error().message;
  const auto data = array_dataset::create(*decoded, normalize_by({0.2860}, {0.3530}));
  ASSERT_TRUE(data) << data.error().message;
  const auto all = test::read_all(**data);
  const auto crc = [](const void* from, std::size_t size) {
    return ::crc32_z(0, static_cast<const Bytef*>(from), size);
  };
  EXPECT_EQ(crc(all.records.data(), all.records.size() * sizeof(float)), 0x1dcb0772U);
  EXPECT_EQ(crc(all.classes.data(), all.classes.size() * sizeof(std::int32_t)), 0xc2ae269U);
  EXPECT_EQ((*data)->class_count(), 10U);
}

TEST(dataset, names_the_missing_file) {
  memory_budget memory;
  const auto data =
      decode_idx({.records = "/nowhere/images", .labels = "/nowhere/labels", .options = {}}, memory);
  ASSERT_FALSE(data);
  EXPECT_THAT(data.error().message, HasSubstr("/nowhere/images"));
}

TEST(dataset, memory_that_data_would_take_is_limited) {
  const test::temporary_folder folder;
  memory_budget memory(5000);
  const auto file = folder.write("images.gz", test::gzip(idx_bytes({100, 60}, counting(6000))));
  const auto refused = open_idx(file, memory);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("images.gz: decoded it takes"));
  EXPECT_THAT(refused.error().message, HasSubstr("set data.memory_limit higher"));
  EXPECT_TRUE(open_idx(folder.write("plain", idx_bytes({100, 60}, counting(6000))), memory))
      << "a plain file is mapped";
  EXPECT_TRUE(memory.take(5000, "all of it"));
  EXPECT_FALSE(memory.take(1, "one more"));
  EXPECT_GT(memory_budget().limit(), std::uint64_t{1} << 28) << "half of the machine's";
}

} // namespace
} // namespace dlrun::data
