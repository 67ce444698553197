#include "base/thread_team.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <limits>
#include <pthread.h>
#include <system_error>

namespace dlrun::base {
namespace {

/// How often the caller looks for the end of the others' last calls before it sleeps: a few
/// microseconds, which is less than to sleep and be woken takes.
constexpr int looks_before_sleep = 500;
constexpr std::int32_t stop_mark = -1; ///< in the place of what is left

void pause_a_moment() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

} // namespace

thread_team::thread_team(unsigned threads) {
  DLRUN_CHECK(threads >= 1, "a team of no threads");
  CPU_ZERO(&cores_);
  if (::sched_getaffinity(0, sizeof cores_, &cores_) != 0)
    CPU_ZERO(&cores_); // more cores than it has room for
  try {
    for (unsigned i = 1; i < threads; ++i) {
      helpers_.emplace_back([this] { help(); });
      ::pthread_setname_np(helpers_.back().native_handle(), "team");
    }
  } catch (const std::system_error&) { // those that there are do it
  }
}

thread_team::~thread_team() {
  stopping_ = true;
  left_ = stop_mark;
  left_.notify_all();
  for (auto& helper : helpers_) helper.join();
}

void thread_team::for_each(std::size_t count, const std::function<void(std::size_t)>& body) {
  if (helpers_.empty() || count < 2) {
    for (std::size_t i = 0; i < count; ++i) body(i);
    return;
  }
  DLRUN_CHECK(count <= std::numeric_limits<std::int32_t>::max(), "a loop of {} calls", count);
  if (const int core = ::sched_getcpu(); core != caller_core_) keep_off(core);
  body_ = &body;
  count_ = static_cast<std::int32_t>(count);
  ended_.store(0, std::memory_order_relaxed);
  left_.store(count_, std::memory_order_release);
  left_.notify_all();
  take_part();
  for (int look = 0; look < looks_before_sleep && ended_.load(std::memory_order_acquire) < count_; ++look)
    pause_a_moment();
  for (auto ended = ended_.load(std::memory_order_acquire); ended < count_;
       ended = ended_.load(std::memory_order_acquire))
    ended_.wait(ended, std::memory_order_acquire);
}

void thread_team::take_part() {
  auto left = left_.load(std::memory_order_acquire);
  while (left > 0) {
    if (!left_.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel)) continue;
    const auto count = count_;
    (*body_)(static_cast<std::size_t>(count - left));
    if (ended_.fetch_add(1, std::memory_order_acq_rel) + 1 == count) ended_.notify_all();
    left = left_.load(std::memory_order_acquire);
  }
}

void thread_team::help() {
  while (!stopping_) {
    left_.wait(0, std::memory_order_acquire);
    take_part();
  }
}

/// No core may be left to them: then they share the caller's.
void thread_team::keep_off(int core) {
  caller_core_ = core;
  auto others = cores_;
  if (core < 0 || core >= CPU_SETSIZE || !CPU_ISSET(core, &others)) return;
  CPU_CLR(core, &others);
  if (CPU_COUNT(&others) == 0) return;
  for (auto& helper : helpers_) ::pthread_setaffinity_np(helper.native_handle(), sizeof others, &others);
}

unsigned fair_threads(std::size_t parts, unsigned most) {
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  return std::clamp(static_cast<unsigned>(cores / std::max<std::size_t>(1, parts)), 1U, most);
}

} // namespace dlrun::base
