/// etcd_register: what the root of a run keeps in an etcd, one root at a time (rule R40).
#pragma once

#include "persistence/etcd_client.hpp"
#include "persistence/register_hold.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace dlrun::persistence {

/// A map below a prefix, with one holder: PREFIX/owner and PREFIX/entry/KEY, as etcd_journal has
/// them. It differs in what an answer that is lost means: a journal ends then, and its next owner
/// has a higher term; a root goes on, and writes again when the etcd answers. Thread-safe. Calls
/// block, for as long as etcd_patience says.
class etcd_register {
public:
  /// @returns as etcd_client::make()
  static result<std::unique_ptr<etcd_register>> make(const etcd_place& place, std::string prefix,
                                                     etcd_patience patience = {});

  struct sight {
    std::optional<etcd_owner> owner{}; ///< nothing: nobody has taken it yet
    std::map<std::string, std::string> entries{};
  };
  /// As of one moment; changes nothing. @param keys the beginning of those that are read
  /// @returns bad_usage when something else is there; as etcd_client.
  result<sight> look(const std::string& keys = {});

  /// Takes it as `self`, and makes `changes`, if it is still as `before`. @returns fenced when it
  /// is not; timed_out when that is unknown: the next look tells.
  result<void> take(const std::optional<etcd_owner>& before, const etcd_owner& self,
                    std::span<const journal_write> changes);

  /// After take(): all of `changes`, or none; none is a sign of life. @returns fenced, then and
  /// ever after, when another has taken it; otherwise as etcd_client, and the changes may have been
  /// made, or may be made until the next write.
  result<void> write(std::span<const journal_write> changes);

private:
  etcd_register(std::unique_ptr<etcd_client> client, std::string prefix)
      : client_{std::move(client)}
      , prefix_{std::move(prefix)} {}
  result<std::optional<etcd_owner>> put(const std::optional<etcd_owner>& before, const etcd_owner& after,
                                        std::span<const journal_write> changes);
  tl::unexpected<error> lose(const etcd_owner& to);

  std::mutex mutex_; ///< of all below
  std::unique_ptr<etcd_client> client_;
  std::string prefix_;
  std::optional<register_hold> hold_{};
  std::optional<error> lost_{};
};

} // namespace dlrun::persistence
