/// Words of commands that messages name.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace dlrun::base {

/// `text` as a POSIX shell reads it back as one word: as it is, if it has letters, digits, bytes
/// beyond ASCII and `_./@%+=:,-` alone, otherwise in double quotes. (Messages have single ones
/// around commands.)
inline std::string shell_word(std::string_view text) {
  const auto is_plain = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c >= 0x80 ||
           std::string_view{"_./@%+=:,-"}.find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, is_plain)) return std::string{text};
  std::string word{'"'};
  for (const char c : text) {
    if (c == '"' || c == '$' || c == '`' || c == '\\') word += '\\';
    word += c;
  }
  return word + '"';
}

} // namespace dlrun::base
