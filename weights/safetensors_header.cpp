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

struct dtype_size {
  std::string_view name;
  std::uint32_t bytes;
};
constexpr std::array dtypes{dtype_size{"F32", 4},     dtype_size{"F64", 8},  dtype_size{"F16", 2},
                            dtype_size{"BF16", 2},    dtype_size{"I64", 8},  dtype_size{"U64", 8},
                            dtype_size{"I32", 4},     dtype_size{"U32", 4},  dtype_size{"I16", 2},
                            dtype_size{"U16", 2},     dtype_size{"I8", 1},   dtype_size{"U8", 1},
                            dtype_size{"F8_E4M3", 1}, dtype_size{"BOOL", 1}, dtype_size{"F8_E5M2", 1}};

/// Takes the JSON apart as it is read: what a hostile head can make us keep is bounded by its own length, and
/// nothing nests deeper than the format does.
class header_parser final : public nlohmann::json_sax<json> {
public:
  safetensors_header header;
  std::string problem; ///< why it stopped

  bool start_object(std::size_t) override {
    if (at_ == place::begin) return go(place::names);
    if (at_ == place::tensor) return go(place::fields);
    if (at_ == place::metadata) return go(place::metadata_names);
    return unexpected("an object");
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
      return stop(fmt::format("{} has the unknown key \"{}\"", what(), shown(name)));
    case place::metadata_names: field_ = name; return go(place::metadata_value);
    default: return unexpected("a key");
    }
  }

  bool string(string_t& text) override {
    if (at_ == place::metadata_value) {
      if (!header.metadata.emplace(field_, text).second)
        return stop(fmt::format("\"{}\" comes twice in __metadata__", shown(field_)));
      return go(place::metadata_names);
    }
    if (at_ != place::dtype) return unexpected("a text");
    if (bytes_of(text) == 0) return stop(fmt::format("{} has the unknown dtype \"{}\"", what(), shown(text)));
    tensor_.dtype = text;
    return go(place::fields);
  }

  bool start_array(std::size_t) override {
    numbers_.clear();
    if (at_ == place::shape) return go(place::shape_numbers);
    if (at_ == place::offsets) return go(place::offset_numbers);
    return unexpected("a list");
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (at_ != place::shape_numbers && at_ != place::offset_numbers) return unexpected("a number");
    if (numbers_.size() == extents_max)
      return stop(fmt::format("{} has more than {} numbers in {}", what(), extents_max, field_));
    constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (value > largest) return stop(fmt::format("{} has the impossible number {}", what(), value));
    numbers_.push_back(value);
    return true;
  }

  bool end_array() override {
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
    if (at_ == place::metadata_names) return go(place::names);
    if (at_ == place::names) return go(place::end);
    if (at_ != place::fields) return unexpected("the end of an object");
    if (fields_.size() != 3) return stop(fmt::format("{} lacks one of dtype, shape, data_offsets", what()));
    if (!add_tensor()) return false;
    return go(place::names);
  }

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a truth value"); }
  bool number_integer(number_integer_t) override { return unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return unexpected("a fraction"); }
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

  bool add_tensor() {
    tensor_.elements = 1;
    bool fits = true;
    for (const auto extent : tensor_.extents)
      fits = fits &&
             !__builtin_mul_overflow(tensor_.elements, static_cast<std::uint64_t>(extent), &tensor_.elements);
    std::uint64_t bytes = 0;
    fits = fits && !__builtin_mul_overflow(tensor_.elements, bytes_of(tensor_.dtype), &bytes);
    if (!fits || bytes != tensor_.bytes)
      return stop(fmt::format("{} has {} bytes, which its shape and {} do not give", what(), tensor_.bytes,
                              tensor_.dtype));
    header.tensors.push_back(std::move(tensor_));
    return true;
  }

  place at_ = place::begin;
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

std::uint32_t bytes_of(std::string_view dtype) {
  const auto found = std::ranges::find(dtypes, dtype, &dtype_size::name);
  return found == dtypes.end() ? 0 : found->bytes;
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
