/// etcd_client: asks an etcd, through its JSON gateway.
#pragma once

#include "persistence/etcd_json.hpp"
#include "persistence/journal.hpp"

#include <chrono>
#include <memory>
#include <vector>

namespace dlrun::persistence {

/// Names an etcd and the user to be there. Files are read when needed; their content is never part
/// of an argument.
struct etcd_place {
  std::vector<std::string> endpoints; ///< "http://10.0.0.1:2379" or "https://...", members of one cluster
  std::string cluster_id{};           ///< decimal, as etcd says it; empty: of any cluster
  std::string ca_file{};              ///< PEM; empty: the system's authorities
  std::string certificate_file{};     ///< PEM, the client's own; empty: none
  std::string key_file{};             ///< PEM, of the certificate
  std::string user_file{};            ///< one line, NAME:PASSWORD; empty: nobody
};

/// How long to wait for an answer.
struct etcd_patience {
  /// For one member at first; doubles each time that all members have been asked, up to `total`.
  std::chrono::milliseconds attempt{500};
  /// For all members together.
  std::chrono::milliseconds total{5000};
};

/// Sends requests to the members of an etcd, one member after the other until one answers,
/// beginning with the one that answered last. A quorum answers every request, never a member alone.
/// One thread at a time. Calls block, for as long as etcd_patience says.
///
/// Every call fails with timed_out when nobody answers (a write may then have been done, or may be
/// done later), with disk_full when etcd's space is used up, with limit_exceeded when etcd does not
/// take such a request, with bad_usage when it is another cluster or refuses the user. Messages
/// name the member and the way out.
class etcd_client {
public:
  /// The oldest etcd whose gateway this client speaks to.
  static constexpr const char* oldest_version = "3.4.0";

  /// @returns bad_usage when a file cannot be read, or libcurl not be loaded.
  static result<std::unique_ptr<etcd_client>> make(const etcd_place& place, etcd_patience patience = {});
  etcd_client(const etcd_client&) = delete;
  etcd_client& operator=(const etcd_client&) = delete;
  ~etcd_client();

  /// Checks that a quorum answers, that the etcd is new enough, and that it takes transactions of
  /// `operations` operations which look at `key`. @returns the id of its cluster.
  result<std::string> probe(const std::string& key, std::size_t operations);

  /// The value of `single`, and all keys that begin with `prefix`, as of one moment.
  result<etcd_look> read(const std::string& single, const std::string& prefix);
  /// The first key that begins with `prefix`; nothing when there is none.
  result<std::optional<std::string>> find_first(const std::string& prefix);

  /// What compare_and_write() found.
  struct comparison {
    bool is_equal = false;              ///< and so the changes are done
    std::optional<std::string> found{}; ///< otherwise: the value there
  };
  /// Makes `changes` if `key` has the value `expected` (nullopt: the key is not there), else
  /// changes nothing. The request may be sent more than once, so a comparison may fail because
  /// these very changes were made.
  result<comparison> compare_and_write(const std::string& key, const std::optional<std::string>& expected,
                                       std::span<const journal_write> changes);

private:
  class implementation;
  explicit etcd_client(std::unique_ptr<implementation> parts);

  std::unique_ptr<implementation> parts_;
};

} // namespace dlrun::persistence
