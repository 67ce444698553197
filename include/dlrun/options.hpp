/// Arguments that a job file gives to a layer, metric or reader of the program's own.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <dlrun/error.hpp>
#include <fmt/format.h>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

namespace dlrun {

/// `options:` of a job file by name, each value as it stands there: {"beta", "1.5"}.
using option_map = std::map<std::string, std::string>;

/// Refuses options that nobody reads: call it first, with the names of all options that there are.
/// Errors call the owner of the options `what`, e.g. "layer 'swish1'". @returns bad_spec naming the
/// unknown option and all known ones.
inline result<void> check_options(const option_map& options, std::initializer_list<std::string_view> known,
                                  std::string_view what) {
  for (const auto& [name, value] : options) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string all;
    for (const auto one : known) all.append(all.empty() ? "" : ", ").append(one);
    return fail(error_code::bad_spec,
                known.size() == 0
                    ? fmt::format("{}: has no options, but '{}' is given", what, name)
                    : fmt::format("{}: there is no option '{}'; there are {}", what, name, all));
  }
  return {};
}

/// The option `name` as a number: double, float, or a signed or unsigned integer; `fallback` if the
/// job file does not give the option. @returns bad_spec naming the option and its value, when the
/// value is not such a number as a whole, or is written as "010", which is eight for some readers
/// of YAML and ten for others.
template <class Number>
result<Number> number_option(const option_map& options, const std::string& name, Number fallback,
                             std::string_view what) {
  const auto found = options.find(name);
  if (found == options.end()) return fallback;
  const std::string& text = found->second;
  Number value{};
  const auto [end, why] = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto digits = std::string_view{text}.substr(text.starts_with('-') ? 1 : 0);
  const bool is_padded = digits.size() > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9';
  if (why == std::errc{} && end == text.data() + text.size() && !is_padded) return value;
  return fail(error_code::bad_spec,
              fmt::format("{}: option '{}' is '{}', which is no number that it can be", what, name, text));
}

} // namespace dlrun
