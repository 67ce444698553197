#include "actors/coordinator/crash_book.hpp"

#include <gmock/gmock.h>

namespace dlrun::coordinator {
namespace {

using protocol::parked_slot;
using protocol::slot_progress;
using protocol::suspect_slot;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class crash_book_test : public ::testing::Test {
protected:
  crash_book book;
  std::uint64_t start = 0;

  std::optional<parked_slot> die(slot_progress where) {
    return book.add(protocol::worker_role({0}), {++start}, where);
  }
};

constexpr slot_progress in_slot{{{4}, {1}}};

TEST_F(crash_book_test, one_death_is_chance_and_the_second_of_another_start_makes_a_suspect) {
  EXPECT_EQ(die(in_slot), std::nullopt);
  EXPECT_EQ(book.add(protocol::worker_role({0}), {start}, in_slot), std::nullopt);
  EXPECT_THAT(book.suspects(), IsEmpty()) << "the same start, told again";
  die({{{4}, {2}}});
  EXPECT_THAT(book.suspects(), IsEmpty()) << "another slot";
  EXPECT_EQ(book.add(protocol::worker_role({1}), {start}, in_slot), std::nullopt);
  EXPECT_THAT(book.suspects(), ElementsAre(suspect_slot{{4}, {1}, false}))
      << "another worker under that number";
}

TEST_F(crash_book_test, a_death_at_a_record_names_it_once) {
  EXPECT_EQ(die({{{4}, {1}, 9}, true}), (parked_slot{{4}, {1}, 9}));
  EXPECT_EQ(die({{{4}, {1}, 9}, true}), std::nullopt) << "a second worker had tried it at the same time";
  EXPECT_THAT(book.poisoned(), ElementsAre(parked_slot{{4}, {1}, 9}));
}

TEST_F(crash_book_test, a_slot_that_kills_though_no_record_of_it_does_has_some_that_kill_together) {
  die(in_slot);
  die(in_slot);
  die({{{4}, {1}}, true});
  EXPECT_THAT(book.suspects(), ElementsAre(suspect_slot{{4}, {1}, true}));
}

TEST_F(crash_book_test, what_is_left_out_and_what_is_named_is_bounded) {
  for (std::uint32_t record = 0; record < protocol::parked_by_death_max; ++record)
    EXPECT_TRUE(die({{{4}, {1}, record}, true}));
  EXPECT_FALSE(die({{{4}, {1}, 1000}, true}));
  for (std::uint64_t step = 0; step < 2 * protocol::suspect_slots_max; ++step) {
    die({{{step}, {0}}});
    die({{{step}, {0}}});
  }
  EXPECT_EQ(book.suspects().size(), protocol::suspect_slots_max);
  EXPECT_EQ(book.suspects().back().step.value, 2 * protocol::suspect_slots_max - 1);
}

} // namespace
} // namespace dlrun::coordinator
