#include "observability/event_folder.hpp"

#include "observability/scalar_event.hpp"
#include "tests/data/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::observability {
namespace {

using testing::ElementsAre;

std::string point(std::uint64_t step, double value, const std::string& tag = "train/loss") {
  const std::vector<scalar> scalars{{tag, value}};
  return scalars_event(step, 1, scalars);
}

class event_folder_test : public testing::Test {
protected:
  void write(const std::string& name, const std::string& records) const {
    folder.write(name, test::text_bytes(file_head(1) + records));
  }
  std::vector<std::uint64_t> steps(const std::string& tag = "train/loss") const {
    std::vector<std::uint64_t> all;
    auto read = read_event_folder(folder.path());
    for (const auto& one : read[tag]) all.push_back(one.step);
    return all;
  }

  test::temporary_folder folder;
};

TEST_F(event_folder_test, there_is_nothing_in_a_folder_that_is_not_there) {
  EXPECT_TRUE(read_event_folder(folder.path() / "nowhere").empty());
}

TEST_F(event_folder_test, files_are_read_by_name_and_others_are_left_alone) {
  write("events.out.tfevents.0000000020.b", point(3, 0.5));
  write("events.out.tfevents.0000000010.c", point(1, 1.5) + point(2, 1.0, "other"));
  folder.write("notes.txt", test::text_bytes("no events"));
  EXPECT_THAT(steps(), ElementsAre(1, 3));
  EXPECT_THAT(steps("other"), ElementsAre(2));
  EXPECT_THAT(read_event_folder(folder.path())["train/loss"],
              ElementsAre(scalar_point{1, 1, 1.5F}, scalar_point{3, 1, 0.5F}));
}

TEST_F(event_folder_test, a_restart_voids_its_step_and_what_is_beyond_in_all_files_before) {
  write("events.out.tfevents.1", point(1, 1) + point(5, 1) + point(5, 1, "other"));
  write("events.out.tfevents.2", restart_event(5, 1) + point(5, 2) + point(6, 2) + restart_event(6, 1));
  EXPECT_THAT(read_event_folder(folder.path())["train/loss"],
              ElementsAre(scalar_point{1, 1, 1}, scalar_point{5, 1, 2}));
  EXPECT_THAT(steps("other"), ElementsAre());
}

TEST_F(event_folder_test, a_file_ends_where_it_is_cut_off_and_the_next_goes_on) {
  const auto whole = point(1, 1) + point(2, 1);
  for (std::size_t length = point(1, 1).size(); length < whole.size(); ++length) {
    write("events.out.tfevents.1", whole.substr(0, length));
    write("events.out.tfevents.2", point(9, 1));
    EXPECT_THAT(steps(), ElementsAre(1, 9)) << length;
  }
}

TEST_F(event_folder_test, damage_ends_a_file_and_gives_no_other_numbers) {
  const auto whole = point(1, 1) + point(2, 1);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    auto broken = whole;
    broken[at] = static_cast<char>(broken[at] ^ 0x10);
    write("events.out.tfevents.1", broken);
    EXPECT_LE(steps().size(), 1U) << at;
  }
}

} // namespace
} // namespace dlrun::observability
