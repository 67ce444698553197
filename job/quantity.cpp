#include "job/quantity.hpp"

#include "base/decimal.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace dlrun::job {
namespace {

struct unit {
  std::string_view name;
  double factor;
};

constexpr std::array time_units = {unit{"ns", 1e-9}, unit{"us", 1e-6},  unit{"ms", 1e-3},  unit{"s", 1},
                                   unit{"min", 60},  unit{"h", 3600.0}, unit{"d", 86400.0}};

constexpr std::uint64_t count_max = 1'000'000'000'000;

constexpr double kibi = 1024;
constexpr std::array size_units = {unit{"", 1},
                                   unit{"B", 1},
                                   unit{"kB", 1e3},
                                   unit{"KB", 1e3},
                                   unit{"MB", 1e6},
                                   unit{"GB", 1e9},
                                   unit{"TB", 1e12},
                                   unit{"KiB", kibi},
                                   unit{"MiB", kibi* kibi},
                                   unit{"GiB", kibi* kibi* kibi},
                                   unit{"TiB", kibi* kibi* kibi* kibi}};

template <std::size_t Count>
std::optional<double> parse(std::string_view text, const std::array<unit, Count>& units) {
  double number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc{} || !std::isfinite(number) || number < 0 || base::has_leading_zero(text))
    return std::nullopt;
  auto name = text.substr(static_cast<std::size_t>(end - text.data()));
  while (name.starts_with(' ')) name.remove_prefix(1);
  for (const auto& one : units)
    if (one.name == name) return number * one.factor;
  return std::nullopt;
}

} // namespace

std::optional<double> parse_duration(std::string_view text) { return parse(text, time_units); }

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  const auto bytes = parse(text, size_units);
  if (!bytes || *bytes >= 0x1p63) return std::nullopt;
  return static_cast<std::uint64_t>(*bytes);
}

std::optional<std::uint64_t> parse_count(std::string_view text) {
  const auto count = base::parse_decimal<std::uint64_t>(text);
  return count && *count <= count_max ? count : std::nullopt;
}

std::optional<interval> parse_interval(std::string_view text) {
  interval parsed;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), parsed.count);
  if (failed != std::errc{} || parsed.count < 1 || parsed.count > count_max || base::has_leading_zero(text))
    return std::nullopt;
  auto unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  parsed.epochs = unit == "epoch" || unit == "epochs";
  if (!parsed.epochs && unit != "step" && unit != "steps") return std::nullopt;
  return parsed;
}

} // namespace dlrun::job
