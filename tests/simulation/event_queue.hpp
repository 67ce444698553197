/// Virtual time: what happens next. Two events of one time happen in the order in which they were
/// added.
#pragma once

#include "actors/protocol/time.hpp"

#include <functional>
#include <queue>
#include <vector>

namespace dlrun::simulation {

class process;

struct event {
  protocol::time_point at;
  std::uint64_t number = 0;
  process* owner =
      nullptr; ///< does not happen when it is dead, waits when it is frozen; null = the world's own
  std::function<void()> what;
};

class event_queue {
public:
  void add(protocol::time_point at, process* owner, std::function<void()> what) {
    heap_.push({at, next_++, owner, std::move(what)});
  }
  bool empty() const { return heap_.empty(); }
  event pop() {
    event next = std::move(const_cast<event&>(heap_.top())); // the heap is not looked at before pop()
    heap_.pop();
    return next;
  }

private:
  struct later {
    bool operator()(const event& a, const event& b) const {
      return a.at != b.at ? a.at > b.at : a.number > b.number;
    }
  };
  std::priority_queue<event, std::vector<event>, later> heap_;
  std::uint64_t next_ = 0;
};

} // namespace dlrun::simulation
