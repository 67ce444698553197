/// What a test that plays a role was sent.
#pragma once

#include <caf/all.hpp>
#include <chrono>
#include <vector>

namespace dlrun::test {

/// The messages of one kind that came since the last call.
template <class Message>
std::vector<Message> take(caf::scoped_actor& who) {
  std::vector<Message> all;
  bool more = true;
  while (more)
    who->receive([&](const Message& message) { all.push_back(message); },
                 caf::after(std::chrono::seconds(0)) >> [&more] { more = false; });
  return all;
}

} // namespace dlrun::test
