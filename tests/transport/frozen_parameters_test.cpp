#include "transport/frozen_parameters.hpp"

#include "tests/transport/second_mapping.hpp"

#include <algorithm>
#include <gtest/gtest.h>

namespace dlrun::transport {
namespace {

constexpr timeline_id timeline{2};
constexpr version_id version{40};

TEST(frozen_parameters, are_read_as_they_were_sealed) {
  auto writer = frozen_parameters_writer::create(7).value();
  std::ranges::fill(writer.values(), 1.5F);
  writer.seal_as(timeline, version);
  const auto reader = other_side(writer.shared());
  EXPECT_EQ(reader.size(), frozen_parameters_bytes(7));
  const auto values = frozen_parameters(reader, 7, timeline, version);
  ASSERT_TRUE(values) << values.error().message;
  EXPECT_EQ(std::vector<float>(values->begin(), values->end()), std::vector<float>(7, 1.5F));
}

TEST(frozen_parameters, of_another_version_timeline_or_size_are_refused) {
  auto writer = frozen_parameters_writer::create(7).value();
  EXPECT_EQ(frozen_parameters(writer.shared(), 7, timeline, version).error().code, error_code::protocol)
      << "not sealed";
  writer.seal_as(timeline, version);
  for (const auto& refused : {frozen_parameters(writer.shared(), 7, timeline, {41}),
                              frozen_parameters(writer.shared(), 7, {1}, version),
                              frozen_parameters(writer.shared(), 8, timeline, version),
                              frozen_parameters(writer.shared(), SIZE_MAX / 2, timeline, version)}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, error_code::protocol);
  }
}

TEST(frozen_parameters, need_a_size_that_can_be) {
  EXPECT_EQ(frozen_parameters_writer::create(0).error().code, error_code::limit_exceeded);
  EXPECT_EQ(frozen_parameters_writer::create(SIZE_MAX / 8).error().code, error_code::limit_exceeded);
}

} // namespace
} // namespace dlrun::transport
