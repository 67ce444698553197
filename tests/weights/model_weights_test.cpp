#include "tests/data/files.hpp"
#include "weights/model_weights.hpp"
#include "weights/safetensors_writer.hpp"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <utility>

namespace dlrun::weights {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A convolution, a batch_norm, and a linear layer.
engine::parameter_layout make_layout() {
  return engine::parameter_layout{{{"conv.weight", {2, 1, 3, 3}},
                                   {"bn.weight", {2}},
                                   {"bn.running_mean", {2}, tensor_kind::buffer},
                                   {"bn.running_var", {2}, tensor_kind::buffer},
                                   {"fc.weight", {10, 700}},
                                   {"fc.bias", {10}}}};
}

class model_weights_test : public testing::Test {
protected:
  model_weights_test() {
    for (const auto& tensor : layout.tensors())
      for (std::uint64_t i = 0; i < tensor.size && tensor.kind != tensor_kind::metric; ++i)
        flat[tensor.offset + i] = static_cast<float>(tensor.offset + i) / 8;
  }
  safetensors_file written() const {
    EXPECT_TRUE(write_weights(path, layout, flat, 469, {{"job", "mine"}}));
    return safetensors_file::open(path).value();
  }
  /// A file of zeroes with these tensors, of dtype F32 where none is said.
  safetensors_file with(std::vector<written_tensor> tensors) const {
    std::vector<std::vector<std::byte>> memory;
    memory.reserve(tensors.size());
    for (auto& tensor : tensors) {
      if (tensor.dtype.empty()) tensor.dtype = "F32";
      std::size_t elements = 1;
      for (const auto extent : tensor.extents) elements *= static_cast<std::size_t>(extent);
      tensor.bytes = memory.emplace_back(bytes_of(tensor.dtype, elements).value());
    }
    EXPECT_TRUE(write_safetensors(path, tensors, {}));
    return safetensors_file::open(path).value();
  }
  /// Those of the model.
  static std::vector<written_tensor> fitting() {
    return {{"conv.weight", "", {2, 1, 3, 3}, {}}, {"bn.weight", "", {2}, {}},
            {"bn.running_mean", "", {2}, {}},      {"bn.running_var", "", {2}, {}},
            {"fc.weight", "", {10, 700}, {}},      {"fc.bias", "", {10}, {}}};
  }
  std::string refusal(const safetensors_file& file, fit wanted = fit::whole) const {
    const auto fits = check_fits(file, layout, wanted);
    if (fits) return "";
    EXPECT_EQ(fits.error().code, error_code::bad_data);
    EXPECT_THAT(fits.error().message, HasSubstr(path.string() + " does not fit the model: "));
    return fits.error().message;
  }

  test::temporary_folder folder;
  std::filesystem::path path = folder.path() / "w.safetensors";
  engine::parameter_layout layout = make_layout();
  std::vector<float> flat = std::vector<float>(layout.flat_size());
};

TEST_F(model_weights_test, a_model_comes_back_bit_for_bit) {
  const auto file = written();
  ASSERT_TRUE(check_fits(file, layout, fit::whole));
  std::vector<float> read(layout.flat_size());
  ASSERT_TRUE(read_part(file, layout, 0, read));
  EXPECT_EQ(read, flat);
}

/// What strict loading in PyTorch wants to find.
TEST_F(model_weights_test, names_are_those_of_pytorch_and_metrics_stay_out) {
  const auto file = written();
  EXPECT_EQ(file.tensors().size(), 7U);
  ASSERT_NE(file.find("bn.num_batches_tracked"), nullptr);
  EXPECT_EQ(file.find("bn.num_batches_tracked")->dtype, "I64");
  EXPECT_TRUE(file.find("bn.num_batches_tracked")->extents.empty());
  EXPECT_EQ(file.find("metrics"), nullptr);
  EXPECT_EQ(file.metadata().at("job"), "mine");
}

TEST_F(model_weights_test, any_part_can_be_read_alone) {
  const auto file = written();
  for (const std::uint64_t begin : {0U, 5U, 17U, 64U, 80U, 65536U, 7000U})
    for (const std::uint64_t size : {0U, 1U, 16U, 6000U}) {
      if (begin + size > flat.size()) continue;
      std::vector<float> part(size);
      ASSERT_TRUE(read_part(file, layout, begin, part));
      EXPECT_TRUE(std::equal(part.begin(), part.end(), flat.begin() + static_cast<std::ptrdiff_t>(begin)))
          << begin << " + " << size;
    }
}

TEST_F(model_weights_test, every_tensor_that_does_not_fit_is_named) {
  auto tensors = fitting();
  tensors[0].extents = {2, 1, 5, 5};
  tensors[1].name = "bn.gamma";
  tensors[5].dtype = "I32";
  const auto said = refusal(with(tensors));
  EXPECT_THAT(said, HasSubstr("'conv.weight' is [2, 1, 3, 3] in the model, [2, 1, 5, 5] in the file"));
  EXPECT_THAT(said, HasSubstr("'bn.weight' [2] is not in the file"));
  EXPECT_THAT(said, HasSubstr("'bn.gamma' [2] is not in the model"));
  EXPECT_THAT(said, HasSubstr("'fc.bias' has the dtype I32"));
  EXPECT_THAT(said, Not(HasSubstr("fc.weight")));
}

TEST_F(model_weights_test, equal_sizes_in_another_shape_do_not_fit) {
  auto tensors = fitting();
  tensors[4].extents = {700, 10};
  EXPECT_THAT(refusal(with(tensors)), HasSubstr("'fc.weight' is [10, 700] in the model, [700, 10]"));
}

TEST_F(model_weights_test, counters_of_pytorch_are_passed_over_where_there_are_statistics) {
  auto tensors = fitting();
  tensors.push_back({"bn.num_batches_tracked", "I64", {}, {}});
  EXPECT_EQ(refusal(with(tensors)), "");
  tensors.back().name = "fc.num_batches_tracked";
  EXPECT_THAT(refusal(with(tensors)), HasSubstr("'fc.num_batches_tracked' [] is not in the model"));
}

TEST_F(model_weights_test, the_metrics_are_no_tensor_of_the_model) {
  auto tensors = fitting();
  tensors.push_back({"metrics", "", {16}, {}});
  EXPECT_THAT(refusal(with(tensors)), HasSubstr("'metrics' [16] is not in the model"));
}

TEST_F(model_weights_test, a_part_fits_with_other_names_but_not_with_other_shapes) {
  const std::vector<written_tensor> some{{"fc.bias", "", {10}, {}}, {"head.weight", "", {4}, {}}};
  const auto file = with(some);
  EXPECT_EQ(refusal(file, fit::part), "");
  EXPECT_NE(refusal(file, fit::whole), "");
  auto read = flat;
  ASSERT_TRUE(read_part(file, layout, 0, read));
  const auto* const bias = layout.find("fc.bias");
  EXPECT_EQ(read[bias->offset], 0.0F);
  EXPECT_EQ(read[bias->offset - 1], flat[bias->offset - 1]) << "what the file does not have stays";
  EXPECT_THAT(refusal(with({{"fc.bias", "", {11}, {}}}), fit::part), HasSubstr("[10] in the model, [11]"));
  EXPECT_THAT(refusal(with({{"head.weight", "", {4}, {}}}), fit::part), HasSubstr("no tensor of the model"));
}

TEST_F(model_weights_test, a_tensor_that_the_model_does_not_use_may_be_of_any_dtype) {
  for (const auto* const dtype : {"C64", "F8_E8M0", "F4", "F6_E3M2", "BOOL"})
    EXPECT_EQ(refusal(with({{"fc.bias", "", {10}, {}}, {"unused", dtype, {4}, {}}}), fit::part), "") << dtype;
  EXPECT_THAT(refusal(with({{"fc.bias", "F4", {10}, {}}}), fit::part),
              HasSubstr("'fc.bias' has the dtype F4"));
}

TEST_F(model_weights_test, what_is_no_number_is_named_with_tensor_and_place) {
  const auto said = [&](std::uint64_t place, float value) {
    const auto before = std::exchange(flat[place], value);
    const auto fine = check_finite(written(), layout);
    flat[place] = before;
    return fine ? "" : fine.error().message;
  };
  EXPECT_EQ(said(0, 1), "");
  const auto weight = layout.find("fc.weight")->offset;
  EXPECT_THAT(said(weight + 3 * 700 + 5, NAN),
              HasSubstr(path.string() + ": tensor 'fc.weight' has nan at [3, 5]"));
  EXPECT_THAT(said(layout.find("bn.running_var")->offset + 1, -INFINITY),
              HasSubstr("'bn.running_var' has -inf at [1]"));
  EXPECT_EQ(said(layout.metrics().offset, NAN), "") << "they are not in the file";
}

TEST_F(model_weights_test, a_number_that_is_too_large_for_a_float_is_none) {
  const std::vector<double> values(10, 1e300);
  const written_tensor one{"fc.bias", "F64", {10}, std::as_bytes(std::span{values})};
  ASSERT_TRUE(write_safetensors(path, std::span{&one, 1}, {}));
  const auto fine = check_finite(safetensors_file::open(path).value(), layout);
  ASSERT_FALSE(fine);
  EXPECT_THAT(fine.error().message, HasSubstr("'fc.bias' has inf at [0]"));
}

TEST_F(model_weights_test, many_problems_are_counted_after_the_first) {
  std::vector<written_tensor> tensors;
  for (int i = 0; i < 50; ++i) tensors.push_back({"x" + std::to_string(i), "", {1}, {}});
  EXPECT_THAT(refusal(with(tensors)), HasSubstr("; and 36 more"));
}

} // namespace
} // namespace dlrun::weights
