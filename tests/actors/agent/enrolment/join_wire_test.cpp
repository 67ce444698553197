#include "actors/agent/enrolment/join_wire.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::agent {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

join_token some_token() {
  return {security::secret_text{std::string(join_secret_bytes, '\xa7')}, std::string(32, '\x05')};
}

TEST(join_wire, reads_the_line_that_it_wrote) {
  const auto message = written_message(join_word, "0.2.0", "abc\ndef");
  EXPECT_EQ(message, "dlrun-join 0.2.0 7\nabc\ndef");
  const auto head = parse_join_head("dlrun-join 0.2.0 7");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->word, join_word);
  EXPECT_EQ(head->version, "0.2.0");
  EXPECT_EQ(head->bytes, 7U);
}

TEST(join_wire, takes_no_other_line) {
  for (const auto* line : {"", " ", "dlrun-join", "dlrun-join 0.2.0", "dlrun-join 0.2.0 ",
                           "dlrun-join 0.2.0 -1", "dlrun-join 0.2.0 7 ", "dlrun-join 0.2.0 7x",
                           "dlrun-join  7", " 0.2.0 7", "dlrun-join 0.2.0 99999999999999999999999"})
    EXPECT_FALSE(parse_join_head(line)) << line;
}

TEST(join_wire, a_token_is_one_line_of_plain_letters_and_comes_back_with_space_around_it) {
  const auto text = to_text(some_token()).reveal();
  EXPECT_THAT(text, StartsWith("dlrun-token-1:"));
  EXPECT_EQ(text.find_first_of(" \n"), std::string::npos);
  const auto read = parse_token("\n " + text + " \r\n");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->secret.reveal(), some_token().secret.reveal());
  EXPECT_EQ(read->pin, some_token().pin);
}

TEST(join_wire, refuses_what_is_no_token_and_says_where_one_is_had) {
  const auto text = to_text(some_token()).reveal();
  for (const auto& wrong : {std::string{}, std::string{"\n"}, text.substr(1), text.substr(0, text.size() - 4),
                            text + text, "dlrun-token-2:" + text.substr(14)}) {
    const auto read = parse_token(wrong);
    ASSERT_FALSE(read) << wrong;
    EXPECT_EQ(read.error().code, error_code::bad_usage);
    EXPECT_THAT(read.error().message, HasSubstr("dlrun token"));
    EXPECT_THAT(read.error().message, testing::Not(HasSubstr(text.substr(14, 20))));
  }
}

} // namespace
} // namespace dlrun::agent
