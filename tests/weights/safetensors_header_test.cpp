#include "weights/safetensors_header.hpp"

#include <fmt/format.h>
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
                           R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})"})
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

TEST(safetensors_header, every_dtype_of_the_format_has_its_size) {
  const std::pair<const char*, std::uint64_t> sixteen_take[] = {
      {"BOOL", 16},        {"U8", 16},         {"I8", 16},  {"F8_E5M2", 16}, {"F8_E4M3", 16},
      {"F8_E8M0", 16},     {"I16", 32},        {"U16", 32}, {"F16", 32},     {"BF16", 32},
      {"I32", 64},         {"U32", 64},        {"F32", 64}, {"C64", 128},    {"F64", 128},
      {"I64", 128},        {"U64", 128},       {"F4", 8},   {"F6_E2M3", 12}, {"F6_E3M2", 12},
      {"F8_E4M3FNUZ", 16}, {"F8_E5M2FNUZ", 16}};
  for (const auto& [dtype, bytes] : sixteen_take) {
    const auto of = [&, dtype = dtype](std::uint64_t size) {
      return "{" + tensor("a", dtype, "[16]", fmt::format("[0,{}]", size)) + "}";
    };
    EXPECT_EQ(refusal(of(bytes), bytes), "") << dtype;
    EXPECT_NE(refusal(of(bytes + 1), bytes + 1), "") << dtype;
  }
  EXPECT_NE(refusal("{" + tensor("a", "F4", "[3]", "[0,2]") + "}", 2), "") << "half a byte is left";
  EXPECT_NE(refusal("{" + tensor("a", "F6_E2M3", "[3]", "[0,3]") + "}", 3), "");
}

/// A model that does not use it need not know how large its elements are.
TEST(safetensors_header, a_dtype_of_a_later_version_is_passed_over_by_its_place) {
  const auto of = [](const std::string& offsets) {
    return "{" + tensor("a", "F2_E1M0", "[16]", offsets) + "," + tensor("b", "F32", "[1]", "[4,8]") + "}";
  };
  EXPECT_EQ(refusal(of("[0,4]")), "");
  EXPECT_THAT(refusal(of("[0,3]")), HasSubstr("leave a gap"));
  EXPECT_THAT(refusal(of("[0,5]")), HasSubstr("overlap"));
  for (const auto* const text : {"", "f32", "F 32", "4F", "?", "ABCDEFGHABCDEFGHABCDEFGHABCDEFGHI"})
    EXPECT_THAT(refusal("{" + tensor("a", text, "[2]", "[0,8]") + "}"), HasSubstr("unknown dtype")) << text;
}

/// The format's own library passes over them.
TEST(safetensors_header, further_keys_of_a_tensor_are_passed_over_whatever_they_hold) {
  const auto with = [](const std::string& value) {
    return R"({"a":{"dtype":"F32","more":)" + value + R"(,"shape":[2],"data_offsets":[0,8]}})";
  };
  for (const auto* const value : {"1", "-1", "1.5", "true", "null", R"("x")", "[]", "{}", "[1,[2,{}],{}]",
                                  R"({"dtype":"F64","shape":[1],"x":{"y":[]}})"})
    EXPECT_EQ(refusal(with(value)), "") << value;
  for (const auto* const value : {"", "[", "[1}", "{1:2}"}) EXPECT_NE(refusal(with(value)), "") << value;
  EXPECT_THAT(refusal(with(std::string(33, '[') + std::string(33, ']'))), HasSubstr("nests deeper"));
  EXPECT_EQ(refusal(R"({"__metadata__":null})", 0), "");
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
