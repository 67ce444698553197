#include "actors/common/root_place.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

namespace dlrun::common {
namespace {

constexpr auto told = "dlrun-1f@10.0.0.1:4100";

/// As a role inherits it.
root_place adopted(const root_place& place) {
  auto made = root_place::open(base::unique_fd{::dup(place.fd())});
  EXPECT_TRUE(made.has_value());
  return std::move(*made);
}

TEST(root_place, is_where_it_was_told_until_the_root_moves) {
  auto place = root_place::create().value();
  const auto seen = adopted(place);
  EXPECT_EQ(seen.now(told), told);
  const auto before = seen.number();
  EXPECT_TRUE(place.move_to("10.0.0.9:5000"));
  EXPECT_EQ(seen.now(told), "dlrun-1f@10.0.0.9:4100");
  EXPECT_NE(seen.number(), before);
  EXPECT_FALSE(place.move_to("10.0.0.9:5001")); // the same number
  EXPECT_TRUE(place.move_to("10.0.0.1:5000"));
  EXPECT_EQ(seen.now(told), told);
}

TEST(root_place, does_not_move_to_what_is_no_number) {
  auto place = root_place::create().value();
  for (const auto* text : {"", "alpha", "alpha:1", "10.0.0.9", "10.0.0.9:x"})
    EXPECT_FALSE(place.move_to(text)) << text;
  EXPECT_EQ(place.now(told), told);
}

TEST(root_place, leaves_an_address_without_a_number_as_it_is) {
  auto place = root_place::create().value();
  EXPECT_TRUE(place.move_to("10.0.0.9:5000"));
  EXPECT_EQ(place.now("dlrun-1f"), "dlrun-1f");
}

TEST(root_place, is_none_in_another_descriptor) {
  const auto refused = root_place::open(base::unique_fd{::memfd_create("other", MFD_CLOEXEC)});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, error_code::bad_usage);
}

} // namespace
} // namespace dlrun::common
