#include "transport/tcp_client.hpp"

#include "base/call_queue.hpp"
#include "base/service_loop.hpp"
#include "transport/tcp_link.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <list>

namespace dlrun::transport {
namespace {

using clock = std::chrono::steady_clock;

} // namespace

class tcp_client::loop final : base::polled_service {
public:
  explicit loop(tcp_client_options options)
      : options_(std::move(options))
      , queue_("the tensor client", "parts of segments are being fetched already", options_.queue_max) {}

  result<void> start() { return thread_.start("dlrun-fetch", "the tensor client", *this); }

  result<void> fetch(tcp::wanted what) {
    if (what.bytes == 0 || what.bytes > options_.bytes_max)
      return fail(error_code::limit_exceeded,
                  fmt::format("a part of a segment of {} bytes was asked for; 1 to {} are allowed",
                              what.bytes, options_.bytes_max));
    DLRUN_CHECK(tcp::fits(what.part, what.bytes), "a part that is not in a segment of {} bytes", what.bytes);
    if (auto ok = queue_.add(std::move(what)); !ok) return ok;
    thread_.wake();
    return {};
  }

private:
  clock::time_point watch(std::vector<pollfd>& fds) override {
    for (auto& what : queue_.take()) want(std::move(what));
    auto next = clock::time_point::max();
    for (const auto& one : links_) {
      fds.push_back({one.socket(), one.wants(), 0});
      next = std::min(next, one.is_ready() ? clock::now() : one.deadline());
    }
    return next;
  }

  void serve(std::span<const pollfd> fds) override {
    std::size_t index = 0;
    for (auto at = links_.begin(); at != links_.end() && index < fds.size(); ++index)
      at = fds[index].revents != 0 || at->is_ready() ? go_on(at) : std::next(at);
    give_up_late(clock::now());
  }

  void end() override {
    queue_.close();
    const auto stopped = fail(error_code::interrupted, "the tensor client was stopped");
    for (auto& one : links_)
      for (auto& what : one.take_all()) finish(what, stopped);
    for (auto& what : queue_.take()) finish(what, stopped);
  }

  /// Of a link that is idle nothing is known but that its server has not closed it yet.
  void want(tcp::wanted what) {
    auto at = std::ranges::find(links_, what.address, &tcp::link::address);
    if (at == links_.end()) {
      const auto mine = run_token::random();
      if (!mine) return finish(what, tl::unexpected(mine.error()));
      at = links_.emplace(links_.end(), what.address, options_.token, mine->bytes, options_.tls.get());
    }
    at->want(std::move(what));
    go_on(at);
  }

  using position = std::list<tcp::link>::iterator;

  /// @returns the link after it.
  position go_on(position at) {
    std::vector<tcp::finished> over;
    const auto going = at->go_on(memory_, over, clock::now());
    for (auto& one : over) finish(one.what, std::move(one.outcome));
    return going ? std::next(at) : drop(at, going.error());
  }

  position drop(position at, const error& why) {
    auto left = at->take_all();
    const auto next = links_.erase(at);
    for (auto& what : left) finish(what, tl::unexpected(why));
    return next;
  }

  /// Answers come in order, so a late one takes its link with it; others on it ask again over a new
  /// one.
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
    queue_.count_answered();
    what.done(std::move(outcome));
  }

  const tcp_client_options options_;
  base::call_queue<tcp::wanted> queue_;
  copy_buffers memory_; // the thread's own, as is the next
  std::list<tcp::link> links_;
  base::service_loop thread_;
};

tcp_client::tcp_client(std::unique_ptr<loop> loop)
    : loop_(std::move(loop)) {}
tcp_client::~tcp_client() = default;

result<std::unique_ptr<tcp_client>> tcp_client::start(tcp_client_options options) {
  auto made = std::make_unique<loop>(options);
  if (auto ok = made->start(); !ok) return tl::unexpected(ok.error());
  return std::unique_ptr<tcp_client>(new tcp_client(std::move(made)));
}

result<void> tcp_client::fetch(std::string address, segment_id id, std::size_t expected_bytes,
                               const segment_part& part, std::chrono::steady_clock::time_point deadline,
                               callback done) {
  return loop_->fetch({std::move(address), id, expected_bytes, part, deadline,
                       deadline - std::chrono::steady_clock::now(), std::move(done)});
}

result<void> tcp_client::fetch_into(const copy_buffer& into, std::string address, segment_id id,
                                    const segment_part& part, std::chrono::steady_clock::time_point deadline,
                                    callback done) {
  return loop_->fetch({std::move(address), id, into.memory.size(), part, deadline,
                       deadline - std::chrono::steady_clock::now(), std::move(done), into});
}

} // namespace dlrun::transport
