#include "data/csv_reader.hpp"

#include "base/utf8.hpp"
#include "data/split.hpp"
#include "job/choices.hpp"

#include <algorithm>
#include <cmath>
#include <dlrun/check.hpp>
#include <fmt/format.h>
#include <limits>

namespace dlrun::data {
namespace {

constexpr std::size_t columns_max = 65536;

char delimiter_of(const spec::CsvSpec& spec) {
  switch (job::delimiter_of(spec)) {
  case job::csv_delimiter::comma: return ',';
  case job::csv_delimiter::semicolon: return ';';
  case job::csv_delimiter::tab: return '\t';
  case job::csv_delimiter::bar: return '|';
  }
  return ',';
}

} // namespace

csv_reader::csv_reader(spec::DatasetSpec& spec, const decode_context& context)
    : spec_(spec)
    , context_(context) {}

tl::unexpected<error> csv_reader::at(std::size_t place, const error& what) const {
  return fail(what.code, fmt::format("{}: line {}, column {}: {}", parser_->name(), parser_->line(),
                                     base::printable(header_.name(place)), what.message));
}

/// Opens the file from its start, past the header.
result<void> csv_reader::rewind() {
  const auto open = [this]() -> result<void> {
    auto parser = csv_parser::open(request_.records, delimiter_of(spec_.csv()));
    if (!parser) return tl::unexpected(parser.error());
    parser_ = std::make_unique<csv_parser>(std::move(*parser));
    return {};
  };
  if (auto opened = open(); !opened) return opened;
  if (spec_.csv().header()) return read_header();
  if (header_.size() > 0) return {};
  if (auto counted = count_columns(); !counted) return counted;
  return open();
}

/// The next line that is not blank; false when there is none.
result<bool> csv_reader::next_filled_line() {
  auto there = parser_->next();
  while (there && *there && parser_->is_blank()) there = parser_->next();
  return there;
}

/// The first line with anything in it has as many cells as all others.
result<void> csv_reader::count_columns() {
  const auto there = next_filled_line();
  if (!there) return tl::unexpected(there.error());
  header_ = csv_header::of_numbers(*there ? parser_->size() : 1);
  return {};
}

result<void> csv_reader::read_header() {
  const auto there = next_filled_line();
  if (!there) return tl::unexpected(there.error());
  if (!*there) return fail(error_code::bad_data, fmt::format("{}: the file is empty", parser_->name()));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < parser_->size(); ++i) names.emplace_back(parser_->cell(i));
  header_ = csv_header{std::move(names)};
  for (std::size_t i = 0; i < header_.size(); ++i)
    if (base::first_invalid_utf8(header_.name(i)))
      return at(i, {error_code::bad_data, "its name is not UTF-8 text"});
  return {};
}

/// The next record, if it has as many cells as all others. In a table of one column a blank line is
/// a record whose cell is empty; in others it is none.
result<bool> csv_reader::next_line() {
  auto there = header_.size() == 1 ? parser_->next() : next_filled_line();
  if (!there || !*there) return there;
  if (parser_->size() == header_.size()) return true;
  return fail(error_code::bad_data,
              fmt::format("{}: line {}: {} columns, but the {} {}", parser_->name(), parser_->line(),
                          parser_->size(), header_.has_names() ? "header names" : "first line has",
                          header_.size()));
}

result<std::size_t> csv_reader::place_of(const std::string& column) const {
  auto place = header_.find(column);
  if (place) return place;
  return fail(place.error().code, fmt::format("{}: {}", parser_->name(), place.error().message));
}

/// Without a list of columns, all but the targets are numbers. Noted, so that other files are read
/// likewise.
result<void> csv_reader::use_all_columns(const std::set<std::size_t>& targets) {
  auto& csv = *spec_.mutable_csv();
  for (std::size_t i = 0; i < header_.size(); ++i) {
    if (targets.contains(i)) continue;
    const auto name = header_.name(i);
    if (name.empty())
      return fail(
          error_code::bad_data,
          fmt::format("{}: column {} of the header has no name: is it an index, or do lines end with a "
                      "separator? Name it, or list those to read: csv.columns",
                      parser_->name(), i + 1));
    auto& column = *csv.add_columns();
    column.set_column(name);
    column.set_type("numeric");
  }
  if (csv.columns().empty())
    return fail(error_code::bad_data, fmt::format("{}: no column is left to learn from", parser_->name()));
  return {};
}

/// The places of the targets. Where none are asked for, of those that the file has.
result<std::set<std::size_t>> csv_reader::find_targets() {
  std::set<std::size_t> places;
  for (const auto& name : spec_.csv().target()) {
    const auto place = place_of(name);
    if (!place && request_.with_targets) return tl::unexpected(place.error());
    if (!place) continue;
    places.insert(*place);
    if (request_.with_targets) targets_.push_back({name, *place});
  }
  return places;
}

/// What is to be predicted would be among what it is predicted from.
result<void> csv_reader::check_not_target(const std::set<std::size_t>& targets) const {
  const auto both =
      std::ranges::find_if(columns_, [&](const auto& column) { return targets.contains(column.place()); });
  if (both == columns_.end()) return {};
  return fail(
      error_code::bad_spec,
      fmt::format("{}.csv: column \"{}\" is the target, and one of the columns to learn from; leave it "
                  "out of csv.columns",
                  context_.key, base::printable(both->name())));
}

result<void> csv_reader::find_columns() {
  auto& csv = *spec_.mutable_csv();
  if (header_.size() > columns_max)
    return fail(error_code::bad_data,
                fmt::format("{}: line {}: {} columns; at most {} are read", parser_->name(), parser_->line(),
                            header_.size(), columns_max));
  const auto targets = find_targets();
  if (!targets) return tl::unexpected(targets.error());
  if (csv.columns().empty())
    if (auto used = use_all_columns(*targets); !used) return used;
  for (const auto& column : csv.columns()) {
    const auto place = place_of(column.column());
    if (!place) return tl::unexpected(place.error());
    columns_.emplace_back(column, *place);
    if (auto fine = columns_.back().check(); !fine)
      return fail(fine.error().code, fmt::format("{}.csv.columns: column \"{}\": {}", context_.key,
                                                 base::printable(column.column()), fine.error().message));
  }
  if (auto fine = check_not_target(*targets); !fine) return fine;
  if (!request_.with_targets) return {};
  if (request_.targets == target_kind::classes && targets_.size() != 1)
    return fail(
        error_code::bad_spec,
        fmt::format("{}.csv.target: names {} columns, but a class is one column; write one, or choose a loss "
                    "that takes values",
                    context_.key, targets_.size()));
  return {};
}

/// Vocabularies come from the training data: those of other data would number the same words
/// otherwise.
result<void> csv_reader::check_may_learn() const {
  if (context_.learn) return {};
  for (const auto& column : columns_)
    if (column.learns_vocabulary() || column.learns_statistics())
      return fail(
          error_code::bad_spec,
          fmt::format(
              "{}.csv.columns: column \"{}\" has nothing learnt from the training data; leave csv out "
              "here, so that it is as in data.train, or give its {}",
              context_.key, base::printable(column.name()),
              column.is_categorical() ? "vocabulary" : "mean and std"));
  return {};
}

result<record_layout> csv_reader::open(const reader_request& request) {
  request_ = request;
  if (auto started = rewind(); !started) return tl::unexpected(started.error());
  if (auto done = first_pass(); !done) return tl::unexpected(done.error());
  if (auto done = statistics_pass(); !done) return tl::unexpected(done.error());
  if (auto started = rewind(); !started) return tl::unexpected(started.error());
  std::uint64_t width = 0;
  for (const auto& column : columns_) width += column.width();
  if (width > std::numeric_limits<std::uint32_t>::max())
    return fail(error_code::bad_data, fmt::format("{}: a record has {} values", parser_->name(), width));
  return record_layout{.records = lines_,
                       .shape = {static_cast<std::uint32_t>(width)},
                       .bytes = false,
                       .target_values = static_cast<std::int64_t>(targets_.size())};
}

result<void> csv_reader::first_pass() {
  learns_classes_ = request_.with_targets && request_.targets == target_kind::classes && context_.learn &&
                    spec_.csv().classes().empty();
  classes_.emplace(spec_.csv());
  while (true) {
    const auto there = next_line();
    if (!there) return tl::unexpected(there.error());
    if (!*there) break;
    if (columns_.empty()) {
      if (auto found = find_columns(); !found) return found;
      if (auto may = check_may_learn(); !may) return may;
    }
    ++lines_;
    if (auto learnt = learn_line(); !learnt) return learnt;
  }
  if (lines_ == 0)
    return fail(error_code::bad_data, fmt::format("{}: there are no records in it", parser_->name()));
  return finish_learning();
}

result<void> csv_reader::learn_line() {
  for (auto& column : columns_) {
    if (!column.learns_vocabulary()) continue;
    const auto text = column.text_of(parser_->cell(column.place()), parser_->was_quoted(column.place()));
    if (!text) return at(column.place(), text.error());
    if (auto learnt = column.learn_word(*text); !learnt) return at(column.place(), learnt.error());
  }
  if (!learns_classes_) return {};
  const auto place = targets_.front().place;
  if (auto learnt = classes_->learn(parser_->cell(place)); !learnt) return at(place, learnt.error());
  return {};
}

result<void> csv_reader::finish_learning() {
  auto& csv = *spec_.mutable_csv();
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!columns_[i].learns_vocabulary()) continue;
    columns_[i].finish_words(*csv.mutable_columns(static_cast<int>(i)));
    bytes += columns_[i].vocabulary_bytes();
  }
  if (learns_classes_) bytes += classes_->finish(csv);
  if (bytes <= vocabulary::bytes_max) return {};
  return fail(error_code::bad_data,
              fmt::format("{}: the vocabularies of its categorical columns have {} bytes; at most "
                          "{} are kept. Are these columns categories?",
                          parser_->name(), bytes, vocabulary::bytes_max));
}

/// Means and spreads, of the records that are trained on.
result<void> csv_reader::statistics_pass() {
  if (std::ranges::none_of(columns_, &csv_column::learns_statistics)) return {};
  std::optional<split> division;
  if (context_.held_out_part > 0) {
    const auto held_out = split::held_out_records(context_.held_out_part, lines_);
    if (!held_out) return tl::unexpected(held_out.error());
    division.emplace(context_.seed, lines_, *held_out);
  }
  if (auto started = rewind(); !started) return started;
  for (std::uint64_t line = 0; line < lines_; ++line) {
    const auto there = next_line();
    if (!there) return tl::unexpected(there.error());
    if (!*there) break; // read_line() tells that the file was changed
    if (division && division->is_held_out(line)) continue;
    for (auto& column : columns_) {
      if (!column.learns_statistics()) continue;
      const auto text = column.text_of(parser_->cell(column.place()), parser_->was_quoted(column.place()));
      if (!text) return at(column.place(), text.error());
      if (auto learnt = column.learn_number(*text); !learnt) return at(column.place(), learnt.error());
    }
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    auto& column = columns_[i];
    if (!column.learns_statistics()) continue;
    auto done = column.finish_numbers(*spec_.mutable_csv()->mutable_columns(static_cast<int>(i)));
    if (!done)
      return fail(done.error().code, fmt::format("{}: column {}: {}", parser_->name(),
                                                 base::printable(column.name()), done.error().message));
  }
  return {};
}

result<void> csv_reader::read_line(std::span<float> floats, std::span<std::int32_t> classes,
                                   std::span<float> values) {
  std::size_t offset = 0;
  for (const auto& column : columns_) {
    const auto text = column.text_of(parser_->cell(column.place()), parser_->was_quoted(column.place()));
    if (!text) return at(column.place(), text.error());
    const auto out = floats.subspan(offset, column.width());
    if (auto done = column.convert(*text, out); !done) return at(column.place(), done.error());
    offset += column.width();
  }
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const auto place = targets_[i].place;
    if (!classes.empty()) {
      const auto number = classes_->number_of(parser_->cell(place));
      if (!number) return at(place, number.error());
      classes[0] = *number;
      continue;
    }
    const auto cell = parser_->cell(place);
    if (cell.empty()) return at(place, {error_code::bad_data, "the target is missing"});
    const auto number = parse_cell(cell);
    if (!number) return at(place, number.error());
    values[i] = static_cast<float>(*number);
    if (!std::isfinite(values[i]))
      return at(place, {error_code::bad_data, fmt::format("{} is too large for a 32-bit float", *number)});
  }
  return {};
}

result<void> csv_reader::read(std::uint64_t first, std::uint64_t count, const record_buffers& out) {
  const std::size_t width = out.floats.size() / count;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto there = next_line();
    if (!there) return tl::unexpected(there.error());
    if (!*there)
      return fail(error_code::bad_data,
                  fmt::format("{}: ends after {} of {} records: it was changed while it was read",
                              parser_->name(), first + i, lines_));
    auto done = read_line(
        out.floats.subspan(i * width, width), out.classes.empty() ? out.classes : out.classes.subspan(i, 1),
        out.values.empty() ? out.values : out.values.subspan(i * targets_.size(), targets_.size()));
    if (!done) return done;
  }
  return {};
}

} // namespace dlrun::data
