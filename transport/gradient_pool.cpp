#include "transport/gradient_pool.hpp"

#include <fmt/core.h>
#include <mutex>
#include <vector>

namespace dlrun::transport {

/// What the pool and its loans share.
struct pooled_gradient::shelf {
  const std::size_t floats;
  const std::size_t buffers_max;
  const std::shared_ptr<segment_offers> server;
  std::mutex mutex;
  std::vector<std::unique_ptr<entry>> free; // guarded by mutex, as are the next two
  std::size_t existing = 0;
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
  for (const auto& entry : free) shelf_->server->withdraw(entry->id);
}

result<pooled_gradient> gradient_pool::acquire() {
  {
    const std::lock_guard lock(shelf_->mutex);
    if (!shelf_->free.empty()) {
      auto entry = std::move(shelf_->free.back());
      shelf_->free.pop_back();
      return pooled_gradient(shelf_, std::move(entry));
    }
    if (shelf_->existing >= shelf_->buffers_max)
      return fail(
          error_code::limit_exceeded,
          fmt::format("all {} gradient buffers are waiting for their steps to commit", shelf_->buffers_max));
    ++shelf_->existing; // reserved; making it takes long and needs no lock
  }
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
