#include "cli/completion_script.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

class completion_script_test : public testing::Test {
protected:
  completion_script_test() {
    auto* train = app.add_subcommand("train", "Train a model, it's what it is for");
    train->add_option("FILE", text, "Job file");
    train->add_option("--run-dir", text, "Folder");
    train->add_flag("--json", flag, "JSON");
    app.add_subcommand("role", "For itself")->group("");
  }
  std::string script(const std::string& shell) const { return completion_script(app, shell).value(); }

  CLI::App app{"", "dlrun"};
  std::string text;
  bool flag = false;
};

TEST_F(completion_script_test, bash_knows_verbs_and_their_options_but_nothing_hidden) {
  EXPECT_THAT(script("bash"), HasSubstr("words=\"train \""));
  EXPECT_THAT(script("bash"), HasSubstr("train) words=\"--help --run-dir --json \""));
  EXPECT_THAT(script("bash"), Not(HasSubstr("role")));
}

TEST_F(completion_script_test, bash_understands_its_script) {
  const auto run = "bash -c '" + script("bash") +
                   "COMP_WORDS=(dlrun train --r); COMP_CWORD=2; _dlrun; [[ ${COMPREPLY[*]} == --run-dir ]]'";
  EXPECT_EQ(std::system(run.c_str()), 0);
}

TEST_F(completion_script_test, fish_gets_descriptions_and_knows_which_options_take_a_value) {
  EXPECT_THAT(script("fish"), HasSubstr("-a train -d 'Train a model, it\\'s what it is for'"));
  EXPECT_THAT(script("fish"), HasSubstr("-l run-dir -r -d 'Folder'"));
  EXPECT_THAT(script("fish"), HasSubstr("-l json -d 'JSON'"));
}

TEST_F(completion_script_test, another_shell_is_refused) {
  EXPECT_THAT(completion_script(app, "csh").error().message, HasSubstr("bash, zsh and fish"));
}

} // namespace
} // namespace dlrun::cli
