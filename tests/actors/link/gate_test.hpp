/// What tests of gatekeepers have in common: whom they accepted, and how one dials another.
#pragma once

#include "actors/link/gatekeeper.hpp"

#include <chrono>
#include <condition_variable>
#include <future>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <vector>

namespace dlrun::test {

class gate_test : public testing::Test {
protected:
  /// One that is there for those who want `options.self`.
  std::unique_ptr<link::gatekeeper> start(const link::gatekeeper_options& options) {
    return link::gatekeeper::start(
               options, {.is_here = [self = options.self](const auto& wanted) { return wanted == self; },
                         .accepted = [this](link::open_socket socket) { accept(std::move(socket)); }})
        .value();
  }

  link::open_socket wait_for_one() {
    std::unique_lock lock{mutex_};
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), [this] { return !accepted_.empty(); }));
    auto first = std::move(accepted_.front());
    accepted_.erase(accepted_.begin());
    return first;
  }

  static result<link::open_socket> dial(link::gatekeeper& from, const std::string& address,
                                        const link::peer_id& wanted) {
    std::promise<result<link::open_socket>> reached;
    from.dial(address, wanted, [&](result<link::open_socket> how) { reached.set_value(std::move(how)); });
    return reached.get_future().get();
  }

  std::size_t count() {
    const std::scoped_lock lock{mutex_};
    return accepted_.size();
  }

private:
  void accept(link::open_socket socket) {
    const std::scoped_lock lock{mutex_};
    accepted_.push_back(std::move(socket));
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<link::open_socket> accepted_; // guarded by mutex_
};

} // namespace dlrun::test
