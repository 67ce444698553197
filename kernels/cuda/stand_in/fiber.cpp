#include "kernels/cuda/stand_in/fiber.hpp"

#include <cstdint>
#include <cstring>
#include <dlrun/check.hpp>
#include <utility>

#if defined(__has_feature) // Clang
#if __has_feature(address_sanitizer)
#define DLRUN_FIBER_ADDRESS_SANITIZER
#elif __has_feature(thread_sanitizer)
#define DLRUN_FIBER_THREAD_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define DLRUN_FIBER_ADDRESS_SANITIZER
#elif defined(__SANITIZE_THREAD__)
#define DLRUN_FIBER_THREAD_SANITIZER
#endif

#if defined(DLRUN_FIBER_ADDRESS_SANITIZER)
#include <sanitizer/common_interface_defs.h>
#elif defined(DLRUN_FIBER_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

#if defined(__x86_64__)
// swapcontext() asks the kernel about signals each time, which takes longer than what a thread of a
// block does between two barriers. This keeps what a call must keep, and changes the stack.
extern "C" void dlrun_switch_stack(void** from, void* to);
asm(R"(
.text
.p2align 4
.type dlrun_switch_stack, @function
dlrun_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size dlrun_switch_stack, . - dlrun_switch_stack
)");
#endif

namespace dlrun::kernels::cuda {
namespace {

/// Enough for kernels that are not optimised, with a sanitizer's room around each variable. Pages
/// that nobody touches are not there.
constexpr std::size_t stack_bytes = 128 * 1024;

thread_local fiber* running = nullptr;

} // namespace

fiber::fiber(std::function<void()> body)
    : body_(std::move(body))
    , stack_(std::make_unique_for_overwrite<std::byte[]>(stack_bytes)) {
#if defined(__x86_64__)
  // As dlrun_switch_stack leaves a stack: six registers, and where to go on. A function begins on a
  // stack that is 8 bytes off a multiple of 16.
  const auto top = reinterpret_cast<std::uintptr_t>(stack_.get() + stack_bytes) / 16 * 16;
  std::uintptr_t frame[8] = {0, 0, 0, 0, 0, 0, reinterpret_cast<std::uintptr_t>(&fiber::entry), 0};
  inside_ = reinterpret_cast<void*>(top - sizeof(frame));
  std::memcpy(inside_, frame, sizeof(frame));
#else
  DLRUN_CHECK(getcontext(&inside_) == 0, "a context of this thread can be had");
  inside_.uc_stack.ss_sp = stack_.get();
  inside_.uc_stack.ss_size = stack_bytes;
  makecontext(&inside_, &fiber::entry, 0);
#endif
#if defined(DLRUN_FIBER_THREAD_SANITIZER)
  inside_state_ = __tsan_create_fiber(0);
#endif
}

fiber::~fiber() {
#if defined(DLRUN_FIBER_THREAD_SANITIZER)
  __tsan_destroy_fiber(inside_state_);
#endif
}

fiber* fiber::current() { return running; }

void fiber::entry() {
  fiber* const self = running;
  self->enter();
  self->body_();
  DLRUN_CHECK(false, "the function of a fiber never returns");
}

/// First thing on the fiber's side after a change of stacks.
void fiber::enter() {
#if defined(DLRUN_FIBER_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(inside_state_, &outside_stack_, &outside_size_);
#endif
}

void fiber::resume() {
  DLRUN_CHECK(running == nullptr, "a fiber resumes no other");
  running = this;
#if defined(DLRUN_FIBER_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(&outside_state_, stack_.get(), stack_bytes);
#elif defined(DLRUN_FIBER_THREAD_SANITIZER)
  outside_state_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(inside_state_, 0);
#endif
#if defined(__x86_64__)
  dlrun_switch_stack(&outside_, inside_);
#else
  swapcontext(&outside_, &inside_);
#endif
#if defined(DLRUN_FIBER_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(outside_state_, nullptr, nullptr);
#endif
}

void fiber::pause() {
  running = nullptr;
#if defined(DLRUN_FIBER_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(&inside_state_, outside_stack_, outside_size_);
#elif defined(DLRUN_FIBER_THREAD_SANITIZER)
  __tsan_switch_to_fiber(outside_state_, 0);
#endif
#if defined(__x86_64__)
  dlrun_switch_stack(&inside_, outside_);
#else
  swapcontext(&inside_, &outside_);
#endif
  enter();
}

} // namespace dlrun::kernels::cuda
