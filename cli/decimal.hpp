/// Options that are whole numbers.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <fmt/format.h>
#include <string>

namespace dlrun::cli {

/// A check for an option: decimal digits alone. CLI11 would take "010" for eight, and "0x10", "+5"
/// and " 5". What is above 2^64 - 1 it would take for that.
inline CLI::Validator decimal() {
  return {[](const std::string& text) -> std::string {
            std::uint64_t value = 0;
            const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
            const bool whole = failed == std::errc{} && end == text.data() + text.size();
            if (whole && (text.size() == 1 || text.front() != '0')) return {};
            return fmt::format("'{}' is not a whole number in decimal digits, as in 12", text);
          },
          "", "decimal"};
}

} // namespace dlrun::cli
