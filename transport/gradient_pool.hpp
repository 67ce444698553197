/// gradient_pool: the bounded set of gradient buffers of a worker.
#pragma once

#include "transport/gradient_segment.hpp"

#include <cstddef>
#include <memory>

namespace dlrun::transport {

/// A gradient buffer on loan, which its destructor returns to the pool. Move only; share it by
/// shared_ptr when several must hold it. Destroy it only when no PS shard can be reading it any
/// more.
class pooled_gradient {
public:
  pooled_gradient() = default;
  pooled_gradient(pooled_gradient&& other) noexcept = default;
  pooled_gradient& operator=(pooled_gradient&& other) noexcept;
  ~pooled_gradient();

  explicit operator bool() const { return entry_ != nullptr; }
  gradient_writer& buffer() { return entry_->writer; }
  const gradient_writer& buffer() const { return entry_->writer; }
  /// What somebody has made of the memory, such as a driver that was told of it: kept from loan to
  /// loan, and destroyed before the memory goes, in whichever thread that is. Null until it is set.
  std::shared_ptr<void>& attached() { return entry_->attached; }
  /// Under which the pool's server offers it.
  segment_id id() const { return entry_->id; }

private:
  friend class gradient_pool;
  struct entry {
    gradient_writer writer;
    segment_id id;
    std::shared_ptr<void> attached{}; ///< destroyed before `writer`
  };
  struct shelf;
  pooled_gradient(std::shared_ptr<shelf> home, std::unique_ptr<entry> entry);
  void give_back();

  std::shared_ptr<shelf> home_;
  std::unique_ptr<entry> entry_;
};

/// A worker's gradient buffers. The pool grows on demand up to a bound, and offers each new buffer
/// at `server`. It lends the buffer that was returned last, whose pages are most likely in the
/// caches. It withdraws buffers that one or two rounds of `loans_remembered` loans did not need.
/// Thread-safe. Loans may outlive the pool; pool and loans keep the server alive, so the order in
/// which an actor and its mailbox are destroyed does not matter.
class gradient_pool {
public:
  /// Larger: what one busy step needed is kept for longer; smaller: buffers are made anew more
  /// often.
  static constexpr std::size_t loans_remembered = 64;

  /// @param floats length of the flat gradient vector; @param buffers_max bound of buffers, lent
  /// and free together.
  gradient_pool(std::size_t floats, std::size_t buffers_max, std::shared_ptr<segment_offers> server);
  /// Withdraws the free buffers; those on loan are withdrawn when they come back.
  ~gradient_pool();

  /// @returns a buffer with unspecified values; limit_exceeded when all buffers_max are on loan;
  /// system when the OS refuses a new one.
  result<pooled_gradient> acquire();

  /// Buffers on loan.
  std::size_t lent() const;
  /// Buffers that exist.
  std::size_t size() const;

private:
  std::shared_ptr<pooled_gradient::shelf> shelf_;
};

} // namespace dlrun::transport
