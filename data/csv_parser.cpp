#include "data/csv_parser.hpp"

#include <fmt/format.h>

namespace dlrun::data {
namespace {

struct byte_order_mark {
  std::string_view bytes, encoding;
};
constexpr std::size_t mark_bytes_max = 4;
/// That of UTF-16 is the begin of that of UTF-32.
constexpr std::array byte_order_marks{
    byte_order_mark{"\xEF\xBB\xBF", "UTF-8"}, byte_order_mark{{"\xFF\xFE\0\0", 4}, "UTF-32"},
    byte_order_mark{{"\0\0\xFE\xFF", 4}, "UTF-32"}, byte_order_mark{"\xFF\xFE", "UTF-16"},
    byte_order_mark{"\xFE\xFF", "UTF-16"}};

constexpr auto nul_byte = "a byte of value 0; is this a text file? One in UTF-16 is to be saved as UTF-8";
constexpr auto carriage_return = "a carriage return within a line; lines end with LF or CRLF: convert a file "
                                 "whose lines end with CR, e.g. with tr '\\r' '\\n'";

} // namespace

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
  while (filled_ < mark_bytes_max) {
    const auto got = source_.read(std::span{buffer_}.subspan(filled_));
    if (!got) return tl::unexpected(got.error());
    if (*got == 0) break;
    filled_ += *got;
  }
  const std::string_view begin(reinterpret_cast<const char*>(buffer_.data()), filled_);
  for (const auto& mark : byte_order_marks) {
    if (!begin.starts_with(mark.bytes)) continue;
    at_ = mark.bytes.size();
    if (mark.encoding == "UTF-8") return {};
    return fail(error_code::bad_data,
                fmt::format("{}: is {} text; save it as UTF-8, e.g. with iconv -f {} -t UTF-8", name(),
                            mark.encoding, mark.encoding));
  }
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
    if (*c == 0) return wrong(line_, nul_byte);
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
    if (*c == 0) return wrong(line_, nul_byte);
    if (*c == '"') return wrong(line_, "a quote within a field that does not begin with one");
    if (*c == '\r') {
      const auto following = peek();
      if (!following) return tl::unexpected(following.error());
      if (*following < 0 || *following == '\n') break;
      return wrong(line_, carriage_return);
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
  const auto c = peek();
  if (!c) return tl::unexpected(c.error());
  if (*c < 0) return false;
  if (auto taken = take_line(); !taken) return tl::unexpected(taken.error());
  return true;
}

/// Up to and with the end of the line.
result<void> csv_parser::take_line() {
  text_.clear();
  ends_.clear();
  quoted_.clear();
  first_line_ = line_;
  auto c = peek();
  while (true) {
    if (!c) return tl::unexpected(c.error());
    if (*c == '"') ++at_;
    if (auto done = *c == '"' ? quoted_field() : plain_field(); !done) return done;
    c = peek();
    if (!c) return tl::unexpected(c.error());
    if (*c != static_cast<unsigned char>(delimiter_)) break;
    ++at_;
    c = peek();
  }
  if (*c == '\r') { // only after a closing quote
    ++at_;
    c = peek();
    if (!c) return tl::unexpected(c.error());
    if (*c >= 0 && *c != '\n') return wrong(line_, carriage_return);
  }
  if (*c == '\n') {
    ++at_;
    ++line_;
  }
  return {};
}

} // namespace dlrun::data
