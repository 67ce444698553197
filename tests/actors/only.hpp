/// Of what a core decided, the actions of one kind.
#pragma once

#include <variant>
#include <vector>

namespace dlrun::test {

template <class Action, class... Actions>
std::vector<Action> only(const std::vector<std::variant<Actions...>>& actions) {
  std::vector<Action> some;
  for (const auto& action : actions)
    if (const auto* one = std::get_if<Action>(&action)) some.push_back(*one);
  return some;
}

} // namespace dlrun::test
