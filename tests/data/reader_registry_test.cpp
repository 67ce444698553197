#include "data/reader_registry.hpp"

#include "tests/data/decoded_job.hpp"

#include <gmock/gmock.h>

namespace dlrun::data {
namespace {

using testing::HasSubstr;
using floats = std::vector<float>;

/// A reader as a user would write it: records that count up, `options.count` of them.
class counting_reader final : public reader {
public:
  result<record_layout> open(const reader_request& request) override {
    request_ = request;
    const auto count = request.options.find("count");
    if (count == request.options.end())
      return fail(error_code::bad_data, "counting: options.count is missing");
    return record_layout{
        .records = std::stoull(count->second), .shape = {1, 2}, .bytes = false, .target_values = 2};
  }
  result<void> read(std::uint64_t first, std::uint64_t count, const record_buffers& out) override {
    for (std::uint64_t i = 0; i < count; ++i) {
      if (first + i == 70'000) return fail(error_code::bad_data, "counting: record 70000 is damaged");
      out.floats[2 * i] = static_cast<float>(first + i);
      out.floats[2 * i + 1] = 0.5F;
      if (!out.classes.empty()) out.classes[i] = request_.labels.empty() ? 0 : -1;
      if (!out.values.empty()) out.values[2 * i] = out.values[2 * i + 1] = static_cast<float>(first);
    }
    return {};
  }

private:
  reader_request request_;
};

/// Registered for the whole program; each test its own name.
std::string registered(const std::string& name) {
  EXPECT_TRUE(register_reader(name, [] { return std::make_unique<counting_reader>(); }));
  return name;
}

TEST(reader_registry, a_reader_of_ones_own_is_a_format_like_any_other) {
  test::decoded_job job;
  const auto data =
      job.open("{train: {format: " + registered("counting") +
               ", records: anything, options: {count: 3, other: text}, normalize: {mean: 1, std: 2}}}");
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ((*data)->record_shape(), (std::vector<std::uint32_t>{1, 2}));
  const auto all = test::read_all(**data);
  EXPECT_EQ(all.records, (floats{-0.5, -0.25, 0, -0.25, 0.5, -0.25}));
  EXPECT_EQ(all.classes, (std::vector<std::int32_t>{0, 0, 0}));
}

TEST(reader_registry, it_is_asked_for_consecutive_pieces) {
  test::decoded_job job;
  const std::string format = registered("counting-many");
  const auto data = job.open("{train: {format: " + format + ", records: x, options: {count: 60000}}}",
                             data_part::training, target_kind::values);
  ASSERT_TRUE(data) << data.error().message;
  const auto all = test::read_all(**data);
  for (std::size_t i = 0; i < 60'000; ++i) ASSERT_EQ(all.records[2 * i], static_cast<float>(i));
  EXPECT_EQ(job.refusal("{train: {format: " + format + ", records: x, options: {count: 80000}}}"),
            "counting: record 70000 is damaged");
}

TEST(reader_registry, what_it_returns_is_checked) {
  test::decoded_job job;
  const std::string format = registered("counting-badly");
  const auto refusal = [&](const std::string& keys) {
    return job.refusal("{train: {format: " + format + ", " + keys + "}}");
  };
  EXPECT_EQ(refusal("records: x"), "counting: options.count is missing");
  EXPECT_THAT(refusal("records: x, options: {count: 0}"), HasSubstr("there are no records in it"));
  EXPECT_THAT(refusal("records: x, options: {count: 99999999999999999}"), HasSubstr("more than 2^46 values"));
  EXPECT_THAT(refusal("records: x, options: {count: 10000000000000}"),
              HasSubstr("set data.memory_limit higher"));
  EXPECT_THAT(refusal("records: x, labels: y, options: {count: 2}"), HasSubstr("y: record 0 has label -1"));
}

TEST(reader_registry, names_are_unique_and_unknown_ones_are_told_with_all_there_are) {
  const std::string name = registered("counting-twice");
  const auto make = [] { return std::make_unique<counting_reader>(); };
  for (const auto& taken : {name, std::string("csv"), std::string("idx")})
    EXPECT_THAT(register_reader(taken, make).error().message,
                HasSubstr("there is a reader '" + taken + "' already"));
  EXPECT_FALSE(register_reader("no name", make));
  EXPECT_FALSE(register_reader("empty", {}));
  test::decoded_job job;
  EXPECT_THAT(job.refusal("{train: {format: idxx, records: x}}"),
              HasSubstr("data.train.format: no reader is called \"idxx\"; there are idx, csv, image_folder, "
                        "npy, tfrecord"));
}

} // namespace
} // namespace dlrun::data
