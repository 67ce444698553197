#include "transport/gradient_pool.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

namespace dlrun::transport {

/// What the pool and its loans share.
struct pooled_gradient::shelf {
  const std::size_t floats;
  const std::size_t buffers_max;
  const std::shared_ptr<segment_offers> server;
  std::mutex mutex;
  std::vector<std::unique_ptr<entry>> free; // guarded by mutex, as are the next ones
  std::size_t existing = 0;
  std::size_t loans = 0;            // since the most was looked at
  std::size_t lent_most = 0;        // during those
  std::size_t lent_most_before = 0; // during the loans before those
  bool closed = false;

  shelf(std::size_t floats_each, std::size_t most, std::shared_ptr<segment_offers> offered_by)
      : floats(floats_each)
      , buffers_max(most)
      , server(std::move(offered_by)) {}

  void put_back(std::unique_ptr<entry> returned) {
    {
      const std::lock_guard lock(mutex);
      if (!closed) {
        free.push_back(std::move(returned));
        return;
      }
      --existing;
    }
    server->withdraw(returned->id);
  }

  /// A buffer is lent. @returns those that were not needed of late, the coldest of the free ones;
  /// requires the lock.
  std::vector<std::unique_ptr<entry>> note_loan() {
    lent_most = std::max(lent_most, existing - free.size());
    if (++loans < gradient_pool::loans_remembered) return {};
    const auto needed = std::min(std::max(lent_most, lent_most_before), existing);
    lent_most_before = std::exchange(lent_most, 0);
    loans = 0;
    const auto end = free.begin() + static_cast<std::ptrdiff_t>(std::min(existing - needed, free.size()));
    std::vector<std::unique_ptr<entry>> cold(std::move_iterator(free.begin()), std::move_iterator(end));
    free.erase(free.begin(), end);
    existing -= cold.size();
    return cold;
  }

  void withdraw(const std::vector<std::unique_ptr<entry>>& all) const {
    for (const auto& one : all) server->withdraw(one->id);
  }

  result<std::unique_ptr<entry>> make() {
    auto writer = gradient_writer::create(floats);
    if (!writer) return tl::unexpected(writer.error());
    const auto id = server->offer(writer->shared());
    if (!id) return tl::unexpected(id.error());
    return std::make_unique<entry>(entry{std::move(*writer), *id});
  }
};

pooled_gradient::pooled_gradient(std::shared_ptr<shelf> home, std::unique_ptr<entry> entry)
    : home_(std::move(home))
    , entry_(std::move(entry)) {}

pooled_gradient& pooled_gradient::operator=(pooled_gradient&& other) noexcept {
  if (this != &other) {
    give_back();
    home_ = std::move(other.home_);
    entry_ = std::move(other.entry_);
  }
  return *this;
}

pooled_gradient::~pooled_gradient() { give_back(); }

void pooled_gradient::give_back() {
  if (entry_) home_->put_back(std::move(entry_));
  home_.reset();
}

gradient_pool::gradient_pool(std::size_t floats, std::size_t buffers_max,
                             std::shared_ptr<segment_offers> server)
    : shelf_(std::make_shared<pooled_gradient::shelf>(floats, buffers_max, std::move(server))) {}

gradient_pool::~gradient_pool() {
  std::vector<std::unique_ptr<pooled_gradient::entry>> free;
  {
    const std::lock_guard lock(shelf_->mutex);
    shelf_->closed = true;
    shelf_->existing -= shelf_->free.size();
    free.swap(shelf_->free);
  }
  shelf_->withdraw(free);
}

result<pooled_gradient> gradient_pool::acquire() {
  std::unique_ptr<pooled_gradient::entry> found;
  std::vector<std::unique_ptr<pooled_gradient::entry>> cold;
  {
    const std::lock_guard lock(shelf_->mutex);
    if (!shelf_->free.empty()) {
      found = std::move(shelf_->free.back());
      shelf_->free.pop_back();
    } else if (shelf_->existing >= shelf_->buffers_max) {
      return fail(
          error_code::limit_exceeded,
          fmt::format("all {} gradient buffers are waiting for their steps to commit", shelf_->buffers_max));
    } else {
      ++shelf_->existing; // reserved; making it takes long and needs no lock
    }
    cold = shelf_->note_loan();
  }
  shelf_->withdraw(cold);
  if (found) return pooled_gradient(shelf_, std::move(found));
  auto made = shelf_->make();
  if (!made) {
    const std::lock_guard lock(shelf_->mutex);
    --shelf_->existing;
    return tl::unexpected(made.error());
  }
  return pooled_gradient(shelf_, std::move(*made));
}

std::size_t gradient_pool::lent() const {
  const std::lock_guard lock(shelf_->mutex);
  return shelf_->existing - shelf_->free.size();
}

std::size_t gradient_pool::size() const {
  const std::lock_guard lock(shelf_->mutex);
  return shelf_->existing;
}

} // namespace dlrun::transport
