#include "data/npy_reader.hpp"

#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dlrun::data {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t prefix_bytes = 10; // magic, version, length of the head in formats 1.0
constexpr std::size_t head_bytes_max = 65536;
constexpr std::size_t npy_dims_max = 8;

tl::unexpected<error> bad_npy(const std::string& name, std::uint64_t offset, const std::string& what) {
  return fail(error_code::bad_data, fmt::format("{}: byte {}: {}", name, offset, what));
}

/// Walks through the text of the dictionary.
class dictionary_parser {
public:
  dictionary_parser(std::string_view text, std::uint64_t offset, const std::string& name)
      : text_(text)
      , offset_(offset)
      , name_(name) {}

  result<void> parse(npy_header& header) {
    if (!take('{')) return wrong("a dictionary, {...}");
    while (!take('}')) {
      const auto key = quoted();
      if (!key || !take(':')) return wrong("a key in quotes");
      result<void> done = *key == "descr"           ? type(header)
                          : *key == "fortran_order" ? order()
                          : *key == "shape"         ? shape(header)
                                                    : wrong("one of the keys descr, fortran_order, shape");
      if (!done) return done;
      ++seen_;
      if (!take(',') && peek() != '}') return wrong("a comma or the end of the dictionary");
    }
    skip_spaces();
    if (at_ != text_.size()) return wrong("nothing after the dictionary");
    if (seen_ != 3 || !has_type_ || !has_order_ || !has_shape_)
      return wrong("the three keys descr, fortran_order, shape, each once");
    if (fortran_ && header.dims.size() > 1)
      return here("the array is in Fortran order; save it with numpy.ascontiguousarray");
    return {};
  }

private:
  tl::unexpected<error> here(const std::string& what) const { return bad_npy(name_, offset_ + at_, what); }
  tl::unexpected<error> wrong(std::string_view wanted) const {
    return here(fmt::format("not a head that numpy.save writes: expected {}", wanted));
  }

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  char peek() {
    skip_spaces();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }
  std::optional<std::string_view> quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') return std::nullopt;
    const auto end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    const auto inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return inside;
  }

  result<void> type(npy_header& header) {
    const auto descr = quoted();
    if (!descr) return wrong("the type of a plain array, as in '<f4' (arrays of records are not read)");
    const bool one_byte = *descr == "|u1" || *descr == "<u1";
    const auto found = descr->starts_with('<') ? element_type_from(descr->substr(1)) : std::nullopt;
    if (!one_byte && !found)
      return here(
          fmt::format("holds type '{}'; u1, i4, i8, f4 and f8, little-endian, are read: convert it with "
                      "array.astype('<f4')",
                      *descr));
    header.type = one_byte ? element_type::u1 : *found;
    has_type_ = true;
    return {};
  }

  result<void> order() {
    skip_spaces();
    for (const std::string_view word : {"True", "False"})
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        fortran_ = word == "True";
        has_order_ = true;
        return {};
      }
    return wrong("True or False");
  }

  result<void> shape(npy_header& header) {
    if (!take('(')) return wrong("a shape in parentheses");
    header.dims.clear();
    while (!take(')')) {
      skip_spaces();
      std::uint64_t size = 0;
      const char* const begin = text_.data() + at_;
      const auto [end, problem] = std::from_chars(begin, text_.data() + text_.size(), size);
      if (problem != std::errc{}) return wrong("a size");
      at_ += static_cast<std::size_t>(end - begin);
      header.dims.push_back(size);
      if (header.dims.size() > npy_dims_max)
        return here(fmt::format("more than {} dimensions", npy_dims_max));
      if (!take(',') && peek() != ')') return wrong("a comma or the end of the shape");
    }
    has_shape_ = true;
    return {};
  }

  std::string_view text_;
  std::uint64_t offset_;
  const std::string& name_;
  std::size_t at_ = 0;
  int seen_ = 0;
  bool has_type_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
  bool fortran_ = false;
};

} // namespace

result<npy_header> parse_npy_header(std::span<const std::uint8_t> bytes, const std::string& name) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("\x1f\x8b"))
    return bad_npy(name, 0, "is gzip-compressed; .npy files are mapped as they are: unpack it");
  if (text.size() < prefix_bytes || !text.starts_with(magic))
    return bad_npy(name, 0,
                   "not a .npy file: it does not start with \\x93NUMPY (an .npz is an archive of several)");
  const int version = bytes[6];
  if (version < 1 || version > 3 || bytes[7] != 0)
    return bad_npy(name, 6,
                   fmt::format("format {}.{} of .npy; 1.0, 2.0 and 3.0 are read", version, bytes[7]));
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::size_t start = 8 + length_bytes;
  if (text.size() < start) return bad_npy(name, text.size(), "the file ends within its head");
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= std::uint64_t{bytes[8 + i]} << (8 * i);
  if (length > head_bytes_max)
    return bad_npy(
        name, 8,
        fmt::format("the head claims {} bytes, more than the {} that one may have", length, head_bytes_max));
  if (length > text.size() - start) return bad_npy(name, text.size(), "the file ends within its head");
  npy_header header;
  header.header_bytes = start + length;
  dictionary_parser parser(text.substr(start, static_cast<std::size_t>(length)), start, name);
  if (auto parsed = parser.parse(header); !parsed) return tl::unexpected(parsed.error());
  return header;
}

result<stored_array> map_npy(const std::filesystem::path& file) {
  auto bytes = blob::map_file(file);
  if (!bytes) return tl::unexpected(bytes.error());
  const auto header = parse_npy_header(bytes->bytes(), bytes->name());
  if (!header) return tl::unexpected(header.error());
  const auto values = count_values(header->dims, bytes->name());
  if (!values) return tl::unexpected(values.error());
  const std::uint64_t wanted = header->header_bytes + *values * size_of(header->type);
  const std::uint64_t there = bytes->bytes().size();
  if (there != wanted)
    return bad_npy(bytes->name(), std::min(there, wanted),
                   fmt::format("{}: the head promises an array of {} ({}), {} bytes in all, {} are there",
                               there < wanted ? "the file is truncated" : "trailing bytes",
                               fmt::join(header->dims, " x "), to_string(header->type), wanted, there));
  stored_array array;
  array.name = bytes->name();
  array.offset = header->header_bytes;
  array.type = header->type;
  array.dims = header->dims;
  array.memory = std::make_shared<blob>(std::move(*bytes));
  return array;
}

result<decoded_data> decode_npy(const reader_request& request) {
  decoded_data data;
  data.kind = request.targets;
  auto records = map_npy(request.records);
  if (!records) return tl::unexpected(records.error());
  data.records = std::move(*records);
  if (request.with_targets) {
    auto labels = map_npy(request.labels);
    if (!labels) return tl::unexpected(labels.error());
    data.targets = std::move(*labels);
  }
  return check_decoded(std::move(data));
}

} // namespace dlrun::data
