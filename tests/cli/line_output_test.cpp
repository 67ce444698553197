#include "cli/line_output.hpp"

#include "cli/secret_output.hpp"
#include "cli/standard_streams.hpp"
#include "tests/actors/full_disk.hpp"
#include "tests/data/files.hpp"
#include "tests/persistence/damage.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::cli {
namespace {

using testing::HasSubstr;

class line_output_test : public testing::Test {
protected:
  std::ptrdiff_t files() const {
    return std::distance(std::filesystem::directory_iterator(folder.path()), {});
  }

  test::temporary_folder folder;
  std::filesystem::path file = folder.path() / "out.csv";
};

TEST_F(line_output_test, the_file_is_there_when_it_is_finished_and_not_before) {
  {
    auto out = line_output::open(file.string()).value();
    ASSERT_TRUE(out.write("a,b\n"));
    ASSERT_TRUE(out.write("1,2\n"));
    EXPECT_FALSE(std::filesystem::exists(file));
    ASSERT_TRUE(out.finish());
  }
  EXPECT_EQ(test::content_of(file), "a,b\n1,2\n");
  EXPECT_EQ(files(), 1);
}

TEST_F(line_output_test, an_older_file_stays_until_then) {
  folder.write("out.csv", {'o', 'l', 'd'});
  {
    auto out = line_output::open(file.string()).value();
    ASSERT_TRUE(out.write("new"));
  }
  EXPECT_EQ(test::content_of(file), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(line_output_test, a_place_that_cannot_be_written_is_an_error_that_names_it) {
  const auto out = line_output::open((folder.path() / "no" / "out.csv").string());
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, error_code::bad_usage);
  EXPECT_THAT(out.error().message, HasSubstr("no/out.csv"));
}

/// As in the log of a role, after a power cut.
TEST(standard_streams, a_text_with_a_byte_of_value_0_is_printed_to_its_end) {
  const test::temporary_folder folder;
  const auto file = folder.path() / "out";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> to{std::fopen(file.c_str(), "w"), &std::fclose};
  const std::string text("one\0two\n", 8);
  put(to.get(), text);
  flush(to.get());
  EXPECT_EQ(test::content_of(file), text);
}

TEST(secret_output, what_there_was_no_room_for_is_not_in_the_way_of_the_next_try) {
  const test::temporary_folder folder;
  const auto file = (folder.path() / "token").string();
  const test::full_disk full{4};
  const auto written = write_secret(file, "a secret", "the token");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, error_code::system);
  EXPECT_FALSE(std::filesystem::exists(file));
}

} // namespace
} // namespace dlrun::cli
