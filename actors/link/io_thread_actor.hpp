/// Actors on the thread of the sockets.
#pragma once

#include "actors/link/message_order.hpp"
#include "base/entry_lock.hpp"

#include <caf/io/middleman.hpp>
#include <caf/stateful_actor.hpp>

namespace dlrun::link {

/// An actor that CAF runs on the thread that reads and writes the sockets, as it does brokers, and
/// not on those of the scheduler. A message from another process reaches it, and what it sends in
/// turn leaves, without another thread being woken: on the way of a step that is a tenth of a
/// millisecond each time, and on a busy machine more. Its handlers keep all other messages of the
/// process waiting, so they must be short, and what takes time belongs on a thread of its own. In a
/// system without sockets the scheduler runs it.
///
/// While a handler runs it holds entry(). A thread that the actor owns may enter as well, and then
/// calls what a handler would call, but for what belongs to the actor's own life: quit(), requests
/// and delayed messages are for handlers (common::post). What it may send, it may send from there.
template <class State, class Handle>
class io_thread_actor : public caf::stateful_actor<State, typename Handle::base> {
  using super = caf::stateful_actor<State, typename Handle::base>;

public:
  using super::enqueue;
  using super::super;

  void enqueue(caf::mailbox_element_ptr message, caf::execution_unit* unit) override {
    auto& system = this->home_system();
    message_sent(this);
    super::enqueue(std::move(message), system.has_middleman() ? &system.middleman().backend() : unit);
  }

  caf::resumable::subtype_t subtype() const override { return caf::resumable::io_actor; }

  caf::resumable::resume_result resume(caf::execution_unit* unit, std::size_t messages_max) override {
    const std::scoped_lock inside{entry_};
    messages_received(this);
    return super::resume(unit, messages_max);
  }

  base::entry_lock& entry() { return entry_; }

private:
  base::entry_lock entry_;
};

} // namespace dlrun::link
