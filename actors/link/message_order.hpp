/// Tells ThreadSanitizer the order that an actor's mailbox keeps. libcaf_core is not instrumented,
/// so that what was written before a message was sent would look unordered to whoever handles it,
/// and to the threads that work for that actor.
#pragma once

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DLRUN_THREAD_SANITIZER
#endif
#endif

#ifdef DLRUN_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace dlrun::link {

/// Before a message is put into the mailbox of `receiver`.
inline void message_sent([[maybe_unused]] void* receiver) {
#ifdef DLRUN_THREAD_SANITIZER
  __tsan_release(receiver);
#endif
}

/// Before `receiver` handles messages.
inline void messages_received([[maybe_unused]] void* receiver) {
#ifdef DLRUN_THREAD_SANITIZER
  __tsan_acquire(receiver);
#endif
}

} // namespace dlrun::link
