/// Sends the report to the agent, where the run folder is.
#pragma once

#include "actors/protocol/handles.hpp"

#include <functional>
#include <string>

namespace dlrun::coordinator {

/// In parts that a message has room for, one after the other; an unanswered one is sent again.
/// Called by its actor `self` only, which outlives this.
class report_sender {
public:
  using pointer = protocol::coordinator_actor::base*;

  explicit report_sender(pointer self)
      : self_(self) {}

  /// `done` is called when it is in the run folder, with nothing, or with why it cannot be.
  void send(const protocol::agent_actor& to, dlrun::incarnation coordinator, std::string text,
            std::function<void(const std::string& failure)> done);

private:
  void send_from(std::uint64_t offset);

  pointer self_;
  protocol::agent_actor to_;
  dlrun::incarnation coordinator_;
  std::string text_;
  std::function<void(const std::string&)> done_;
};

} // namespace dlrun::coordinator
