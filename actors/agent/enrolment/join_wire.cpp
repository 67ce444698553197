#include "actors/agent/enrolment/join_wire.hpp"

#include "base/base64.hpp"

#include <charconv>
#include <fmt/format.h>

namespace dlrun::agent {
namespace {

constexpr std::string_view token_head = "dlrun-token-1:";
constexpr std::size_t pin_bytes = 32;

} // namespace

std::string written_message(std::string_view word, std::string_view version, std::string_view message) {
  return fmt::format("{} {} {}\n{}", word, version, message.size(), message);
}

std::optional<join_head> parse_join_head(std::string_view line) {
  const auto first = line.find(' ');
  const auto second = first == line.npos ? first : line.find(' ', first + 1);
  if (second == line.npos) return std::nullopt;
  join_head head{std::string{line.substr(0, first)}, std::string{line.substr(first + 1, second - first - 1)}};
  const auto number = line.substr(second + 1);
  const auto* const last = number.data() + number.size();
  const auto [end, failed] = std::from_chars(number.data(), last, head.bytes);
  if (failed != std::errc{} || end != last || head.word.empty() || head.version.empty()) return std::nullopt;
  return head;
}

security::secret_text to_text(const join_token& token) {
  const security::secret_text both{token.secret.reveal() + token.pin};
  return security::secret_text{std::string{token_head} + base::to_base64(both.reveal())};
}

result<join_token> parse_token(std::string_view text) {
  constexpr std::string_view space = " \t\r\n";
  const auto first = text.find_first_not_of(space);
  if (first != text.npos) text = text.substr(first, text.find_last_not_of(space) + 1 - first);
  if (text.starts_with(token_head))
    if (const auto both = base::from_base64(text.substr(token_head.size()));
        both && both->size() == join_secret_bytes + pin_bytes)
      return join_token{security::secret_text{both->substr(0, join_secret_bytes)},
                        both->substr(join_secret_bytes)};
  return fail(
      error_code::bad_usage,
      "there is no token of a job in it: it is one line, as 'dlrun token RUN' prints it where the root "
      "runs");
}

} // namespace dlrun::agent
