#include "job/spec_reader.hpp"
#include "job/spec_writer.hpp"

#include <gtest/gtest.h>

namespace dlrun::job {
namespace {

TEST(examples, are_valid_and_round_trip) {
  std::size_t count = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::filesystem::path(DLRUN_SOURCE_DIR) / "examples")) {
    if (entry.path().extension() != ".yaml") continue;
    ++count;
    const auto spec = read_spec(entry.path());
    ASSERT_TRUE(spec) << spec.error().message;
    const auto again = parse_spec(write_spec(*spec), "x", "/");
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->SerializeAsString(), spec->SerializeAsString());
  }
  EXPECT_GE(count, 6U);
}

} // namespace
} // namespace dlrun::job
