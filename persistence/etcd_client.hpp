/// etcd_client: asks an etcd, through its JSON gateway.
#pragma once

#include "persistence/etcd_json.hpp"
#include "persistence/journal.hpp"

#include <chrono>
#include <memory>
#include <vector>

namespace dlrun::persistence {

/// Which etcd, and as whom. Files are read when needed; what is in them is in no argument.
struct etcd_place {
  std::vector<std::string> endpoints; ///< "http://10.0.0.1:2379" or "https://...", members of one cluster
  std::string cluster_id{};           ///< decimal, as etcd says it; empty: of any cluster
  std::string ca_file{};              ///< PEM; empty: the system's authorities
  std::string certificate_file{};     ///< PEM, the client's own; empty: none
  std::string key_file{};             ///< PEM, of the certificate
  std::string user_file{};            ///< one line, NAME:PASSWORD; empty: nobody
};

/// How long is waited for an answer.
struct etcd_patience {
  /// Of one member at first; doubles each time that all of them have been asked, up to `total`.
  std::chrono::milliseconds attempt{500};
  /// Of all together.
  std::chrono::milliseconds total{5000};
};

/// Asks one member after the other until one answers, beginning with the one that answered last.
/// What is asked is read from or decided by a quorum, never by a member alone. One thread at a
/// time. Calls block, as long as etcd_patience says.
///
/// Every call fails with timed_out when nobody answers (a write may then have been done, or may be
/// done later), with disk_full when etcd's space is used up, with limit_exceeded when etcd takes no
/// such request, with bad_usage when it is another cluster or refuses who asks. Messages name the
/// member and the way out.
class etcd_client {
public:
  /// The oldest whose gateway speaks as this does.
  static constexpr const char* oldest_version = "3.4.0";

  /// @returns bad_usage when a file cannot be read, or libcurl not be loaded.
  static result<std::unique_ptr<etcd_client>> make(const etcd_place& place, etcd_patience patience = {});
  etcd_client(const etcd_client&) = delete;
  etcd_client& operator=(const etcd_client&) = delete;
  ~etcd_client();

  /// Finds out whether a quorum answers, of an etcd that is new enough and takes transactions of
  /// `operations` that look at `key`. @returns the id of its cluster.
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
  /// Makes `changes` if `key` has the value `expected` (nullopt: is not there), else nothing. It
  /// may be asked more than once: a comparison that fails may do so because these changes were
  /// made.
  result<comparison> compare_and_write(const std::string& key, const std::optional<std::string>& expected,
                                       std::span<const journal_write> changes);

private:
  class implementation;
  explicit etcd_client(std::unique_ptr<implementation> parts);

  std::unique_ptr<implementation> parts_;
};

} // namespace dlrun::persistence
