/// Where the root of a job of several hosts is now, for the roles of a host (rule R39).
#pragma once

#include "base/unique_fd.hpp"

#include <atomic>
#include <dlrun/error.hpp>
#include <memory>
#include <string>
#include <string_view>

namespace dlrun::common {

/// A page of shared memory that the agent of a host makes and writes, and its roles read: the
/// number (IPv4) at which the root called last. It is sealed against resizing. Thread-safe.
class root_place {
public:
  /// The agent's side. @returns system when there is no memory.
  static result<root_place> create();
  /// A role's side. @returns bad_usage when `fd` is none that create() made, system.
  static result<root_place> open(base::unique_fd fd);

  int fd() const { return fd_.get(); }

  /// The root is there now. @param at "NUMBER:PORT", of which the number counts; other text is
  /// ignored. @returns whether that is news
  bool move_to(std::string_view at);
  /// The control link of the root's agent, which was at `told` when this process began
  /// ("NAME@NUMBER:PORT"): the same process name and port, at the number of now.
  std::string now(const std::string& told) const;
  /// Another number each time that it moves.
  std::uint32_t number() const { return word_->load(); }

private:
  using word = std::atomic<std::uint32_t>;
  struct unmap {
    void operator()(word* mapped) const;
  };
  root_place(base::unique_fd fd, word* mapped)
      : fd_{std::move(fd)}
      , word_{mapped} {}
  static result<root_place> map(base::unique_fd fd);

  base::unique_fd fd_;
  std::unique_ptr<word, unmap> word_; ///< in network byte order; 0: where it was told to be
};

/// The option that precedes the descriptor's number in a role's arguments.
inline constexpr std::string_view root_place_option = "--root-place-fd";

} // namespace dlrun::common
