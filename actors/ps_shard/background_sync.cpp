#include "actors/ps_shard/background_sync.hpp"

#include <algorithm>

namespace dlrun::ps_shard {
namespace {

constexpr int rests_a_sync = 9; ///< after a sync, so many times its length pass without one

} // namespace

background_sync::background_sync(persistence::shard_store& store, std::function<void(const error&)> failed,
                                 std::chrono::milliseconds period)
    : store_(store)
    , failed_(std::move(failed))
    , period_(period)
    , thread_([this] { loop(); }) {}

background_sync::~background_sync() {
  {
    const std::scoped_lock lock{mutex_};
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void background_sync::loop() {
  using clock = std::chrono::steady_clock;
  clock::duration rest = period_;
  std::unique_lock lock{mutex_};
  while (!changed_.wait_for(lock, rest, [this] { return stopping_; })) {
    lock.unlock();
    const auto begin = clock::now();
    if (store_.synced_end() < store_.next_step())
      if (const auto synced = store_.sync(); !synced) return failed_(synced.error());
    rest = std::max<clock::duration>(period_, rests_a_sync * (clock::now() - begin));
    lock.lock();
  }
}

} // namespace dlrun::ps_shard
