/// A file on a disk that stands still.
#pragma once

#include "base/unique_fd.hpp"

#include <chrono>
#include <condition_variable>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <mutex>
#include <stop_token>
#include <sys/stat.h>
#include <thread>
#include <utility>

namespace dlrun::test {

/// Who opens it to read waits until release(), and then can neither read it nor make it durable. It
/// is released after a minute in any case, so that a test that waits for it fails.
class slow_file {
public:
  /// In place of what is there.
  explicit slow_file(std::filesystem::path path)
      : path_{std::move(path)} {
    std::filesystem::remove(path_);
    EXPECT_EQ(::mkfifo(path_.c_str(), mode), 0) << path_;
    release_ = std::jthread{[this](const std::stop_token& stop) {
      std::unique_lock lock{mutex_};
      std::condition_variable_any{}.wait_for(lock, stop, std::chrono::minutes(1), [] { return false; });
      writer_.reset(::open(path_.c_str(), O_RDWR | O_CLOEXEC)); // never waits
      EXPECT_TRUE(writer_) << path_;
    }};
  }
  /// For who has it open, and who will open it.
  void release() {
    release_.request_stop();
    release_.join();
  }

private:
  static constexpr mode_t mode = 0600;

  std::filesystem::path path_;
  std::mutex mutex_;
  base::unique_fd writer_;
  std::jthread release_;
};

} // namespace dlrun::test
