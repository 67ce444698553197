#include "data/reader_registry.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <mutex>

namespace dlrun::data {
namespace {

constexpr std::array<std::string_view, 5> built_in = {"idx", "csv", "image_folder", "npy", "tfrecord"};
constexpr std::size_t name_length_max = 100;

struct registry {
  std::mutex mutex;
  std::map<std::string, reader_factory> factories;
};

/// The only state of this library that outlives a call: a program says once which formats it reads.
registry& readers() {
  static registry all;
  return all;
}

bool is_name(const std::string& text) {
  const auto letter_or_digit = [](unsigned char c) { return c < 0x80 && std::isalnum(c) != 0; };
  return !text.empty() && text.size() <= name_length_max &&
         letter_or_digit(static_cast<unsigned char>(text[0])) &&
         std::ranges::all_of(
             text, [&](unsigned char c) { return letter_or_digit(c) || c == '.' || c == '_' || c == '-'; });
}

} // namespace

std::span<const std::string_view> built_in_formats() { return built_in; }

result<void> register_reader(const std::string& name, reader_factory factory) {
  if (!is_name(name) || !factory)
    return fail(
        error_code::bad_usage,
        fmt::format("a reader needs a factory and a name of letters, digits, '.', '_', '-', not '{}'", name));
  const std::scoped_lock lock{readers().mutex};
  const bool taken = std::ranges::find(built_in, name) != built_in.end();
  if (taken || !readers().factories.emplace(name, std::move(factory)).second)
    return fail(error_code::bad_usage, fmt::format("there is a reader '{}' already", name));
  return {};
}

result<std::unique_ptr<reader>> make_registered_reader(const std::string& name, const std::string& key) {
  const std::scoped_lock lock{readers().mutex};
  const auto& factories = readers().factories;
  if (const auto found = factories.find(name); found != factories.end()) {
    if (auto made = found->second()) return made;
    return fail(error_code::bad_usage, fmt::format("the factory of reader '{}' made nothing", name));
  }
  std::vector<std::string> names(built_in.begin(), built_in.end());
  for (const auto& [registered, factory] : factories) names.push_back(registered);
  return fail(error_code::bad_spec,
              fmt::format("{}: no reader is called \"{}\"; there are {}", key, name, fmt::join(names, ", ")));
}

} // namespace dlrun::data
