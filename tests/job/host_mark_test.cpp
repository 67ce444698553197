#include "job/host_mark.hpp"

#include "job/run_layout.hpp"
#include "tests/data/files.hpp"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::job {
namespace {

using testing::HasSubstr;

class host_mark_test : public testing::Test {
protected:
  void write(const std::string& text) const {
    std::ofstream(folder.path() / run_layout::host_mark, std::ios::binary) << text;
  }

  test::temporary_folder folder;
  const host_mark mark{0xab, "beta", "alpha", "/runs/iris"};
};

TEST_F(host_mark_test, begins_with_the_number_of_the_run_and_says_where_the_root_is) {
  write(to_text(mark));
  const auto read = read_host_mark(folder.path());
  ASSERT_TRUE(read);
  EXPECT_TRUE(to_text(mark).starts_with("00000000000000ab\n"));
  EXPECT_EQ(read->run, 0xabU);
  EXPECT_EQ(read->host, "beta");
  EXPECT_EQ(read->root, "alpha");
  EXPECT_EQ(read->root_dir, "/runs/iris");
  const auto told = tell_host_folder(folder.path());
  for (const auto* word : {"folder of host beta", "root is on host alpha", "'/runs/iris'"})
    EXPECT_THAT(told, HasSubstr(word));
}

TEST_F(host_mark_test, of_an_earlier_version_has_the_number_alone) {
  write("00000000000000ab\n");
  const auto read = read_host_mark(folder.path());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->run, 0xabU);
  EXPECT_EQ(read->host, "");
  EXPECT_THAT(tell_host_folder(folder.path()), HasSubstr("call this command on the host of the root"));
}

TEST_F(host_mark_test, counts_by_its_first_line_whatever_became_of_the_rest) {
  for (const auto* rest : {"{\"host\":", "[]\n", "{\"host\":7}\n", "\xff\n"}) {
    write(std::string{"00000000000000ab\n"} + rest);
    const auto read = read_host_mark(folder.path());
    ASSERT_TRUE(read) << rest;
    EXPECT_EQ(read->run, 0xabU) << rest;
    EXPECT_EQ(read->host, "") << rest;
  }
}

TEST_F(host_mark_test, is_none_where_that_is_torn_or_no_number) {
  EXPECT_FALSE(read_host_mark(folder.path()));
  for (const auto* text : {"", "00000000000000ab", "0000", "00000000000000xy\n", "seventeen letters"}) {
    write(text);
    EXPECT_FALSE(read_host_mark(folder.path())) << text;
    EXPECT_EQ(tell_host_folder(folder.path()), "") << text;
  }
}

TEST_F(host_mark_test, is_shown_without_what_is_no_text) {
  write(to_text({0xab, "be\x1bta", "alpha", "/runs/\xff"}));
  EXPECT_THAT(tell_host_folder(folder.path()), HasSubstr("be\\x1bta"));
}

} // namespace
} // namespace dlrun::job
