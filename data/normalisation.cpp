#include "data/normalisation.hpp"

#include <cmath>
#include <cstring>

namespace dlrun::data {
namespace {

template <class Value>
Value load(const std::uint8_t* at) {
  Value value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class Value, class Convert>
void for_values(std::span<const std::uint8_t> bytes, std::span<float> out, Convert convert) {
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = convert(load<Value>(bytes.data() + i * sizeof(Value)));
}

template <class Convert>
void for_type(std::span<const std::uint8_t> bytes, element_type type, std::span<float> out, Convert convert) {
  switch (type) {
  case element_type::u1: return for_values<std::uint8_t>(bytes, out, convert);
  case element_type::i4: return for_values<std::int32_t>(bytes, out, convert);
  case element_type::i8: return for_values<std::int64_t>(bytes, out, convert);
  case element_type::f4: return for_values<float>(bytes, out, convert);
  case element_type::f8: return for_values<double>(bytes, out, convert);
  }
}

void normalise_bytes(std::span<const std::uint8_t> bytes, float mean, float std, std::span<float> out) {
  const std::uint8_t* const from = bytes.data();
  float* const to = out.data();
#pragma GCC ivdep // bytes may alias anything: these do not
  for (std::size_t i = 0; i < out.size(); ++i) to[i] = (static_cast<float>(from[i]) / 255.0F - mean) / std;
}

} // namespace

void to_floats(std::span<const std::uint8_t> bytes, element_type type, std::span<float> out) {
  for_type(bytes, type, out, [](auto value) { return static_cast<float>(value); });
}

void normalise(std::span<const std::uint8_t> bytes, element_type type, double mean, double std,
               std::span<float> out) {
  const auto mean32 = static_cast<float>(mean);
  const auto std32 = static_cast<float>(std);
  if (type == element_type::u1) return normalise_bytes(bytes, mean32, std32, out);
  if (type == element_type::f4) {
    for_values<float>(bytes, out, [=](float value) { return (value - mean32) / std32; });
    return;
  }
  for_type(bytes, type, out,
           [=](auto value) { return static_cast<float>((static_cast<double>(value) - mean) / std); });
}

void running_statistics::add(double value) {
  count_ += 1;
  const double before = value - mean_;
  mean_ += before / count_;
  squares_ += before * (value - mean_);
}

double running_statistics::std() const {
  const double spread = std::sqrt(squares_ / count_);
  return spread > 0 ? spread : 1;
}

} // namespace dlrun::data
