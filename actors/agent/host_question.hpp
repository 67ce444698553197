/// What the agent asks of the agents of other hosts when the job has ended.
#pragma once

#include "actors/common/ask.hpp"

#include <chrono>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace dlrun::agent {

/// A question that changes nothing, so that it may be asked again.
template <class Answer, class Message>
struct host_question {
  protocol::host_agent_actor to;
  Message message;
  std::function<bool()> is_wanted; ///< still? Else nothing more is called, nor asked
  std::function<void(const Answer&)> on_answer;
  std::function<void(std::string why)> on_failure; ///< it was asked for the last time
};

inline constexpr int question_tries = 3;
inline constexpr auto question_deadline = std::chrono::seconds(2);
inline constexpr auto question_pause = std::chrono::milliseconds(200);

template <class Answer, class Message>
void ask_host_now(protocol::agent_actor::base* self,
                  std::shared_ptr<const host_question<Answer, Message>> what, int tries) {
  common::ask(
      self, what->to, question_deadline, what->message,
      [what](const Answer& answer) {
        if (what->is_wanted()) what->on_answer(answer);
      },
      [self, what, tries](const caf::error& why) {
        if (!what->is_wanted()) return;
        if (tries == 1) return what->on_failure(fmt::format("it does not answer: {}", to_string(why)));
        common::post_later(self, self, question_pause, [self, what, tries] {
          if (what->is_wanted()) ask_host_now(self, what, tries - 1);
        });
      });
}

/// Asks on the actor `self`, which outlives what the question names. What is not answered is asked
/// again, a few times, with a pause before.
template <class Answer, class Message>
void ask_host(protocol::agent_actor::base* self, host_question<Answer, Message> what) {
  ask_host_now(self, std::make_shared<const host_question<Answer, Message>>(std::move(what)), question_tries);
}

} // namespace dlrun::agent
