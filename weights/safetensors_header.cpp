#include "weights/safetensors_header.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>

namespace dlrun::weights {
namespace {

using nlohmann::json;

constexpr std::size_t extents_max = 64;

constexpr std::size_t dtype_bytes_max = 32;

struct dtype_size {
  std::string_view name;
  std::uint32_t bits;
};
/// Those of safetensors 0.7.
constexpr std::array dtypes{
    dtype_size{"F32", 32},        dtype_size{"F64", 64},    dtype_size{"F16", 16},
    dtype_size{"BF16", 16},       dtype_size{"I64", 64},    dtype_size{"U64", 64},
    dtype_size{"I32", 32},        dtype_size{"U32", 32},    dtype_size{"I16", 16},
    dtype_size{"U16", 16},        dtype_size{"I8", 8},      dtype_size{"U8", 8},
    dtype_size{"BOOL", 8},        dtype_size{"C64", 64},    dtype_size{"F8_E4M3", 8},
    dtype_size{"F8_E5M2", 8},     dtype_size{"F8_E8M0", 8}, dtype_size{"F8_E4M3FNUZ", 8},
    dtype_size{"F8_E5M2FNUZ", 8}, dtype_size{"F6_E2M3", 6}, dtype_size{"F6_E3M2", 6},
    dtype_size{"F4", 4}};

/// Could it be a dtype, of this version of the format or of another: "F32", "F8_E4M3"?
bool is_dtype_name(std::string_view text) {
  const auto plain = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; };
  return !text.empty() && text.size() <= dtype_bytes_max && text.front() >= 'A' && text.front() <= 'Z' &&
         std::ranges::all_of(text, plain);
}

/// Takes the JSON apart as it is read: what a hostile head can make us keep is bounded by its own
/// length, and nothing nests deeper than the format does.
class header_parser final : public nlohmann::json_sax<json> {
public:
  safetensors_header header;
  std::string problem; ///< why it stopped

  bool start_object(std::size_t) override {
    if (at_ == place::begin) return go(place::names);
    if (at_ == place::tensor) return go(place::fields);
    if (at_ == place::metadata) return go(place::metadata_names);
    return begin_unknown("an object");
  }

  bool key(string_t& name) override {
    switch (at_) {
    case place::names:
      if (!names_.insert(name).second) return stop(fmt::format("\"{}\" comes twice", shown(name)));
      if (name == "__metadata__") return go(place::metadata);
      tensor_ = {};
      tensor_.name = name;
      fields_.clear();
      return go(place::tensor);
    case place::fields:
      field_ = name;
      if (!fields_.insert(name).second) return stop(fmt::format("{} of {} comes twice", shown(name), what()));
      if (name == "dtype") return go(place::dtype);
      if (name == "shape") return go(place::shape);
      if (name == "data_offsets") return go(place::offsets);
      return go(place::unknown);
    case place::metadata_names: field_ = name; return go(place::metadata_value);
    case place::unknown: return true;
    default: return unexpected("a key");
    }
  }

  bool string(string_t& text) override {
    if (at_ == place::metadata_value) {
      if (!header.metadata.emplace(field_, text).second)
        return stop(fmt::format("\"{}\" comes twice in __metadata__", shown(field_)));
      return go(place::metadata_names);
    }
    if (at_ != place::dtype) return end_unknown("a text");
    if (!is_dtype_name(text))
      return stop(fmt::format("{} has the unknown dtype \"{}\"", what(), shown(text)));
    tensor_.dtype = text;
    return go(place::fields);
  }

  bool start_array(std::size_t) override {
    numbers_.clear();
    if (at_ == place::shape) return go(place::shape_numbers);
    if (at_ == place::offsets) return go(place::offset_numbers);
    return begin_unknown("a list");
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (at_ != place::shape_numbers && at_ != place::offset_numbers) return end_unknown("a number");
    if (numbers_.size() == extents_max)
      return stop(fmt::format("{} has more than {} numbers in {}", what(), extents_max, field_));
    constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (value > largest) return stop(fmt::format("{} has the impossible number {}", what(), value));
    numbers_.push_back(value);
    return true;
  }

  bool end_array() override {
    if (at_ == place::unknown) return leave_unknown();
    if (at_ == place::shape_numbers) {
      tensor_.extents.assign(numbers_.begin(), numbers_.end());
      return go(place::fields);
    }
    if (numbers_.size() != 2 || numbers_[0] > numbers_[1])
      return stop(fmt::format("{}: data_offsets are not [begin, end]", what()));
    tensor_.offset = numbers_[0];
    tensor_.bytes = numbers_[1] - numbers_[0];
    return go(place::fields);
  }

  bool end_object() override {
    if (at_ == place::unknown) return leave_unknown();
    if (at_ == place::metadata_names) return go(place::names);
    if (at_ == place::names) return go(place::end);
    if (at_ != place::fields) return unexpected("the end of an object");
    for (const auto* const needed : {"dtype", "shape", "data_offsets"})
      if (!fields_.contains(needed)) return stop(fmt::format("{} lacks {}", what(), needed));
    if (!add_tensor()) return false;
    return go(place::names);
  }

  bool null() override { return at_ == place::metadata ? go(place::names) : end_unknown("null"); }
  bool boolean(bool) override { return end_unknown("a truth value"); }
  bool number_integer(number_integer_t) override { return end_unknown("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return end_unknown("a fraction"); }
  bool binary(binary_t&) override { return unexpected("bytes"); }
  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    return stop(fmt::format("it is no JSON at byte {}", position));
  }

private:
  /// What has been read; what may come next follows from it.
  enum class place {
    begin,
    names,
    tensor,
    fields,
    dtype,
    shape,
    shape_numbers,
    offsets,
    offset_numbers,
    metadata,
    metadata_names,
    metadata_value,
    unknown, ///< the value of a key that is passed over
    end
  };

  static std::string shown(const std::string& text) { return base::printable(text); }
  std::string what() const { return fmt::format("tensor \"{}\"", shown(tensor_.name)); }
  bool go(place to) {
    at_ = to;
    return true;
  }
  bool stop(std::string why) {
    if (problem.empty()) problem = std::move(why);
    return false;
  }
  bool unexpected(std::string_view found) {
    return stop(fmt::format("{} stands where none belongs{}", found,
                            tensor_.name.empty() ? "" : fmt::format(", at {}", what())));
  }

  /// Lists and objects within a value that is passed over are counted, and go no deeper than
  /// `depth_max`.
  bool begin_unknown(std::string_view found) {
    if (at_ != place::unknown) return unexpected(found);
    return ++depth_ <= depth_max || stop(fmt::format("{} nests deeper than {}", what(), depth_max));
  }
  bool end_unknown(std::string_view found) {
    if (at_ != place::unknown) return unexpected(found);
    return depth_ > 0 || go(place::fields);
  }
  bool leave_unknown() {
    --depth_;
    return depth_ > 0 || go(place::fields);
  }

  bool add_tensor() {
    tensor_.elements = 1;
    bool fits = true;
    for (const auto extent : tensor_.extents)
      fits = fits &&
             !__builtin_mul_overflow(tensor_.elements, static_cast<std::uint64_t>(extent), &tensor_.elements);
    const auto bytes = bytes_of(tensor_.dtype, tensor_.elements);
    if (!fits || (bytes != tensor_.bytes && bits_of(tensor_.dtype) != 0))
      return stop(fmt::format("{} has {} bytes, which its shape and {} do not give", what(), tensor_.bytes,
                              tensor_.dtype));
    header.tensors.push_back(std::move(tensor_));
    return true;
  }

  place at_ = place::begin;
  static constexpr int depth_max = 32;

  int depth_ = 0; ///< within a value that is passed over
  std::set<std::string> names_, fields_;
  stored_tensor tensor_;
  std::string field_;
  std::vector<std::uint64_t> numbers_;
};

/// Where a tensor does not begin where the one before it ends; "" when there is no such.
std::string problem_of_places(const std::vector<stored_tensor>& tensors, std::uint64_t data_bytes) {
  std::uint64_t end = 0;
  for (const auto& tensor : tensors) {
    if (tensor.offset != end)
      return fmt::format(
          "tensor \"{}\" begins at byte {} of the data, where {} was expected: tensors overlap, or "
          "leave a gap",
          base::printable(tensor.name), tensor.offset, end);
    end += tensor.bytes; // no overflow: each end is below 2^63, and the next begins there
  }
  if (end == data_bytes) return "";
  return fmt::format("its tensors take {} bytes, but it has {}: it is cut off, or something is behind them",
                     end, data_bytes);
}

} // namespace

std::uint32_t bits_of(std::string_view dtype) {
  const auto found = std::ranges::find(dtypes, dtype, &dtype_size::name);
  return found == dtypes.end() ? 0 : found->bits;
}

std::optional<std::uint64_t> bytes_of(std::string_view dtype, std::uint64_t elements) {
  constexpr std::uint64_t bits_of_byte = 8;
  const std::uint64_t bits = bits_of(dtype);
  std::uint64_t all = 0;
  if (bits == 0 || __builtin_mul_overflow(elements, bits, &all) || all % bits_of_byte != 0)
    return std::nullopt;
  return all / bits_of_byte;
}

result<safetensors_header> parse_header(std::string_view text, std::uint64_t data_bytes,
                                        const std::string& file) {
  header_parser parser;
  const bool parsed = text.starts_with('{') && json::sax_parse(text.begin(), text.end(), &parser);
  auto& tensors = parser.header.tensors;
  if (parsed) {
    std::ranges::sort(tensors, [](const auto& left, const auto& right) {
      return std::pair(left.offset, left.bytes) < std::pair(right.offset, right.bytes);
    });
    parser.problem = problem_of_places(tensors, data_bytes);
  } else if (parser.problem.empty()) {
    parser.problem = "its head does not begin with {";
  }
  if (parser.problem.empty()) return std::move(parser.header);
  return fail(error_code::bad_data,
              fmt::format("{} is not a whole safetensors file: {}", file, parser.problem));
}

} // namespace dlrun::weights
