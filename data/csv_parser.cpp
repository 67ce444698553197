#include "data/csv_parser.hpp"

#include <fmt/format.h>

namespace dlrun::data {

result<csv_parser> csv_parser::open(const std::filesystem::path& file, char delimiter) {
  auto source = byte_source::open(file);
  if (!source) return tl::unexpected(source.error());
  return csv_parser(std::move(*source), delimiter);
}

tl::unexpected<error> csv_parser::wrong(std::uint64_t line, const std::string& what) const {
  return fail(error_code::bad_data, fmt::format("{}: line {}: {}", name(), line, what));
}

std::string_view csv_parser::cell(std::size_t place) const {
  const std::size_t begin = place == 0 ? 0 : ends_[place - 1];
  const auto whole = std::string_view(text_).substr(begin, ends_[place] - begin);
  if (was_quoted(place)) return whole;
  const auto first = whole.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return whole.substr(first, whole.find_last_not_of(" \t") - first + 1);
}

void csv_parser::take_text(bool quoted) {
  const std::size_t begin = at_;
  const auto special = [&](std::uint8_t c) {
    if (c == '"' || c == '\n' || c == 0) return true;
    return !quoted && (c == '\r' || c == static_cast<unsigned char>(delimiter_));
  };
  while (at_ < filled_ && !special(buffer_[at_])) ++at_;
  text_.append(reinterpret_cast<const char*>(buffer_.data()) + begin, at_ - begin);
}

result<bool> csv_parser::refill() {
  if (at_ < filled_) return true;
  const auto got = source_.read(buffer_);
  if (!got) return tl::unexpected(got.error());
  at_ = 0;
  filled_ = *got;
  return filled_ > 0;
}

result<int> csv_parser::peek() {
  if (at_ == filled_) {
    const auto more = refill();
    if (!more) return tl::unexpected(more.error());
    if (!*more) return -1;
  }
  return buffer_[at_];
}

result<void> csv_parser::skip_byte_order_mark() {
  started_ = true;
  if (const auto filled = refill(); !filled) return tl::unexpected(filled.error());
  const bool marked = filled_ >= 3 && buffer_[0] == 0xEF && buffer_[1] == 0xBB && buffer_[2] == 0xBF;
  if (marked) at_ = 3;
  return {};
}

void csv_parser::end_cell(bool quoted) {
  ends_.push_back(text_.size());
  quoted_.push_back(quoted ? 1 : 0);
}

/// After the opening quote, up to and with the closing one.
result<void> csv_parser::quoted_field() {
  const std::uint64_t opened = line_;
  while (true) {
    take_text(true);
    const auto c = peek();
    if (!c) return tl::unexpected(c.error());
    if (*c < 0) return wrong(opened, "a quote is opened and never closed");
    ++at_;
    if (*c == 0) return wrong(line_, "a byte of value 0; is this a text file?");
    if (*c == '\n') ++line_;
    if (*c == '"') {
      const auto following = peek();
      if (!following) return tl::unexpected(following.error());
      if (*following != '"') break;
      ++at_;
    }
    text_ += static_cast<char>(*c);
    if (text_.size() > line_bytes_max) return wrong(opened, "a field that does not end; is a quote missing?");
  }
  const auto c = peek();
  if (!c) return tl::unexpected(c.error());
  const bool ends = *c < 0 || *c == '\n' || *c == '\r' || *c == static_cast<unsigned char>(delimiter_);
  if (!ends) return wrong(line_, "text after a closing quote; quotes within a quoted field are doubled");
  end_cell(true);
  return {};
}

/// Up to the delimiter or the end of the line, neither of them taken.
result<void> csv_parser::plain_field() {
  while (true) {
    take_text(false);
    const auto c = peek();
    if (!c) return tl::unexpected(c.error());
    if (*c < 0 || *c == '\n' || *c == static_cast<unsigned char>(delimiter_)) break;
    ++at_;
    if (*c == 0) return wrong(line_, "a byte of value 0; is this a text file?");
    if (*c == '"') return wrong(line_, "a quote within a field that does not begin with one");
    if (*c == '\r') {
      const auto following = peek();
      if (!following) return tl::unexpected(following.error());
      if (*following < 0 || *following == '\n') break;
    }
    text_ += static_cast<char>(*c);
    if (text_.size() > line_bytes_max) return wrong(line_, "a line that does not end; is this a text file?");
  }
  end_cell(false);
  return {};
}

result<bool> csv_parser::next() {
  if (!started_)
    if (auto skipped = skip_byte_order_mark(); !skipped) return tl::unexpected(skipped.error());
  while (true) {
    text_.clear();
    ends_.clear();
    quoted_.clear();
    first_line_ = line_;
    auto c = peek();
    if (!c) return tl::unexpected(c.error());
    if (*c < 0) return false;
    while (true) {
      if (*c == '"') ++at_;
      const auto done = *c == '"' ? quoted_field() : plain_field();
      if (!done) return tl::unexpected(done.error());
      c = peek();
      if (!c) return tl::unexpected(c.error());
      if (*c != static_cast<unsigned char>(delimiter_)) break;
      ++at_;
      c = peek();
      if (!c) return tl::unexpected(c.error());
    }
    if (*c == '\r') { // only after a closing quote
      ++at_;
      c = peek();
      if (!c) return tl::unexpected(c.error());
      if (*c >= 0 && *c != '\n') return wrong(line_, "a carriage return within a line");
    }
    if (*c == '\n') {
      ++at_;
      ++line_;
    }
    const bool blank = ends_.size() == 1 && text_.empty() && quoted_[0] == 0;
    if (!blank) return true;
  }
}

} // namespace dlrun::data
