/// What a test wants of the actions of a core.
#pragma once

#include <variant>
#include <vector>

namespace dlrun::test {

/// The actions of one kind, in their order.
template <class Action, class Actions>
std::vector<Action> only(const Actions& actions) {
  std::vector<Action> some;
  for (const auto& action : actions)
    if (const auto* one = std::get_if<Action>(&action)) some.push_back(*one);
  return some;
}

} // namespace dlrun::test
