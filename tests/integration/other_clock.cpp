// Preloaded into a program, whose wall clock then is OTHER_CLOCK_S seconds ahead; behind, where
// that is negative. Its monotonic clock is as it was, and nobody waits for longer or shorter.
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/time.h>

namespace {

/// What the C library has under that name, in its newest version.
template <class function>
function* next(const char* name) {
  return reinterpret_cast<function*>(::dlsym(RTLD_NEXT, name));
}

std::time_t ahead_s() {
  static const auto seconds = [] {
    const char* text = std::getenv("OTHER_CLOCK_S");
    return text == nullptr ? 0 : std::strtoll(text, nullptr, 10);
  }();
  return static_cast<std::time_t>(seconds);
}

/// A deadline may be one of the monotonic clock, which begins with the machine.
timespec as_the_kernel_counts(timespec deadline) {
  constexpr std::time_t wall_clock_least = 1'000'000'000;
  if (deadline.tv_sec > wall_clock_least) deadline.tv_sec -= ahead_s();
  return deadline;
}

} // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  static auto* const ask = next<int(clockid_t, timespec*)>("clock_gettime");
  const int failed = ask(clock, now);
  if (failed == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += ahead_s();
  return failed;
}

int gettimeofday(timeval* now, void* zone) noexcept {
  static auto* const ask = next<int(timeval*, void*)>("gettimeofday");
  const int failed = ask(now, zone);
  if (failed == 0) now->tv_sec += ahead_s();
  return failed;
}

std::time_t time(std::time_t* now) noexcept {
  timespec told{};
  clock_gettime(CLOCK_REALTIME, &told);
  if (now != nullptr) *now = told.tv_sec;
  return told.tv_sec;
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
  static auto* const wait =
      next<int(pthread_cond_t*, pthread_mutex_t*, const timespec*)>("pthread_cond_timedwait");
  const auto deadline = as_the_kernel_counts(*until);
  return wait(condition, mutex, &deadline);
}

int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* until) noexcept {
  static auto* const lock = next<int(pthread_mutex_t*, const timespec*)>("pthread_mutex_timedlock");
  const auto deadline = as_the_kernel_counts(*until);
  return lock(mutex, &deadline);
}

int sem_timedwait(sem_t* semaphore, const timespec* until) {
  static auto* const wait = next<int(sem_t*, const timespec*)>("sem_timedwait");
  const auto deadline = as_the_kernel_counts(*until);
  return wait(semaphore, &deadline);
}

} // extern "C"
