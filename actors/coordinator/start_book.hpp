/// The newest start of each role.
#pragma once

#include "actors/coordinator/arithmetic_book.hpp"
#include "actors/protocol/local_messages.hpp"

#include <map>
#include <optional>
#include <vector>

namespace dlrun::coordinator {

/// Pure: knows the newest start of each role, whether it runs, and where it has joined, and makes
/// the directory from that.
class start_book {
public:
  struct page {
    std::optional<protocol::fence> newest;
    bool running = false;                 ///< it has started and is not known to be over
    std::optional<protocol::endpoint> at; ///< where it has joined
  };

  /// @param relaxed roles need not compute the same bits
  explicit start_book(const std::vector<protocol::role_name>& roles, bool relaxed = false);

  /// There is such a role too; of one that is known it changes nothing.
  void add(const protocol::role_name& role) { pages_.try_emplace(role); }
  bool has(const protocol::role_name& role) const { return pages_.contains(role); }
  /// Of a role that the book has, as below.
  const page& of(const protocol::role_name& role) const { return pages_.at(role); }
  /// Whether that is the newest start, and it takes no part any more.
  bool is_over(const protocol::role_name& role, const protocol::fence& self) const;
  /// 0 of a role that never started, or that the book does not have.
  dlrun::incarnation newest(const protocol::role_name& role) const;

  /// `self` is the newest start of the role from now on, and runs. A role that is new gets a page.
  void begin(const protocol::role_name& role, const protocol::fence& self);
  /// It can be reached at that place. @returns whether that is news.
  bool join(const protocol::role_name& role, const protocol::endpoint& at);
  /// The newest start takes no part any more.
  void end(const protocol::role_name& role);
  /// The directory has another content than before for another reason: its number grows.
  void change_directory() { ++sequence_; }

  protocol::directory directory(dlrun::incarnation coordinator,
                                std::vector<protocol::suspect_slot> suspects) const;
  /// The starts that have joined, for a dispatcher that was started again.
  std::vector<protocol::worker_available> available_workers() const;
  std::vector<protocol::ps_shard_available> available_ps_shards() const;
  /// What those compute with that joined.
  arithmetic_book& arithmetic() { return arithmetic_; }
  const arithmetic_book& arithmetic() const { return arithmetic_; }

private:
  std::map<protocol::role_name, page> pages_;
  std::uint64_t sequence_ = 0; ///< of the directory
  arithmetic_book arithmetic_;
};

} // namespace dlrun::coordinator
