#include "actors/agent/process/last_words.hpp"

#include <gtest/gtest.h>

namespace dlrun::agent {
namespace {

TEST(last_words, are_read_as_they_were_left) {
  const auto fd = make_last_words();
  ASSERT_TRUE(fd) << fd.error().message;
  EXPECT_EQ(read_last_words(fd->get()), "");
  leave_last_words(fd->get(), "the disk is gone");
  EXPECT_EQ(read_last_words(fd->get()), "the disk is gone");
  EXPECT_EQ(read_last_words(fd->get()), "the disk is gone") << "reading changes nothing";
}

TEST(last_words, are_bounded) {
  const auto fd = make_last_words();
  ASSERT_TRUE(fd);
  leave_last_words(fd->get(), std::string(last_words_bytes_max + 10, 'x'));
  EXPECT_EQ(read_last_words(fd->get()), std::string(last_words_bytes_max, 'x'));
}

TEST(last_words, that_nobody_listens_to_do_no_harm) {
  leave_last_words(-1, "why");
  EXPECT_EQ(read_last_words(-1), "");
}

} // namespace
} // namespace dlrun::agent
