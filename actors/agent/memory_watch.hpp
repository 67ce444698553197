/// Memory of this host, for whoever asks often.
#pragma once

#include "actors/protocol/time.hpp"
#include "base/own_machine.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <utility>

namespace dlrun::agent {

/// Reads it once a second at most. Not safe for concurrent calls.
class memory_watch {
public:
  explicit memory_watch(std::function<base::memory_use()> read = base::current_memory_use)
      : read_(std::move(read)) {}

  base::memory_use at(protocol::time_point now) {
    if (!read_at_ || now - *read_at_ >= std::chrono::seconds(1)) {
      newest_ = read_();
      read_at_ = now;
    }
    return newest_;
  }

private:
  std::function<base::memory_use()> read_;
  base::memory_use newest_{};
  std::optional<protocol::time_point> read_at_;
};

} // namespace dlrun::agent
