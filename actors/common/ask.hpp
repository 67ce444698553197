/// Requests with a deadline and both handlers; there is no other way to ask in this code.
#pragma once

#include "actors/protocol/handles.hpp"
#include "actors/protocol/time.hpp"

#include <utility>

namespace dlrun::common {

/// Sends `message` to `to`. Exactly one of the handlers runs, on the actor: `on_answer` with the
/// response, `on_error` at the deadline or when the receiver is gone. (Of one on a host
/// that is cut off it is the deadline: keep deadlines short.)
template <class Self, class Handle, class Message, class OnAnswer, class OnError>
void ask(Self* self, const Handle& to, protocol::duration deadline, Message message, OnAnswer on_answer,
         OnError on_error) {
  self->request(to, std::chrono::duration_cast<caf::timespan>(deadline), std::move(message))
      .then(std::move(on_answer), std::move(on_error));
}

/// The same for a message that carries a handle of the sender.
template <class Self, class Handle, class Message, class Carried, class OnAnswer, class OnError>
void ask_with(Self* self, const Handle& to, protocol::duration deadline, Message message, Carried carried,
              OnAnswer on_answer, OnError on_error) {
  self->request(to, std::chrono::duration_cast<caf::timespan>(deadline), std::move(message),
                std::move(carried))
      .then(std::move(on_answer), std::move(on_error));
}

/// What every actor does with a continuation.
inline void run(const protocol::continuation& task) {
  if (task.run && *task.run) (*task.run)();
}

/// Runs `task` on the actor `to`, from any thread. Dropped when the actor is gone.
template <class Handle>
void post(const Handle& to, std::function<void()> task) {
  caf::anon_send(to, protocol::continuation{std::make_shared<const std::function<void()>>(std::move(task))});
}

/// Runs `task` on the actor `to`, which may be `self`, after a while. Dropped when one is gone.
template <class Self, class To>
void post_later(Self* self, const To& to, protocol::duration after, std::function<void()> task) {
  self->delayed_send(to, std::chrono::duration_cast<caf::timespan>(after),
                     protocol::continuation{std::make_shared<const std::function<void()>>(std::move(task))});
}

/// Runs tasks on an actor, for threads that the actor owns: it holds the actor weakly, so that they
/// do not keep it alive.
template <class Handle>
class poster {
public:
  explicit poster(const Handle& to)
      : to_(caf::actor_cast<caf::weak_actor_ptr>(to)) {}
  void operator()(std::function<void()> task) const {
    if (const auto strong = to_.lock()) post(caf::actor_cast<Handle>(strong), std::move(task));
  }

private:
  caf::weak_actor_ptr to_;
};

} // namespace dlrun::common
