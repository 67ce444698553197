#include "data/csv_columns.hpp"

#include "base/utf8.hpp"
#include "job/choices.hpp"
#include "job/field_rules.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <dlrun/check.hpp>
#include <fmt/format.h>

namespace dlrun::data {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

tl::unexpected<error> bad(std::string what) { return fail(error_code::bad_data, std::move(what)); }

} // namespace

void vocabulary::add(std::string_view text) {
  if (!numbers_.emplace(std::string(text), texts_.size()).second) return;
  texts_.emplace_back(text);
  bytes_ += text.size() + 4; // with quotes and a comma
}

void vocabulary::sort() {
  std::ranges::sort(texts_);
  for (std::size_t i = 0; i < texts_.size(); ++i) numbers_[texts_[i]] = i;
}

std::optional<std::size_t> vocabulary::find(std::string_view text) const {
  const auto found = numbers_.find(std::string(text));
  if (found == numbers_.end()) return std::nullopt;
  return found->second;
}

csv_column::csv_column(const spec::CsvColumn& spec, std::size_t place)
    : spec_(spec)
    , place_(place)
    , is_categorical_(job::type_of(spec) == job::column_type::categorical)
    , is_one_hot_(job::encoding_of(spec) == job::category_encoding::one_hot)
    , has_bucket_(job::unknown_of(spec) == job::unknown_word::bucket)
    , learns_vocabulary_(is_categorical_ && spec.vocabulary_size() == 0)
    , learns_statistics_(spec.standardize() && !spec.has_mean()) {
  for (const auto& word : spec.vocabulary()) words_.add(word);
}

std::size_t csv_column::width() const {
  if (!is_categorical_ || !is_one_hot_) return 1;
  return words_.size() + (has_bucket_ ? 1 : 0);
}

result<void> csv_column::check() const {
  if (is_categorical_ || !spec_.has_missing()) return {};
  const auto number = parse_cell(spec_.missing());
  if (number) return {};
  return fail(error_code::bad_spec,
              fmt::format("missing: {}; a number must stand for a missing one", number.error().message));
}

result<std::string_view> csv_column::text_of(std::string_view cell, bool quoted) const {
  if (!cell.empty() || (quoted && is_categorical_)) return cell;
  if (spec_.has_missing()) return std::string_view(spec_.missing());
  return bad("the cell is empty; write missing: VALUE at the column if that is as it should be");
}

result<void> csv_column::learn_word(std::string_view text) {
  if (words_.find(text)) return {};
  if (base::first_invalid_utf8(text))
    return bad(fmt::format("\"{}\" is not UTF-8 text", base::printable(text)));
  if (words_.size() >= vocabulary::entries_max)
    return bad(
        fmt::format("more than {} different texts; is this a category? If so, name them: vocabulary: [...]",
                    vocabulary::entries_max));
  words_.add(text);
  return {};
}

result<void> csv_column::learn_number(std::string_view text) {
  const auto number = parse_cell(text);
  if (!number) return tl::unexpected(number.error());
  statistics_.add(*number);
  return {};
}

void csv_column::finish_words(spec::CsvColumn& spec) {
  if (job::order_of(spec_) == job::vocabulary_order::sorted) words_.sort();
  spec.clear_vocabulary();
  for (const auto& word : words_.texts()) spec.add_vocabulary(word);
  learns_vocabulary_ = false;
}

result<void> csv_column::finish_numbers(spec::CsvColumn& spec) {
  const auto fits = [](const char* key, double value) {
    return job::within_bounds(job::rule_of(*spec::CsvColumn::descriptor()->FindFieldByName(key)), value);
  };
  const double mean = statistics_.mean(), std = statistics_.std();
  if (!fits("mean", mean) || !fits("std", std))
    return bad(
        fmt::format("its mean, {}, and standard deviation, {}, are too large or too near to 0: give the "
                    "column in another unit, or leave standardize out",
                    mean, std));
  for (auto* const into : {&spec, &spec_}) {
    into->set_mean(mean);
    into->set_std(std);
  }
  learns_statistics_ = false;
  return {};
}

result<std::size_t> csv_column::category(std::string_view text) const {
  if (const auto known = words_.find(text)) return *known;
  if (has_bucket_) return words_.size();
  return bad(
      fmt::format("\"{}\" is none of the {} categories of the training data; write unknown: bucket at the "
                  "column if there may be others",
                  base::printable(text), words_.size()));
}

result<void> csv_column::convert(std::string_view text, std::span<float> out) const {
  DLRUN_CHECK(out.size() == width(), "{} floats for column {} of {}", out.size(), name(), width());
  if (is_categorical_) {
    const auto number = category(text);
    if (!number) return tl::unexpected(number.error());
    if (is_one_hot_) {
      std::ranges::fill(out, 0.0F);
      out[*number] = 1.0F;
    } else {
      out[0] = static_cast<float>(*number);
    }
    return {};
  }
  const auto number = parse_cell(text);
  if (!number) return tl::unexpected(number.error());
  const double value = spec_.has_mean() ? (*number - spec_.mean()) / spec_.std() : *number;
  out[0] = static_cast<float>(value);
  if (!std::isfinite(out[0]))
    return bad(fmt::format("{} is too large for a 32-bit float{}", base::printable(trimmed(text)),
                           spec_.has_mean() ? " once the column is standardized" : ""));
  return {};
}

result<double> parse_cell(std::string_view text) {
  auto digits = trimmed(text);
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
  double value = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool whole = end == digits.data() + digits.size();
  if (problem == std::errc{} && whole && std::isfinite(value)) return value;
  if (problem == std::errc::result_out_of_range && whole) {
    const std::string copy(digits); // strtod tells on which side it is out of range
    value = std::strtod(copy.c_str(), nullptr);
    if (std::isfinite(value)) return value;
    return bad(fmt::format("\"{}\" is too large for a 64-bit float", base::printable(text)));
  }
  const bool has_comma = text.find(',') != std::string_view::npos;
  return bad(fmt::format("\"{}\" is not a number{}", base::printable(text),
                         has_comma ? "; decimals stand behind a point, and digits are not grouped" : ""));
}

} // namespace dlrun::data
