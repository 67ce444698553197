#include "kubernetes/pod_service.hpp"

#include "base/service_thread.hpp"
#include "kubernetes/pod_watch.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace dlrun::kubernetes {
namespace {

constexpr std::chrono::milliseconds pass_period{100};

/// Whether it is to end, for both threads.
class end_wish {
public:
  void end() {
    {
      const std::scoped_lock lock{mutex_};
      is_over_ = true;
    }
    changed_.notify_all();
  }
  bool is_over() const {
    const std::scoped_lock lock{mutex_};
    return is_over_;
  }
  void wait(std::chrono::milliseconds time) {
    std::unique_lock lock{mutex_};
    changed_.wait_for(lock, time, [this] { return is_over_; });
  }

private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
};

/// Time in which nobody waits once it is to end: then all deadlines have passed.
api_time time_until(end_wish& wish) {
  auto real = real_time();
  return {[&wish, now = real.now] { return wish.is_over() ? now() + std::chrono::hours{24} : now(); },
          [&wish](std::chrono::milliseconds how_long) { wish.wait(how_long); }, real.chance};
}

class running_service final : public pod_service {
public:
  running_service(const api_place& place, const pods_source& source, const host_pods_options& options,
                  std::unique_ptr<api_transport> for_requests, std::unique_ptr<api_transport> for_watch)
      : request_transport_{std::move(for_requests)}
      , watch_transport_{std::move(for_watch)}
      , client_{place, *request_transport_, time_until(wish_)}
      , watch_client_{place, *watch_transport_, time_until(wish_)}
      , requests_{client_, source}
      , pods_{requests_, client_, with_listing(options)}
      , watch_{watch_client_,
               {.selector = selector_of(source.job),
                .tell = [this](pod_news news) { pods_.on_news(std::move(news)); },
                .complain = [this](const auto& why) { pods_.on_watch_refused(why); },
                .works = [this] { pods_.on_watch_works(); },
                .goes_on = [this] { return !wish_.is_over(); }}}
      , watcher_{base::start_service_thread("dlrun-podwatch", [this] { watch_.run(); })}
      , maker_{base::start_service_thread("dlrun-pods", [this] { make(); })} {}
  ~running_service() override {
    wish_.end();
    maker_.join();
    watcher_.join();
  }
  running_service(const running_service&) = delete;
  running_service& operator=(const running_service&) = delete;

  void hosts_are(host_sights hosts) override { pods_.hosts_are(std::move(hosts)); }
  void hosts_come(host_sights hosts) override { pods_.hosts_come(std::move(hosts)); }
  void pause() override { pods_.pause(); }
  std::optional<pods_end> end() const override { return pods_.end(); }
  std::vector<std::string> held_up_by() const override { return pods_.held_up_by(); }
  std::string why_not_in(const arriving_pod& who) const override { return pods_.why_not_in(who); }

private:
  host_pods_options with_listing(host_pods_options options) {
    options.list_anew = [this] { watch_.list_anew(); };
    return options;
  }
  void make() {
    while (!wish_.is_over()) {
      pods_.pass();
      wish_.wait(pass_period);
    }
  }

  end_wish wish_;
  std::unique_ptr<api_transport> request_transport_, watch_transport_;
  api_client client_, watch_client_;
  pod_requests requests_;
  host_pods pods_;
  pod_watch watch_;
  std::thread watcher_, maker_;
};

} // namespace

result<std::unique_ptr<pod_service>> pod_service::start(const api_place& place, const pods_source& source,
                                                        const host_pods_options& options) {
  auto for_requests = make_transport(place);
  if (!for_requests) return tl::unexpected(for_requests.error());
  auto for_watch = make_transport(place);
  if (!for_watch) return tl::unexpected(for_watch.error());
  return std::make_unique<running_service>(place, source, options, std::move(*for_requests),
                                           std::move(*for_watch));
}

} // namespace dlrun::kubernetes
