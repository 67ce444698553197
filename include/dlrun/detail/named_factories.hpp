/// What a program registers by name: readers, layers, metrics. Not installed.
#pragma once

#include <algorithm>
#include <atomic>
#include <cctype>
#include <dlrun/error.hpp>
#include <exception>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace dlrun::detail {

/// Set by run_role(): the processes of a run would not know what is registered later.
inline std::atomic<bool> registration_is_over = false;

/// Whether a job file may contain `text` as the name of a registered thing: 1 to 100 characters.
inline bool is_registrable(std::string_view text) {
  constexpr std::size_t length_max = 100;
  const auto letter_or_digit = [](unsigned char c) { return c < 0x80 && std::isalnum(c) != 0; };
  return !text.empty() && text.size() <= length_max && letter_or_digit(static_cast<unsigned char>(text[0])) &&
         std::ranges::all_of(
             text, [&](unsigned char c) { return letter_or_digit(c) || c == '.' || c == '_' || c == '-'; });
}

/// The factories that a program has registered for one kind of thing, by name. Thread-safe.
template <class Factory>
class named_factories {
public:
  /// Errors call such a thing `kind`, e.g. "reader"; the names in `built_in` are taken.
  explicit named_factories(std::string kind, std::span<const std::string_view> built_in = {})
      : kind_(std::move(kind))
      , built_in_(built_in) {}

  result<void> add(const std::string& name, Factory factory) {
    if (!is_registrable(name) || !factory)
      return fail(error_code::bad_usage,
                  fmt::format("a {} needs a factory and a name of letters, digits, '.', '_', '-', not '{}'",
                              kind_, name));
    if (registration_is_over)
      return fail(error_code::bad_usage,
                  fmt::format("{} '{}' is registered after run_role(), so that the processes of a run would "
                              "not know it: register it before",
                              kind_, name));
    const std::scoped_lock lock{mutex_};
    const bool taken = std::ranges::find(built_in_, name) != built_in_.end();
    if (taken || !factories_.emplace(name, std::move(factory)).second)
      return fail(error_code::bad_usage, fmt::format("there is a {} '{}' already", kind_, name));
    return {};
  }

  /// The factory of that name; nothing if none was registered.
  std::optional<Factory> find(const std::string& name) const {
    const std::scoped_lock lock{mutex_};
    const auto found = factories_.find(name);
    return found == factories_.end() ? std::nullopt : std::optional<Factory>{found->second};
  }

  /// All names, built-in ones first: "idx, csv, points"; "none".
  std::string names() const {
    const std::scoped_lock lock{mutex_};
    std::string all;
    for (const auto name : built_in_) all.append(all.empty() ? "" : ", ").append(name);
    for (const auto& [name, factory] : factories_) all.append(all.empty() ? "" : ", ").append(name);
    return all.empty() ? "none" : all;
  }

private:
  std::string kind_;
  std::span<const std::string_view> built_in_;
  mutable std::mutex mutex_;
  std::map<std::string, Factory> factories_;
};

/// Calls `make`. @returns what it returns; bad_usage when it throws or makes null, which calls the
/// factory `what`, e.g. "layer type 'swish'".
template <class Make>
auto call_factory(const std::string& what, const Make& make) -> decltype(make()) {
  try {
    auto made = make();
    if (made && *made == nullptr)
      return fail(error_code::bad_usage, fmt::format("the factory of {} made nothing", what));
    return made;
  } catch (const std::exception& thrown) {
    return fail(error_code::bad_usage, fmt::format("the factory of {} threw: {}", what, thrown.what()));
  }
}

} // namespace dlrun::detail
