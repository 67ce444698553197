#include "data/tfrecord_reader.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>

namespace dlrun::data {
namespace {

template <class Value>
void append_raw(const std::string& raw, std::vector<double>& out) {
  for (std::size_t i = 0; i < raw.size(); i += sizeof(Value)) {
    Value value;
    std::memcpy(&value, raw.data() + i, sizeof value);
    out.push_back(static_cast<double>(value));
  }
}

} // namespace

tfrecord_reader::tfrecord_reader(const spec::TfRecordSpec& spec)
    : spec_(spec)
    , raw_type_(element_type_from(spec.bytes()).value_or(element_type::u1)) {}

tl::unexpected<error> tfrecord_reader::wrong(const std::string& what) const {
  return fail(error_code::bad_data, fmt::format("{}: record {}: {}", file_->name(), file_->number(), what));
}

result<void> tfrecord_reader::append_bytes(const std::string& raw, const std::string& name,
                                           std::vector<double>& out) {
  if (raw.size() % size_of(raw_type_) != 0)
    return wrong(
        fmt::format("feature \"{}\" has {} bytes, which are not whole numbers of type {}; set tfrecord.bytes",
                    name, raw.size(), to_string(raw_type_)));
  switch (raw_type_) {
  case element_type::u1: append_raw<std::uint8_t>(raw, out); break;
  case element_type::i4: append_raw<std::int32_t>(raw, out); break;
  case element_type::i8: append_raw<std::int64_t>(raw, out); break;
  case element_type::f4: append_raw<float>(raw, out); break;
  case element_type::f8: append_raw<double>(raw, out); break;
  }
  return {};
}

result<void> tfrecord_reader::append(const tf::Feature& feature, const std::string& name,
                                     std::vector<double>& out) {
  switch (feature.kind_case()) {
  case tf::Feature::kFloatList:
    out.insert(out.end(), feature.float_list().value().begin(), feature.float_list().value().end());
    return {};
  case tf::Feature::kInt64List:
    out.insert(out.end(), feature.int64_list().value().begin(), feature.int64_list().value().end());
    return {};
  case tf::Feature::kBytesList:
    if (feature.bytes_list().value_size() == 1) return append_bytes(feature.bytes_list().value(0), name, out);
    return wrong(fmt::format("feature \"{}\" has {} strings; one, of raw numbers, is read", name,
                             feature.bytes_list().value_size()));
  case tf::Feature::KIND_NOT_SET: break;
  }
  return wrong(fmt::format("feature \"{}\" is empty", name));
}

result<void> tfrecord_reader::numbers_of(const google::protobuf::RepeatedPtrField<std::string>& names,
                                         std::vector<double>& out) {
  out.clear();
  const auto& features = example_.features().feature();
  for (const auto& name : names) {
    const auto found = features.find(name);
    if (found == features.end()) {
      std::vector<std::string> there;
      for (const auto& [other, feature] : features) there.push_back(other);
      std::ranges::sort(there);
      return wrong(fmt::format("has no feature \"{}\"; it has {}", name,
                               there.empty() ? "none" : fmt::format("{}", fmt::join(there, ", "))));
    }
    if (auto done = append(found->second, name, out); !done) return done;
  }
  if (const auto bad =
          std::ranges::find_if(out, [](double value) { return !std::isfinite(static_cast<float>(value)); });
      bad != out.end())
    return wrong(fmt::format("number {} of \"{}\" is {}, not a finite 32-bit float", bad - out.begin(),
                             fmt::join(names, ", "), *bad));
  return {};
}

result<void> tfrecord_reader::parse() {
  const auto bytes = file_->record();
  if (example_.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return {};
  return wrong("its bytes are no tf.train.Example");
}

result<void> tfrecord_reader::set_shape(record_layout& layout) const {
  std::uint64_t product = 1;
  for (const auto size : spec_.shape())
    product = std::min<std::uint64_t>(product * static_cast<std::uint64_t>(size), 1ULL << 40);
  if (spec_.shape_size() == 0)
    layout.shape = {static_cast<std::uint32_t>(values_)};
  else if (product != values_)
    return wrong(fmt::format("has {} numbers, but tfrecord.shape [{}] has {}", values_,
                             fmt::join(spec_.shape(), ", "), product));
  else
    for (const auto size : spec_.shape()) layout.shape.push_back(static_cast<std::uint32_t>(size));
  return {};
}

/// Looks at the first record, and counts the others.
result<record_layout> tfrecord_reader::open(const reader_request& request) {
  request_ = request;
  auto file = tfrecord_file::open(request.records);
  if (!file) return tl::unexpected(file.error());
  file_ = std::make_unique<tfrecord_file>(std::move(*file));
  record_layout layout;
  while (true) {
    const auto there = file_->next();
    if (!there) return tl::unexpected(there.error());
    if (!*there) break;
    if (++layout.records > 1) continue;
    if (auto parsed = parse(); !parsed) return tl::unexpected(parsed.error());
    if (auto done = numbers_of(spec_.features(), numbers_); !done) return tl::unexpected(done.error());
    values_ = numbers_.size();
    if (auto shaped = set_shape(layout); !shaped) return tl::unexpected(shaped.error());
    const auto& features = example_.features().feature();
    bytes_ = raw_type_ == element_type::u1 &&
             std::ranges::all_of(spec_.features(),
                                 [&](const std::string& name) { return features.at(name).has_bytes_list(); });
    if (!request.with_targets) continue;
    if (auto done = numbers_of(spec_.target(), numbers_); !done) return tl::unexpected(done.error());
    target_values_ = numbers_.size();
  }
  layout.bytes = bytes_;
  layout.target_values = static_cast<std::int64_t>(target_values_);
  auto again = tfrecord_file::open(request.records);
  if (!again) return tl::unexpected(again.error());
  *file_ = std::move(*again);
  return layout;
}

result<std::int32_t> tfrecord_reader::single_class(const std::vector<double>& numbers) const {
  const double number = numbers.size() == 1 ? numbers[0] : -1;
  if (number >= 0 && number < std::numeric_limits<std::int32_t>::max() && number == std::floor(number))
    return static_cast<std::int32_t>(number);
  return wrong(fmt::format("its class (\"{}\") is {}; expected one whole number from 0",
                           fmt::join(spec_.target(), ", "), fmt::join(numbers, ", ")));
}

result<void> tfrecord_reader::read_example(std::uint64_t i, const record_buffers& out) {
  if (auto parsed = parse(); !parsed) return parsed;
  if (auto done = numbers_of(spec_.features(), numbers_); !done) return done;
  if (numbers_.size() != values_)
    return wrong(fmt::format("has {} numbers, but the first record {}", numbers_.size(), values_));
  for (std::size_t k = 0; k < values_; ++k) {
    if (!bytes_)
      out.floats[i * values_ + k] = static_cast<float>(numbers_[k]);
    else if (numbers_[k] >= 0 && numbers_[k] <= 255 && numbers_[k] == std::floor(numbers_[k]))
      out.bytes[i * values_ + k] = static_cast<std::uint8_t>(numbers_[k]);
    else
      return wrong(fmt::format("number {} is {}, but the first record holds bytes", k, numbers_[k]));
  }
  if (!request_.with_targets) return {};
  if (auto done = numbers_of(spec_.target(), numbers_); !done) return done;
  if (!out.classes.empty()) {
    const auto number = single_class(numbers_);
    if (!number) return tl::unexpected(number.error());
    out.classes[i] = *number;
    return {};
  }
  if (numbers_.size() != target_values_)
    return wrong(
        fmt::format("has {} target values, but the first record {}", numbers_.size(), target_values_));
  std::ranges::transform(numbers_, out.values.begin() + static_cast<std::ptrdiff_t>(i * target_values_),
                         [](double value) { return static_cast<float>(value); });
  return {};
}

result<void> tfrecord_reader::read(std::uint64_t first, std::uint64_t count, const record_buffers& out) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto there = file_->next();
    if (!there) return tl::unexpected(there.error());
    if (!*there)
      return fail(error_code::bad_data,
                  fmt::format("{}: ends after {} records: it was changed while it was read", file_->name(),
                              first + i));
    if (auto done = read_example(i, out); !done) return done;
  }
  return {};
}

} // namespace dlrun::data
