// dlrun token, asked of a root that the test plays.
#include "tests/cli/played_root.hpp"
#include "tests/persistence/damage.hpp"

#include <fstream>
#include <sys/stat.h>

namespace dlrun::cli {
namespace {

using testing::HasSubstr;

constexpr const char* token_answer = R"({"token":"dlrun-token-1:x","address":"10.0.0.1:7700"})";

class token_verb_test : public played_root_test {
protected:
  int token_into_file() { return ask(add_token, {"token", "--output", file.string()}); }

  test::temporary_folder elsewhere;
  std::filesystem::path file = elsewhere.path() / "token";
};

TEST_F(token_verb_test, what_the_root_makes_is_in_a_file_that_nobody_else_may_read) {
  start_root({"{}"}, token_answer);
  EXPECT_EQ(token_into_file(), 0);
  EXPECT_EQ(said, "");
  EXPECT_THAT(complaint, HasSubstr("dlrun agent --join 10.0.0.1:7700 --token-file FILE"));
  EXPECT_EQ(test::content_of(file), "dlrun-token-1:x\n");
  struct stat about {};
  ASSERT_EQ(::stat(file.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777U, 0600U);
}

TEST_F(token_verb_test, none_is_made_where_its_file_cannot_be) {
  start_root({"{}"}, token_answer);
  std::ofstream{file} << "somebody else's";
  EXPECT_EQ(token_into_file(), 2);
  EXPECT_THAT(complaint, HasSubstr("exists: remove it"));
  EXPECT_EQ(test::content_of(file), "somebody else's");
  file = elsewhere.path() / "none/token";
  EXPECT_EQ(token_into_file(), 2);
  EXPECT_THAT(complaint, HasSubstr("cannot write the token to"));
  EXPECT_EQ(asked, 0);
}

TEST_F(token_verb_test, no_file_is_left_where_the_root_makes_none) {
  for (const auto* answer :
       {R"({"error":"the list of hosts has no 'join:'","exit_code":2})", "{}", "what?"}) {
    start_root({"{}"}, answer);
    EXPECT_NE(token_into_file(), 0) << answer;
    EXPECT_FALSE(std::filesystem::exists(file)) << answer;
  }
  root.reset();
  EXPECT_EQ(token_into_file(), 2);
  EXPECT_THAT(complaint, HasSubstr("is not the folder of a running job"));
  EXPECT_FALSE(std::filesystem::exists(file));
}

} // namespace
} // namespace dlrun::cli
