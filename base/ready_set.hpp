/// Descriptors that are waited for together, however many they are.
#pragma once

#include "base/unique_fd.hpp"

#include <array>
#include <dlrun/error.hpp>
#include <span>
#include <sys/epoll.h>
#include <vector>

namespace dlrun::base {

/// An epoll descriptor: a turn costs as much as what is ready, where poll() looks at all that is
/// watched. Used by one thread.
class ready_set {
public:
  /// What is waited for of one descriptor. It stays where it is, and outlives its last turn.
  struct watched {
    void* owner = nullptr; ///< for whom it is watched
    short events = 0;      ///< of poll(); 0: nothing, not even its end
    short ready = 0;       ///< in this turn
  };

  /// @returns system when descriptors have run out.
  static result<ready_set> create();

  /// Can be read when something is ready.
  int fd() const { return epoll_.get(); }
  /// From now on that is waited for. A descriptor that is closed is watched no more.
  /// @returns system when the user may watch no more descriptors.
  result<void> watch(int descriptor, short events, watched& of);
  /// What is ready now, some of it, with `ready` set; the rest is in the next turn. Valid until
  /// then.
  std::span<watched* const> take();

private:
  explicit ready_set(unique_fd epoll)
      : epoll_{std::move(epoll)} {}

  static constexpr std::size_t a_turn = 256;
  unique_fd epoll_;
  std::array<epoll_event, a_turn> events_{};
  std::vector<watched*> ready_;
};

} // namespace dlrun::base
