/// Whether all roles compute the same bits.
#pragma once

#include "actors/protocol/local_messages.hpp"
#include "actors/protocol/membership_messages.hpp"

#include <optional>
#include <string>

namespace dlrun::coordinator {

/// Pure: refuses roles that would compute other bits. It compares the fingerprint of each role with
/// that of the first role that joined, and the device of each worker with that of the first worker,
/// unless the bits need not be the same.
class arithmetic_book {
public:
  /// @param relaxed whoever comes is let in (cluster.determinism)
  explicit arithmetic_book(bool relaxed = false)
      : relaxed_{relaxed} {}

  /// @returns "" when the role computes the same bits, else why not, naming both.
  std::string why_refused(const protocol::join& join) const;
  /// Of a role that was let in.
  void note(const protocol::join& join);
  /// What workers compute on, as they say (protocol::join::device); "" before the first.
  std::string device() const { return device_ ? device_->text : ""; }

private:
  struct entry {
    std::string text;
    protocol::role_name from;
  };
  bool relaxed_;
  std::optional<entry> fingerprint_;
  std::optional<entry> device_;
};

} // namespace dlrun::coordinator
