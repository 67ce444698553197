// Words of commands as a shell reads them back.
#include "base/shell_word.hpp"

#include <array>
#include <cstdio>
#include <gtest/gtest.h>

namespace dlrun::base {
namespace {

/// What a command is given that has this word.
std::string read_back(const std::string& word) {
  const auto command = "printf %s " + word;
  auto* const pipe = ::popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  if (pipe == nullptr) return "";
  std::array<char, 256> text{};
  const auto size = std::fread(text.data(), 1, text.size(), pipe);
  EXPECT_EQ(::pclose(pipe), 0);
  return {text.data(), size};
}

TEST(shell_word, is_what_a_shell_reads_back) {
  for (const auto* text : {"runs/my-job", "/data/run 7", "läufe/größe 1", "a'b", "a\"b", "$HOME", "`id`",
                           "a\\b", "a;b", "*", "~", "#x", ""})
    EXPECT_EQ(read_back(shell_word(text)), text);
}

TEST(shell_word, leaves_what_needs_no_quotes_as_it_is) {
  for (const auto* text : {"runs/fashion-mnist-cnn", "/a/b_c/d.e@f%g+h=i:j,k", "läufe"})
    EXPECT_EQ(shell_word(text), text);
}

} // namespace
} // namespace dlrun::base
