/// Of what a core decided, the actions of one kind.
#pragma once

#include <gtest/gtest.h>
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

/// The one action of that kind; a failed test when there is none, or more.
template <class Action, class... Actions>
Action the_only(const std::vector<std::variant<Actions...>>& actions) {
  const auto some = only<Action>(actions);
  EXPECT_EQ(some.size(), 1U);
  return some.empty() ? Action{} : some.front();
}

} // namespace dlrun::test
