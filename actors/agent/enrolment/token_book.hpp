/// Which tokens of a job may be used, once each.
#pragma once

#include "actors/protocol/time.hpp"

#include <cstddef>
#include <dlrun/error.hpp>
#include <list>
#include <string>

namespace dlrun::agent {

struct token_rules {
  /// That may be there unused. A token is for one host, and a job has 1000.
  std::size_t open_max = 1024;
  /// Those that were used or expired, the newest, so that who comes with one hears which it is.
  std::size_t over_max = 1024;
};

/// Pure: tokens by the SHA-256 of their secrets. A secret itself is not kept. Who is compared is
/// compared with all, each in constant time.
class token_book {
public:
  explicit token_book(token_rules rules = {})
      : rules_{rules} {}

  /// @returns limit_exceeded while too many wait to be used.
  result<void> add(std::string digest, protocol::duration lifetime, protocol::time_point now);
  /// The host that shows the secret with this digest: nobody else may use it from now on.
  /// @returns fenced with the reason when it cannot be used.
  result<void> take(const std::string& digest, protocol::time_point now);
  /// Who took it was refused for a reason that is not the token's: it may be used after all.
  void give_back(const std::string& digest);

private:
  struct entry {
    std::string digest;
    protocol::time_point valid_until;
    bool is_used = false;
  };
  entry* find(const std::string& digest);
  void forget_old(protocol::time_point now);

  token_rules rules_;
  std::list<entry> entries_; ///< in the order in which they were made
};

} // namespace dlrun::agent
