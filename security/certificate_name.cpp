#include "security/certificate_name.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

namespace dlrun::security {
namespace {

constexpr std::size_t word_characters_max = 64;
constexpr std::size_t host_characters_max = 253; // of a DNS name

bool is_allowed(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '-';
}

result<void> check_word(std::string_view field, std::string_view text, std::size_t most) {
  if (text.empty() || text.size() > most)
    return fail(error_code::bad_usage,
                fmt::format("the {} in a certificate's name has 1 to {} characters, not {}", field, most,
                            text.size()));
  if (!std::ranges::all_of(text, is_allowed))
    return fail(
        error_code::bad_usage,
        fmt::format("the {} in a certificate's name has letters, digits, '.', '_' and '-' only", field));
  return {};
}

/// Cuts `text` after the next '/', or takes all of it. @returns what was before it.
std::string_view take_field(std::string_view& text) {
  const auto end = std::min(text.find('/'), text.size());
  const auto field = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return field;
}

} // namespace

std::string to_uri(const certificate_name& name) {
  return fmt::format("dlrun:job/{}/role/{}/{}/host/{}", name.job, name.role, name.index, name.host);
}

std::string describe(const certificate_name& name) {
  return fmt::format("{} {} on host {} of job {}", name.role, name.index, name.host, name.job);
}

result<void> check_name(const certificate_name& name) {
  if (auto ok = check_word("job", name.job, word_characters_max); !ok) return ok;
  if (auto ok = check_word("role", name.role, word_characters_max); !ok) return ok;
  return check_word("host", name.host, host_characters_max);
}

/// What was read is written again and compared: that is what makes it strict.
result<certificate_name> parse_uri(std::string_view uri) {
  certificate_name name;
  auto rest = uri;
  take_field(rest);
  name.job = take_field(rest);
  take_field(rest);
  name.role = take_field(rest);
  const auto index = take_field(rest);
  std::from_chars(index.data(), index.data() + index.size(), name.index);
  take_field(rest);
  name.host = take_field(rest);
  if (!check_name(name) || to_uri(name) != uri)
    return fail(error_code::protocol,
                "its name is not of the form dlrun:job/<job>/role/<role>/<index>/host/<host>");
  return name;
}

} // namespace dlrun::security
