/// A call that can stop in its midst and be taken up again later, on a stack of its own.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <ucontext.h>

namespace dlrun::kernels::cuda {

/// Runs a function that never returns, piece by piece: resume() runs it until it calls pause().
/// Stays on the thread that made it. May be destroyed while it is paused: what then lies on its
/// stack is not destroyed.
class fiber {
public:
  /// Nothing of `body` runs yet.
  explicit fiber(std::function<void()> body);
  ~fiber();
  fiber(const fiber&) = delete;
  fiber& operator=(const fiber&) = delete;

  /// Not to be called by a fiber.
  void resume();
  /// The fiber that runs now; null outside of any.
  static fiber* current();
  /// Back to who resumed this fiber, which is current().
  void pause();

private:
  static void entry();
  void enter();

  std::function<void()> body_;
  std::unique_ptr<std::byte[]> stack_;
#if defined(__x86_64__)
  void *inside_ = nullptr, *outside_ = nullptr; ///< stack pointers of the two sides while they wait
#else
  ucontext_t inside_{}, outside_{};
#endif
  // What sanitizers want to know of a change of stacks, each in its way.
  [[maybe_unused]] void *inside_state_ = nullptr, *outside_state_ = nullptr;
  [[maybe_unused]] const void* outside_stack_ = nullptr;
  [[maybe_unused]] std::size_t outside_size_ = 0;
};

} // namespace dlrun::kernels::cuda
