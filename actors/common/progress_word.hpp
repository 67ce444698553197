/// What a worker is at, in memory that outlives it: by this its death is told from one that is not
/// the data's doing (rule R18).
#pragma once

#include "actors/protocol/parking.hpp"
#include "base/unique_fd.hpp"

#include <cstdint>
#include <dlrun/error.hpp>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace dlrun::common {

/// The two activities on the records of a slot. Each is on one thread at a time.
enum class work_lane : std::uint8_t { computing, reading };

/// How a process ended, as the kernel tells its parent.
struct process_end {
  bool signaled = false;      ///< by a signal; else by exit()
  int code_or_signal = 0;     ///< which
  bool out_of_memory = false; ///< the kernel killed it because memory had run out
};

/// Says what a worker is doing, in a page of shared memory that outlives the worker. The agent
/// makes and holds the page; only the worker writes. It is sealed against resizing. Destroying this
/// object unmaps the page; the memory lives as long as a process has it open.
class progress_word {
public:
  /// The agent's side. @returns system when there is no memory.
  static result<progress_word> create();
  /// The worker's side. @returns bad_usage when `fd` is none that create() made, system.
  static result<progress_word> open(base::unique_fd fd);

  int fd() const { return fd_.get(); }

  // ---- the worker

  /// The thread of `lane` begins with something. Costs some stores.
  void enter(work_lane lane, const protocol::slot_progress& what);
  void leave(work_lane lane);
  /// The worker ends because what it entered last came to an error that is no divergence.
  void note_failure();
  /// The worker ends because its GPU has failed, hangs or is lost: at any slot it would have.
  void note_gpu_failure();
  /// From here on a fatal signal and exit() note whose doing they are: of the thread that computes
  /// and those it started (by the name "compute" that they inherit), of the one that reads
  /// ("prefetch"), of another of this process, or of somebody outside. The signals' effect stays
  /// what it was. Once a process; the word must live until its end.
  void watch_the_end();
  /// So that the stack that ran out does not keep watch_the_end() from working: for the calling
  /// thread.
  static void survive_stack_overflow();

  // ---- the agent

  struct work {
    std::uint64_t sequence = 0;                ///< another one: it is at something else
    std::optional<protocol::slot_progress> at; ///< nothing: it computes no slot
  };
  /// What is being computed now.
  work look() const;
  /// When the process has ended: the slot that ended it, if that was its own doing in the middle of
  /// it. A kill from outside, SIGKILL (but for want of memory) and a death in another part of the
  /// process are not.
  std::optional<protocol::slot_progress> slot_of_death(const process_end& how) const;
  /// Whether it noted that its GPU had failed.
  bool gpu_failed() const;

private:
  struct memory;
  struct unmap {
    void operator()(memory* mapped) const;
  };
  progress_word(base::unique_fd fd, memory* mapped);
  static result<progress_word> map(base::unique_fd fd);

  base::unique_fd fd_;
  std::unique_ptr<memory, unmap> memory_;
};

/// Marks a lane as busy for its own lifetime, or longer if it is kept. `word` may be null.
class work_mark {
public:
  work_mark(progress_word* word, work_lane lane, const protocol::slot_progress& what)
      : word_(word)
      , lane_(lane) {
    if (word_ != nullptr) word_->enter(lane_, what);
  }
  ~work_mark() {
    if (word_ != nullptr) word_->leave(lane_);
  }
  /// What was marked came to an error by which the process ends.
  void keep_as_failed() {
    if (auto* const word = std::exchange(word_, nullptr)) word->note_failure();
  }
  work_mark(const work_mark&) = delete;
  work_mark& operator=(const work_mark&) = delete;

private:
  progress_word* word_;
  work_lane lane_;
};

/// The option that precedes the descriptor's number in a worker's arguments.
inline constexpr std::string_view progress_option = "--progress-fd";

} // namespace dlrun::common
