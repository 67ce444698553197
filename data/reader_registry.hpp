/// The readers that the program registered.
#pragma once

#include <dlrun/reader.hpp>

namespace dlrun::data {

/// A reader registered as `name`. @returns bad_spec naming `key`, the word and all formats there
/// are.
result<std::unique_ptr<reader>> make_registered_reader(const std::string& name, const std::string& key);

} // namespace dlrun::data
