#include "actors/common/progress_word.hpp"

#include "base/os_error.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace dlrun::common {

using base::fail_errno;
using base::unique_fd;
using protocol::slot_progress;

namespace {

constexpr std::size_t word_bytes = 4096;
constexpr int word_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr std::uint32_t in_slot = 1;
constexpr std::uint32_t is_examined = 2;

/// Whose doing the end is, as the dying process noted.
enum class culprit : std::uint32_t { unknown, outside, elsewhere, computing, reading };

/// Written by one thread. An odd sequence: it is being written.
struct lane_memory {
  std::atomic<std::uint64_t> sequence;
  std::atomic<std::uint64_t> step;
  std::atomic<std::uint32_t> slot;
  std::atomic<std::uint32_t> record;
  std::atomic<std::uint32_t> flags;

  void write(std::uint32_t new_flags, const protocol::parked_slot& at) {
    const auto before = sequence.load(std::memory_order_relaxed);
    sequence.store(before + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    step.store(at.step.value, std::memory_order_relaxed);
    slot.store(at.slot.value, std::memory_order_relaxed);
    record.store(at.record, std::memory_order_relaxed);
    flags.store(new_flags, std::memory_order_relaxed);
    sequence.store(before + 2, std::memory_order_release);
  }

  /// Nothing while it is being written, or when its writer died at that.
  std::optional<progress_word::work> read() const {
    const auto before = sequence.load(std::memory_order_acquire);
    progress_word::work found{before, std::nullopt};
    const auto now = flags.load(std::memory_order_relaxed);
    if ((now & in_slot) != 0)
      found.at = slot_progress{{{step.load(std::memory_order_relaxed)},
                                {slot.load(std::memory_order_relaxed)},
                                record.load(std::memory_order_relaxed)},
                               (now & is_examined) != 0};
    std::atomic_thread_fence(std::memory_order_acquire);
    if (before % 2 != 0 || sequence.load(std::memory_order_relaxed) != before) return std::nullopt;
    return found;
  }
};

/// Signals whose default is the end, and for which no part of dlrun has another use.
constexpr std::array fatal_signals{SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGABRT,   SIGSYS,  SIGTRAP, SIGQUIT,
                                   SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU, SIGVTALRM, SIGXFSZ, SIGPROF};
/// Of these, the ones that an instruction or abort() raises: nobody else is to be suspected when
/// the handler could not run, as when the stack has run out.
constexpr std::array raised_by_code{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP};

/// A signal handler has no other way to find it. Set once.
std::atomic<std::atomic<culprit>*> noted_at{nullptr};

culprit culprit_of_this_thread() {
  std::array<char, 16> name{};
  ::prctl(PR_GET_NAME, name.data());
  if (std::strcmp(name.data(), "compute") == 0) return culprit::computing;
  return std::strcmp(name.data(), "prefetch") == 0 ? culprit::reading : culprit::elsewhere;
}

/// The first word counts.
void note(culprit who) {
  auto* place = noted_at.load();
  if (place == nullptr) return;
  auto expected = culprit::unknown;
  place->compare_exchange_strong(expected, who);
}

/// Installed with SA_RESETHAND: what follows has the default effect.
void on_fatal_signal(int number, siginfo_t* info, void*) {
  const bool by_kernel = info->si_code > 0; // of an instruction; it is run again
  const bool own = by_kernel || info->si_pid == ::getpid();
  note(own ? culprit_of_this_thread() : culprit::outside);
  if (!by_kernel) ::raise(number);
}

void on_exit() { note(culprit_of_this_thread()); }

template <std::size_t Size>
bool contains(const std::array<int, Size>& all, int number) {
  return std::find(all.begin(), all.end(), number) != all.end();
}

} // namespace

struct progress_word::memory {
  lane_memory computing;
  lane_memory reading;
  std::atomic<culprit> end;
  std::atomic<bool> failed;
  std::atomic<bool> gpu_failed;

  lane_memory& of(work_lane lane) { return lane == work_lane::computing ? computing : reading; }
};

void progress_word::unmap::operator()(memory* mapped) const { ::munmap(mapped, word_bytes); }

progress_word::progress_word(unique_fd fd, memory* mapped)
    : fd_(std::move(fd))
    , memory_(mapped) {}

result<progress_word> progress_word::map(unique_fd fd) {
  static_assert(sizeof(memory) <= word_bytes && std::atomic<std::uint64_t>::is_always_lock_free);
  void* mapped = ::mmap(nullptr, word_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (mapped == MAP_FAILED) return fail_errno("cannot map a worker's progress");
  return progress_word(std::move(fd), static_cast<memory*>(mapped)); // zeroes are its first state
}

result<progress_word> progress_word::create() {
  unique_fd fd(::memfd_create("dlrun:progress", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ::ftruncate(fd.get(), word_bytes) != 0 || ::fcntl(fd.get(), F_ADD_SEALS, word_seals) != 0)
    return fail_errno("cannot create the memory for a worker's progress");
  return map(std::move(fd));
}

result<progress_word> progress_word::open(unique_fd fd) {
  struct stat file {};
  if (::fcntl(fd.get(), F_GET_SEALS) != word_seals || ::fstat(fd.get(), &file) != 0 ||
      static_cast<std::size_t>(file.st_size) != word_bytes)
    return fail(
        error_code::bad_usage,
        fmt::format("descriptor {} is no worker's progress; this process is meant to be started by dlrun",
                    fd.get()));
  return map(std::move(fd));
}

// ---- the worker

void progress_word::enter(work_lane lane, const slot_progress& what) {
  memory_->of(lane).write(in_slot | (what.examined ? is_examined : 0), what.at);
}

void progress_word::leave(work_lane lane) { memory_->of(lane).write(0, {}); }

void progress_word::note_failure() { memory_->failed.store(true); }

void progress_word::note_gpu_failure() { memory_->gpu_failed.store(true); }

void progress_word::watch_the_end() {
  noted_at.store(&memory_->end);
  struct sigaction action {};
  action.sa_sigaction = on_fatal_signal;
  action.sa_flags = static_cast<int>(SA_SIGINFO | SA_RESETHAND | SA_NODEFER | SA_ONSTACK);
  for (const int number : fatal_signals) ::sigaction(number, &action, nullptr);
  std::atexit(on_exit);
}

void progress_word::survive_stack_overflow() {
  thread_local std::vector<std::byte> stack;
  if (!stack.empty()) return;
  stack.resize(std::size_t{64} << 10);
  const stack_t there{.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
  ::sigaltstack(&there, nullptr);
}

// ---- the agent

progress_word::work progress_word::look() const {
  for (int attempt = 0; attempt < 100; ++attempt)
    if (const auto found = memory_->computing.read()) return *found;
  return {}; // it is busy: nothing that hangs
}

std::optional<slot_progress> progress_word::slot_of_death(const process_end& how) const {
  const auto at = [](const lane_memory& lane) {
    const auto found = lane.read();
    return found ? found->at : std::nullopt;
  };
  if (how.signaled && how.code_or_signal == SIGKILL)
    return how.out_of_memory ? at(memory_->computing) : std::nullopt;
  if (!how.signaled && how.code_or_signal != 0 && memory_->failed) return at(memory_->computing);
  switch (memory_->end.load()) {
  case culprit::outside:
  case culprit::elsewhere: return std::nullopt;
  case culprit::reading: return at(memory_->reading);
  case culprit::computing: return at(memory_->computing);
  case culprit::unknown: break;
  }
  if (how.signaled && !contains(raised_by_code, how.code_or_signal)) return std::nullopt;
  return at(memory_->computing);
}

bool progress_word::gpu_failed() const { return memory_->gpu_failed.load(); }

} // namespace dlrun::common
