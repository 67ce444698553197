/// What etcd's JSON gateway is asked, and what its answers say. Pure text: no network.
#pragma once

#include "persistence/journal.hpp"

namespace dlrun::persistence {

inline constexpr long http_ok = 200;

struct etcd_user {
  std::string name; ///< empty: nobody
  std::string password;
};

std::string authenticate_request(const etcd_user& user);
/// Of one moment: the key `single`, and all that begin with `prefix`.
std::string look_request(const std::string& single, const std::string& prefix);
/// The first key that begins with `prefix`, without its value.
std::string first_key_request(const std::string& prefix);
/// Makes `changes` if `key` has the value `expected` (nullopt: is not there); else tells its value.
std::string transaction_request(const std::string& key, const std::optional<std::string>& expected,
                                std::span<const journal_write> changes);
/// Changes nothing, in a transaction of `operations` that look at `key`.
std::string probe_request(const std::string& key, std::size_t operations);

// Of an answer that is not what etcd says, these return `protocol`.

result<std::string> token_of(const std::string& answer);
/// Decimal.
result<std::string> cluster_id_of(const std::string& answer);
/// What a look found.
struct etcd_look {
  std::optional<std::string> single{};          ///< its value; nothing when it is not there
  std::map<std::string, std::string> entries{}; ///< keys without the prefix
};
result<etcd_look> look_of(const std::string& answer, const std::string& prefix);
/// Nothing when there is none.
result<std::optional<std::string>> first_key_of(const std::string& answer);

struct etcd_decision {
  bool succeeded = false;
  std::optional<std::string> found{}; ///< what a transaction that did not succeed tells
};
result<etcd_decision> decision_of(const std::string& answer);

/// @returns bad_usage, naming the `member` that gave it, when the version in the answer to a status
/// request is below `oldest`.
result<void> check_version(const std::string& answer, const std::string& oldest, const std::string& member);

/// Whether it is the token that is refused, not the user: it has expired, or users or roles have
/// changed since.
bool is_token_refused(long status, const std::string& answer);

/// What an answer means that is not http_ok, by `member`: system when it, or another member, may
/// say more later; disk_full, limit_exceeded and bad_usage as etcd_client says.
error refusal_of(long status, const std::string& answer, const std::string& member);

} // namespace dlrun::persistence
