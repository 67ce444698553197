/// Comma-separated values, line by line.
#pragma once

#include "data/byte_source.hpp"

#include <array>

namespace dlrun::data {

/// Cells of a file in the form of RFC 4180: fields may be in quotes, within which separators, line
/// breaks and doubled quotes are text; lines end with LF or CRLF, the last one with or without.
/// Beyond it, the separator may be another character, and the byte order mark of UTF-8 is skipped;
/// spaces around a cell without quotes are not part of it. UTF-16 and UTF-32, a NUL byte, a
/// carriage return within a line, text after a closing quote, a quote within an unquoted field or
/// one that is never closed are errors. Not thread-safe; memory is that of one line.
class csv_parser {
public:
  /// Longest line, as stored.
  static constexpr std::size_t line_bytes_max = std::size_t{64} << 20;

  static result<csv_parser> open(const std::filesystem::path& file, char delimiter);

  /// The next line's cells, which are valid until the next call. A line with nothing in it is one
  /// empty cell.
  /// @returns false at the end of the file; bad_data naming file and line.
  result<bool> next();
  /// Has the line nothing in it? What that means depends on how many columns there are.
  bool is_blank() const { return ends_.size() == 1 && text_.empty() && quoted_[0] == 0; }

  std::size_t size() const { return ends_.size(); }
  /// Without spaces around it, unless it was in quotes.
  std::string_view cell(std::size_t place) const;
  /// Was the cell in quotes? Then an empty one is text, not a missing value.
  bool was_quoted(std::size_t place) const { return quoted_[place] != 0; }
  /// Number, from 1, of the line that the cells began on.
  std::uint64_t line() const { return first_line_; }
  const std::string& name() const { return source_.name(); }

private:
  explicit csv_parser(byte_source source, char delimiter)
      : source_(std::move(source))
      , delimiter_(delimiter) {}
  result<bool> refill();
  result<void> skip_byte_order_mark();
  result<void> take_line();
  /// Takes bytes that mean nothing but themselves, as far as they are read already.
  void take_text(bool quoted);
  result<void> quoted_field();
  result<void> plain_field();
  void end_cell(bool quoted);
  /// The next byte without taking it; -1 at the end of the file.
  result<int> peek();
  tl::unexpected<error> wrong(std::uint64_t line, const std::string& what) const;

  byte_source source_;
  char delimiter_;
  std::vector<std::uint8_t> buffer_ = std::vector<std::uint8_t>(64 * 1024);
  std::size_t at_ = 0;
  std::size_t filled_ = 0;
  bool started_ = false;
  std::uint64_t line_ = 1;
  std::uint64_t first_line_ = 1;
  std::string text_; // of all cells, one after the other
  std::vector<std::size_t> ends_;
  std::vector<std::uint8_t> quoted_;
};

} // namespace dlrun::data
