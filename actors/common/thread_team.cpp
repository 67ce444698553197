#include "actors/common/thread_team.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::common {

thread_team::thread_team(unsigned threads) {
  DLRUN_CHECK(threads >= 1, "a team of no threads");
  for (unsigned i = 1; i < threads; ++i) helpers_.emplace_back([this] { help(); });
}

thread_team::~thread_team() {
  {
    const std::scoped_lock lock{mutex_};
    stopping_ = true;
  }
  changed_.notify_all();
  for (auto& helper : helpers_) helper.join();
}

void thread_team::for_each(std::size_t count, const std::function<void(std::size_t)>& body) {
  if (helpers_.empty() || count < 2) {
    for (std::size_t i = 0; i < count; ++i) body(i);
    return;
  }
  std::unique_lock lock{mutex_};
  body_ = &body;
  next_ = 0;
  count_ = count;
  changed_.notify_all();
  take_part(lock);
  changed_.wait(lock, [this] { return running_ == 0; });
  body_ = nullptr;
}

void thread_team::take_part(std::unique_lock<std::mutex>& lock) {
  while (next_ < count_) {
    const auto mine = next_++;
    ++running_;
    lock.unlock();
    (*body_)(mine);
    lock.lock();
    --running_;
  }
  if (running_ == 0) changed_.notify_all();
}

void thread_team::help() {
  std::unique_lock lock{mutex_};
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || next_ < count_; });
    if (stopping_) return;
    take_part(lock);
  }
}

unsigned fair_threads(std::size_t parts, unsigned most) {
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  return std::clamp(static_cast<unsigned>(cores / std::max<std::size_t>(1, parts)), 1U, most);
}

} // namespace dlrun::common
