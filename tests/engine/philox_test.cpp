#include <dlrun/random.hpp>

#include <gtest/gtest.h>
#include <set>

namespace dlrun::engine {
namespace {

using counter = philox4x32::counter;

// The three vectors of the Random123 distribution (tests/kat_vectors, philox4x32 10).
TEST(philox, gives_the_known_answers_of_its_authors) {
  EXPECT_EQ(philox4x32::generate({0, 0, 0, 0}, {0, 0}),
            (counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32::generate({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32::generate({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(philox, streams_with_different_names_differ) {
  std::set<counter> seen;
  std::size_t streams = 0;
  for (std::uint64_t seed : {0ULL, 1ULL, 1ULL << 32})
    for (auto purpose : {random_purpose::initialiser, random_purpose::dropout})
      for (std::uint64_t a : {0ULL, 1ULL, 1ULL << 32})
        for (std::uint32_t b : {0U, 1U})
          for (std::uint32_t c : {0U, 1U}) {
            seen.insert(random_stream(seed, purpose, a, b, c).words(0));
            ++streams;
          }
  EXPECT_EQ(seen.size(), streams);
}

TEST(philox, a_stream_is_read_in_any_order) {
  const random_stream first(9, random_purpose::dropout, 1, 2, 3), second(9, random_purpose::dropout, 1, 2, 3);
  const auto late = first.words(1ULL << 40);
  (void)second.words(0);
  EXPECT_EQ(second.words(1ULL << 40), late);
  EXPECT_NE(second.words(0), late);
}

TEST(philox, uniform_numbers_lie_in_the_half_open_unit_interval) {
  EXPECT_EQ(random_stream::uniform(0), 0.0F);
  EXPECT_EQ(random_stream::uniform(0x80000000), 0.5F);
  EXPECT_LT(random_stream::uniform(0xffffffff), 1.0F);
}

} // namespace
} // namespace dlrun::engine
