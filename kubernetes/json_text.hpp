/// Reads what may be missing, or of another kind, in objects of Kubernetes.
#pragma once

#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>

namespace dlrun::kubernetes {

/// null where `of` is no object, or has none.
inline const nlohmann::json& member(const nlohmann::json& of, const char* name) {
  static const nlohmann::json none;
  const auto found = of.is_object() ? of.find(name) : of.end();
  return of.is_object() && found != of.end() ? *found : none;
}

/// "" where there is no text.
inline std::string text_in(const nlohmann::json& of, const char* name) {
  const auto& found = member(of, name);
  return found.is_string() ? found.get<std::string>() : "";
}

/// The same by a path, as in "/metadata/uid".
inline std::string text_at(const nlohmann::json& of, const char* path) {
  const nlohmann::json::json_pointer at{path};
  return of.contains(at) && of.at(at).is_string() ? of.at(at).get<std::string>() : "";
}

/// Decimal digits alone.
inline std::optional<std::uint32_t> number_of(const std::string& text) {
  std::uint32_t number = 0;
  const auto* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc{} && read.ptr == end ? std::optional{number} : std::nullopt;
}

} // namespace dlrun::kubernetes
