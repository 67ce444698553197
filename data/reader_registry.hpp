/// The readers that the program registered.
#pragma once

#include <dlrun/reader.hpp>

#include <span>
#include <string_view>

namespace dlrun::data {

/// Formats that dlrun reads itself.
std::span<const std::string_view> built_in_formats();

/// A reader registered as `name`. @returns bad_spec naming `key`, the word and all formats there
/// are.
result<std::unique_ptr<reader>> make_registered_reader(const std::string& name, const std::string& key);

} // namespace dlrun::data
