/// How a run ends in which an invariant does not hold.
#pragma once

#include <fmt/format.h>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace dlrun::simulation {

struct violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// @throws violation that names the rule.
template <class... Arguments>
[[noreturn]] void broken(std::string_view rule, fmt::format_string<Arguments...> text,
                         Arguments&&... arguments) {
  throw violation(fmt::format("{}: {}", rule, fmt::format(text, std::forward<Arguments>(arguments)...)));
}

} // namespace dlrun::simulation
