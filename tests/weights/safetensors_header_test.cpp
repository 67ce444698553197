#include "weights/safetensors_header.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::weights {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// What is said of a head that is refused as bad data; "" when it is not.
std::string refusal(const std::string& text, std::uint64_t data_bytes = 8) {
  const auto header = parse_header(text, data_bytes, "w.safetensors");
  if (header) return "";
  EXPECT_EQ(header.error().code, error_code::bad_data);
  EXPECT_THAT(header.error().message, HasSubstr("w.safetensors is not a whole safetensors file: "));
  return header.error().message;
}

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}";
}

TEST(safetensors_header, names_every_tensor_in_the_order_of_the_bytes) {
  const auto text = R"({"__metadata__":{"format":"pt","job":"x"},)" + tensor("b", "F32", "[1]", "[8,12]") +
                    "," + tensor("a", "F64", "[]", "[0,8]") + "," + tensor("none", "I8", "[3,0]", "[8,8]") +
                    "}  ";
  const auto header = parse_header(text, 12, "w.safetensors");
  ASSERT_TRUE(header) << header.error().message;
  ASSERT_EQ(header->tensors.size(), 3U);
  EXPECT_EQ(header->tensors[0].name, "a");
  EXPECT_EQ(header->tensors[0].elements, 1U) << "no extents are one element";
  EXPECT_EQ(header->tensors[1].name, "none");
  EXPECT_EQ(header->tensors[1].elements, 0U);
  EXPECT_EQ(header->tensors[2].dtype, "F32");
  EXPECT_EQ(header->tensors[2].offset, 8U);
  EXPECT_THAT(header->tensors[2].extents, ElementsAre(1));
  EXPECT_EQ(header->metadata.at("job"), "x");
}

TEST(safetensors_header, may_name_nothing) {
  EXPECT_EQ(refusal("{}", 0), "");
  EXPECT_THAT(refusal("{}", 1), HasSubstr("something is behind them"));
}

TEST(safetensors_header, what_is_no_json_of_this_form_is_refused) {
  for (const char* text :
       {"", " {}", "[]", "null", "{", "{]", "{}x", R"({"a":1})", R"({"a":[]})", R"({"a":null})",
        R"({"a":{}})", R"({"a":{"dtype":"F32"}})", R"({"__metadata__":{"x":1}})",
        R"({"__metadata__":{"x":{}}})", R"({"__metadata__":[]})", "{\"a\xff\":{}}"})
    EXPECT_NE(refusal(text), "") << text;
}

TEST(safetensors_header, a_field_of_the_wrong_kind_is_refused) {
  for (const char* text : {R"({"a":{"dtype":4,"shape":[2],"data_offsets":[0,8]}})",
                           R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})",
                           R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})",
                           R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})",
                           R"({"a":{"dtype":"F32","shape":["2"],"data_offsets":[0,8]}})",
                           R"({"a":{"dtype":"F32","shape":[[2]],"data_offsets":[0,8]}})",
                           R"({"a":{"dtype":"F32","shape":[true],"data_offsets":[0,8]}})",
                           R"({"a":{"dtype":"F32","shape":[2],"data_offsets":{"0":8}}})",
                           R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})",
                           R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4,8]}})",
                           R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})",
                           R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1}})"})
    EXPECT_NE(refusal(text), "") << text;
}

TEST(safetensors_header, names_and_keys_come_once) {
  const auto once = tensor("a", "F32", "[1]", "[0,4]");
  EXPECT_THAT(refusal("{" + once + "," + tensor("a", "F32", "[1]", "[4,8]") + "}"),
              HasSubstr("\"a\" comes twice"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})"),
              HasSubstr("dtype of tensor \"a\" comes twice"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"x":"1","x":"2"}})"),
              HasSubstr("\"x\" comes twice in __metadata__"));
}

TEST(safetensors_header, an_unknown_dtype_is_refused_naming_the_tensor) {
  const auto said = refusal("{" + tensor("a", "F4", "[16]", "[0,8]") + "}");
  EXPECT_THAT(said, HasSubstr("tensor \"a\" has the unknown dtype \"F4\""));
}

TEST(safetensors_header, sizes_that_do_not_agree_are_refused) {
  EXPECT_THAT(refusal("{" + tensor("a", "F32", "[3]", "[0,8]") + "}"),
              HasSubstr("\"a\" has 8 bytes, which its shape"));
  EXPECT_NE(refusal("{" + tensor("a", "F64", "[2]", "[0,8]") + "}"), "");
}

/// 2^32 x 2^32 elements are 0 modulo 2^64, and so are 2^62 elements of four bytes.
TEST(safetensors_header, products_that_overflow_are_refused) {
  EXPECT_NE(refusal("{" + tensor("a", "F32", "[4294967296,4294967296]", "[0,0]") + "}", 0), "");
  EXPECT_NE(refusal("{" + tensor("a", "F32", "[4611686018427387904]", "[0,0]") + "}", 0), "");
  EXPECT_NE(refusal("{" + tensor("a", "F32", "[18446744073709551615]", "[0,8]") + "}"), "");
  EXPECT_NE(refusal("{" + tensor("a", "F32", "[99999999999999999999999]", "[0,8]") + "}"), "");
}

TEST(safetensors_header, places_that_overlap_leave_a_gap_or_lie_outside_are_refused) {
  const auto first = tensor("a", "F32", "[1]", "[0,4]");
  EXPECT_THAT(refusal("{" + first + "," + tensor("b", "F32", "[1]", "[2,6]") + "}"), HasSubstr("overlap"));
  EXPECT_THAT(refusal("{" + first + "," + tensor("b", "F32", "[1]", "[0,4]") + "}"), HasSubstr("overlap"));
  EXPECT_THAT(refusal("{" + first + "," + tensor("b", "F32", "[1]", "[8,12]") + "}", 12), HasSubstr("gap"));
  EXPECT_THAT(refusal("{" + first + "," + tensor("b", "F32", "[1]", "[4,8]") + "}", 7), HasSubstr("cut off"));
  EXPECT_THAT(refusal("{" + first + "}", 8), HasSubstr("something is behind"));
  EXPECT_NE(refusal("{" + tensor("a", "F32", "[1]", "[9223372036854775803,9223372036854775807]") + "}"), "");
}

TEST(safetensors_header, deep_nesting_is_refused_where_it_begins) {
  EXPECT_NE(refusal("{\"a\":" + std::string(1'000'000, '[')), "");
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
  EXPECT_NE(refusal(deep), "");
}

TEST(safetensors_header, a_name_is_shown_without_its_control_characters) {
  const auto said = refusal(R"({"a\u001b[31m":{"dtype":"?"}})");
  EXPECT_EQ(said.find('\x1b'), std::string::npos) << said;
}

TEST(safetensors_header, every_cut_of_a_head_is_refused) {
  const auto whole = R"({"__metadata__":{"k":"v"},)" + tensor("a", "F32", "[2]", "[0,8]") + "}";
  ASSERT_EQ(refusal(whole), "");
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_NE(refusal(whole.substr(0, length)), "") << length;
}

} // namespace
} // namespace dlrun::weights
