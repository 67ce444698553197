/// Reads the next microbatches while the current one is computed.
#pragma once

#include "data/augmentation.hpp"
#include "data/dataset.hpp"
#include "data/sampler.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace dlrun::data {

/// The records of one slot, ready to compute.
struct microbatch {
  step_id step{};
  slot_id slot{};
  /// (count, record_values), row by row.
  std::vector<float> records;
  /// (count), or empty: see dataset::targets().
  std::vector<std::int32_t> classes;
  /// (count, target_values), or empty.
  std::vector<float> values;
  std::uint64_t count = 0;
};

/// Reads the records at `indices` into `out`, whose step and slot stay. @returns as
/// dataset::read().
result<void> read_microbatch(const dataset& data, std::span<const std::uint64_t> indices, microbatch& out);

/// Reads microbatches ahead on a thread of its own into at most `depth` buffers. What it returns is
/// the same as reading directly; only the time differs. Requests are hints: when there are more
/// than `depth`, the oldest that nobody took is dropped, so a caller that changes its mind (a lease
/// moved) wastes at most a little reading. Thread-safe. The destructor waits for the microbatch
/// being read, nothing else.
class prefetcher {
public:
  /// Told on the reading thread when it begins with a slot, and when it is done with it.
  using reading_listener = std::function<void(step_id step, slot_id slot, bool begins)>;

  /// `depth` must be at least 1. Memory: depth + 1 microbatches. Records are changed by `change`,
  /// if any.
  prefetcher(std::shared_ptr<const dataset> data, sampler order, std::size_t depth,
             std::optional<augmentation> change = std::nullopt, reading_listener tell = nullptr);
  ~prefetcher();
  prefetcher(const prefetcher&) = delete;
  prefetcher& operator=(const prefetcher&) = delete;

  const dataset& data() const { return *data_; }

  /// Asks for (step, slot) to be read in the background. Repeated requests are one. Never blocks on
  /// reading.
  void request(step_id step, slot_id slot);

  /// Puts the records of (step, slot) into `out`, whose buffers are reused. Reads them itself when
  /// they were not requested, or were and are not being read yet. @returns as dataset::read();
  /// `out` then holds nothing of use.
  result<void> take(step_id step, slot_id slot, microbatch& out);

  /// Reads the records at `places` of (step, slot), in that order, into `out`, now. A place may
  /// come several times. @returns as take().
  result<void> read_some(step_id step, slot_id slot, std::span<const std::uint32_t> places,
                         microbatch& out) const;

private:
  enum class state { waiting, reading, ready };
  struct entry {
    state now = state::waiting;
    microbatch batch;
    result<void> outcome{};
  };
  using entry_list = std::deque<std::shared_ptr<entry>>;

  void run();
  result<void> read(microbatch& batch) const;
  result<void> read_records(std::span<const std::uint64_t> indices, microbatch& batch) const;
  std::shared_ptr<entry> find(step_id step, slot_id slot) const;
  std::shared_ptr<entry> next_waiting() const;
  void drop(const std::shared_ptr<entry>& what);

  std::shared_ptr<const dataset> data_;
  sampler order_;
  std::size_t depth_;
  std::optional<augmentation> change_;
  reading_listener tell_;

  std::mutex mutex_;
  std::condition_variable changed_;
  entry_list entries_;            // oldest first, guarded by mutex_, as is the next
  std::vector<microbatch> spare_; // buffers of those that were taken; with the entries at most `depth`
  bool stopping_ = false;
  std::thread thread_;
};

} // namespace dlrun::data
