#include "job/yaml_scalar.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace dlrun::job {

bool is_plain_scalar(const std::string& text) {
  const auto is_harmless = [](unsigned char c) {
    return (c < 0x80 && std::isalnum(c) != 0) || c == '_' || c == '.' || c == '/' || c == '-';
  };
  const bool begins_well =
      !text.empty() && (std::isalpha(static_cast<unsigned char>(text.front())) != 0 || text.front() == '/');
  constexpr std::array<std::string_view, 9> words{"null", "true", "false", "yes", "no",
                                                  "on",   "off",  "y",     "n"};
  std::string lower = text;
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return begins_well && std::ranges::all_of(text, is_harmless) &&
         std::ranges::find(words, lower) == words.end();
}

} // namespace dlrun::job
