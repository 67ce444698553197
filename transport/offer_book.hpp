/// What a server has on offer, by segment id.
#pragma once

#include "transport/segment.hpp"

#include <cstddef>
#include <cstdint>
#include <fmt/core.h>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace dlrun::transport {

/// `What` is what the server needs of one segment. An id is never given twice. Thread-safe.
template <class What>
class offer_book {
  using offer_map = std::map<segment_id, std::shared_ptr<const What>>;

public:
  /// Holds at most `most` at a time.
  explicit offer_book(std::size_t most)
      : most_(most) {}

  /// @returns limit_exceeded when there are as many as it may hold.
  result<segment_id> add(What what) {
    auto offered = std::make_shared<const What>(std::move(what));
    const std::lock_guard lock(mutex_);
    if (offers_.size() >= most_) return too_many();
    const segment_id id{next_id_++};
    offers_[id] = std::move(offered);
    return id;
  }

  /// Under an id of another book, which gave it to nothing else. Of one book either all are added
  /// so or none. @returns as add().
  result<void> add_as(segment_id id, What what) {
    auto offered = std::make_shared<const What>(std::move(what));
    const std::lock_guard lock(mutex_);
    if (offers_.size() >= most_) return too_many();
    offers_[id] = std::move(offered);
    return {};
  }

  /// Who has found it keeps it. Unknown ids are ignored.
  void remove(segment_id id) {
    typename offer_map::node_type gone; // and given up after the lock
    const std::lock_guard lock(mutex_);
    gone = offers_.extract(id);
  }

  /// Null when it is not on offer.
  std::shared_ptr<const What> find(segment_id id) const {
    const std::lock_guard lock(mutex_);
    const auto found = offers_.find(id);
    return found == offers_.end() ? nullptr : found->second;
  }

private:
  tl::unexpected<error> too_many() const {
    return fail(error_code::limit_exceeded,
                fmt::format("{} segments are offered already; withdraw some first", offers_.size()));
  }

  const std::size_t most_;
  mutable std::mutex mutex_;
  offer_map offers_; // guarded by mutex_, as is the next
  std::uint64_t next_id_ = 1;
};

} // namespace dlrun::transport
