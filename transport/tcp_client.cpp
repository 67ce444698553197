#include "transport/tcp_client.hpp"

#include "base/os_error.hpp"
#include "base/service_thread.hpp"
#include "base/wake_event.hpp"
#include "transport/tcp_link.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <list>
#include <mutex>

namespace dlrun::transport {
namespace {

using clock = std::chrono::steady_clock;

} // namespace

class tcp_client::loop {
public:
  loop(tcp_client_options options, base::wake_event wake)
      : options_(options)
      , wake_(std::move(wake)) {}

  ~loop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify();
    if (thread_.joinable()) thread_.join();
  }

  void start() {
    thread_ = base::start_service_thread("dlrun-fetch", [this] { run(); });
  }

  result<void> fetch(tcp::wanted what) {
    if (what.bytes == 0 || what.bytes > options_.bytes_max)
      return fail(error_code::limit_exceeded,
                  fmt::format("a part of a segment of {} bytes was asked for; 1 to {} are allowed",
                              what.bytes, options_.bytes_max));
    DLRUN_CHECK(tcp::fits(what.part, what.bytes), "a part that is not in a segment of {} bytes", what.bytes);
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return fail(error_code::interrupted, "the tensor client is stopping");
      if (unanswered_ >= options_.queue_max)
        return fail(error_code::limit_exceeded,
                    fmt::format("{} parts of segments are being fetched already", unanswered_));
      ++unanswered_;
      queue_.push_back(std::move(what));
    }
    wake_.notify();
    return {};
  }

private:
  void run() {
    std::vector<pollfd> fds;
    while (take_queued()) {
      fds.assign({{wake_.fd(), POLLIN, 0}});
      for (const auto& one : links_) fds.push_back({one.socket(), one.wants(), 0});
      base::poll_until(fds, next_deadline());
      if (fds[0].revents != 0) wake_.drain();
      serve(fds);
      give_up_late(clock::now());
    }
    for (auto& one : links_)
      for (auto& what : one.take_all())
        finish(what, fail(error_code::interrupted, "the tensor client was stopped"));
    for (auto& what : queue_) finish(what, fail(error_code::interrupted, "the tensor client was stopped"));
  }

  /// @returns false when stopping.
  bool take_queued() {
    std::deque<tcp::wanted> queued;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return false;
      queued.swap(queue_);
    }
    for (auto& what : queued) want(std::move(what));
    return true;
  }

  /// Of a link that is idle nothing is known but that its server has not closed it yet.
  void want(tcp::wanted what) {
    auto at = std::ranges::find(links_, what.address, &tcp::link::address);
    if (at == links_.end()) {
      const auto mine = run_token::random();
      if (!mine) return finish(what, tl::unexpected(mine.error()));
      at = links_.emplace(links_.end(), what.address, options_.token, mine->bytes);
    }
    at->want(std::move(what));
    go_on(at);
  }

  clock::time_point next_deadline() const {
    auto next = clock::time_point::max();
    for (const auto& one : links_) next = std::min(next, one.deadline());
    return next;
  }

  /// `fds` lists the links from index 1 on.
  void serve(const std::vector<pollfd>& fds) {
    std::size_t index = 1;
    for (auto at = links_.begin(); at != links_.end() && index < fds.size(); ++index)
      at = fds[index].revents != 0 ? go_on(at) : std::next(at);
  }

  using position = std::list<tcp::link>::iterator;

  /// @returns the link after it.
  position go_on(position at) {
    std::vector<tcp::finished> over;
    const auto going = at->go_on(memory_, over);
    for (auto& one : over) finish(one.what, std::move(one.outcome));
    return going ? std::next(at) : drop(at, going.error());
  }

  position drop(position at, const error& why) {
    auto left = at->take_all();
    const auto next = links_.erase(at);
    for (auto& what : left) finish(what, tl::unexpected(why));
    return next;
  }

  /// Answers come in order, so a late one takes its link with it; others on it ask again over a new one.
  void give_up_late(clock::time_point now) {
    for (auto at = links_.begin(); at != links_.end();) {
      if (now < at->deadline()) {
        ++at;
        continue;
      }
      auto left = at->take_all();
      at = links_.erase(at);
      for (auto& what : left) {
        if (now < what.deadline) {
          want(std::move(what));
          continue;
        }
        finish(what,
               fail(error_code::timed_out, fmt::format("the tensor server {} did not send segment {} in time",
                                                       what.address, what.id)));
      }
    }
  }

  void finish(tcp::wanted& what, result<segment> outcome) {
    {
      const std::lock_guard lock(mutex_);
      --unanswered_;
    }
    what.done(std::move(outcome));
  }

  const tcp_client_options options_;
  const base::wake_event wake_;
  std::mutex mutex_;
  bool stopping_ = false; // guarded by mutex_, as are the next two
  std::size_t unanswered_ = 0;
  std::deque<tcp::wanted> queue_;
  copy_buffers memory_; // the thread's own, as is the next
  std::list<tcp::link> links_;
  std::thread thread_;
};

tcp_client::tcp_client(std::unique_ptr<loop> loop)
    : loop_(std::move(loop)) {}
tcp_client::~tcp_client() = default;

result<std::unique_ptr<tcp_client>> tcp_client::start(tcp_client_options options) {
  auto wake = base::wake_event::create();
  if (!wake) return tl::unexpected(wake.error());
  auto made = std::make_unique<loop>(options, std::move(*wake));
  try {
    made->start();
  } catch (const std::system_error& e) {
    return base::fail_errno("cannot start the tensor client's thread", e.code().value());
  }
  return std::unique_ptr<tcp_client>(new tcp_client(std::move(made)));
}

result<void> tcp_client::fetch(std::string address, segment_id id, std::size_t expected_bytes,
                               const segment_part& part, std::chrono::steady_clock::time_point deadline,
                               callback done) {
  return loop_->fetch({std::move(address), id, expected_bytes, part, deadline, std::move(done)});
}

} // namespace dlrun::transport
