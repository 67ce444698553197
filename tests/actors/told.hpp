/// What threads under test tell, for the test to wait for.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <gtest/gtest.h>
#include <mutex>
#include <string>
#include <vector>

namespace dlrun::test {

/// Thread-safe.
class told {
public:
  void add(std::string line) {
    {
      const std::scoped_lock lock{mutex_};
      lines_.push_back(std::move(line));
    }
    changed_.notify_all();
  }

  /// Waits until a line begins with `begin`. @returns the first such line; "" and a failed test
  /// when none comes.
  std::string wait_for(const std::string& begin) {
    std::unique_lock lock{mutex_};
    const auto find = [&] {
      return std::ranges::find_if(lines_, [&](const auto& line) { return line.starts_with(begin); });
    };
    changed_.wait_for(lock, std::chrono::seconds(20), [&] { return find() != lines_.end(); });
    if (const auto found = find(); found != lines_.end()) return *found;
    ADD_FAILURE() << "nobody tells: " << begin;
    return "";
  }

  std::vector<std::string> lines() const {
    const std::scoped_lock lock{mutex_};
    return lines_;
  }
  std::ptrdiff_t count(const std::string& begin) const {
    return std::ranges::count_if(lines(), [&](const auto& line) { return line.starts_with(begin); });
  }

private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

} // namespace dlrun::test
