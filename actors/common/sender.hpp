/// Periodic reports that cannot pile up: one on the way, the next one when it was taken.
#pragma once

#include "actors/common/ask.hpp"

namespace dlrun::common {

/// How long a report may stay unanswered before the next one is sent all the same. A frozen
/// receiver (SIGSTOP) costs one message each such period and not one each tick.
inline constexpr auto report_deadline = std::chrono::seconds(2);

/// Sends periodic reports of one kind to one receiver, one at a time. `send` while a report is
/// unanswered only marks the sender dirty; `again()` then says that a fresh report is due. Must
/// live as long as the actor.
template <class Message>
class latest_sender {
public:
  /// @param on_free runs on the actor when the receiver took a report and a newer one was asked for
  /// meanwhile.
  template <class Self, class Handle, class OnFree>
  void send(Self* self, const Handle& to, Message message, OnFree on_free) {
    if (busy_) {
      dirty_ = true;
      return;
    }
    busy_ = true;
    dirty_ = false;
    const auto done = [this, on_free, receiver = receiver_](bool taken) {
      if (receiver != receiver_) return;
      busy_ = false;
      if (taken && dirty_) on_free();
    };
    ask(
        self, to, report_deadline, std::move(message), [done] { done(true); },
        [done](const caf::error&) { done(false); });
  }

  /// The same for a message with an answer, which `on_answer` gets, on the actor. What comes while
  /// one is on the way is left out: the next period sends a newer one.
  template <class Answer, class Self, class Handle, class OnAnswer>
  void send_for_answer(Self* self, const Handle& to, Message message, OnAnswer on_answer) {
    if (busy_) return;
    busy_ = true;
    ask(
        self, to, report_deadline, std::move(message),
        [this, on_answer](const Answer& answer) {
          busy_ = false;
          on_answer(answer);
        },
        [this](const caf::error&) { busy_ = false; });
  }

  /// What is on the way went to a receiver that is gone: the next one is not kept waiting for it.
  void change_receiver() {
    ++receiver_;
    busy_ = false;
  }

private:
  std::uint64_t receiver_ = 0; ///< counts them
  bool busy_ = false;
  bool dirty_ = false;
};

} // namespace dlrun::common
