#include "data/csv_classes.hpp"

#include "base/utf8.hpp"
#include "data/csv_hint.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace dlrun::data {
namespace {

tl::unexpected<error> no_class(std::string what) { return fail(error_code::bad_data, std::move(what)); }

/// A class number as a whole decimal number; nothing for any other text.
std::optional<std::int32_t> parse_class(std::string_view text) {
  std::int32_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = problem == std::errc{} && end == text.data() + text.size();
  if (!whole || value < 0 || value == std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return value;
}

/// "nan", "-inf", "Infinity": what a program writes where it has no number.
bool is_no_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc{} && end == text.data() + text.size() && !std::isfinite(value);
}

/// "-1", "99999999999": a number that no class has.
bool is_other_whole_number(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const bool has_digits_only = std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  return !text.empty() && has_digits_only;
}

} // namespace

csv_classes::csv_classes(const spec::CsvSpec& spec) {
  for (const auto& name : spec.classes()) names_.add(name);
}

result<void> csv_classes::learn(std::string_view text) {
  if (text.empty()) return no_class("the target is missing");
  const bool is_first = !std::exchange(has_learnt_, true);
  if (all_are_numbers_ && parse_class(text)) return {};
  // Whether it comes before or behind class numbers must make no difference.
  if (!parse_class(text) && is_other_whole_number(text))
    return no_class(fmt::format("\"{}\" is no class: classes have the numbers 0, 1, 2, ...; where such "
                                "numbers are names, list them: csv.classes",
                                base::printable(text)));
  // Names it is. Numbers among them, also those before the first name, are names like all others.
  if (all_are_numbers_ && !is_first)
    return no_class(
        fmt::format("\"{}\" is not a class number, as those of the lines before are; if the classes "
                    "have names, list them: csv.classes",
                    base::printable(text)));
  all_are_numbers_ = false;
  if (is_no_number(text))
    return no_class(
        fmt::format("\"{}\" is no class: is a target missing? If it is one, list all: csv.classes",
                    base::printable(text)));
  if (base::first_invalid_utf8(text))
    return no_class(fmt::format("\"{}\" is not UTF-8 text", base::printable(text)));
  names_.add(text);
  if (names_.size() <= vocabulary::entries_max) return {};
  return no_class(
      fmt::format("more than {} classes; is this the right column? For numbers, choose a loss that "
                  "takes values, such as mse",
                  vocabulary::entries_max));
}

std::size_t csv_classes::finish(spec::CsvSpec& spec) {
  names_.sort();
  for (const auto& name : names_.texts()) spec.add_classes(name);
  return names_.bytes();
}

result<std::int32_t> csv_classes::number_of(std::string_view text) const {
  if (text.empty()) return no_class("the target is missing");
  if (has_names()) {
    if (const auto known = names_.find(text)) return static_cast<std::int32_t>(*known);
    return no_class(
        fmt::format("\"{}\" is no class; {}", base::printable(text), way_out(text, names_.texts())));
  }
  if (const auto number = parse_class(text)) return *number;
  return no_class(
      fmt::format("\"{}\" is not a class number; those of the training data are", base::printable(text)));
}

} // namespace dlrun::data
