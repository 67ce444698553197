/// The fences of starts of roles: issued, journaled, granted, used up (rules R4, R15, R20, R41).
#pragma once

#include "actors/protocol/roles.hpp"

#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace dlrun::coordinator {

/// What the journal keeps of one role; replaces what it kept before.
struct journaled_role {
  protocol::role_name role;
  dlrun::incarnation last_issued;
  std::vector<protocol::fence> usable{}; ///< issued and not known to be over, ascending
  std::uint64_t agent = 0;               ///< to whom
  /// R20: a journal that is lost may have issued any up to this one, under tokens that nobody knows
  /// any more.
  dlrun::incarnation believed_up_to{};
  std::vector<protocol::fence> earlier{}; ///< R35: issued to an agent before that one, may still run

  bool operator==(const journaled_role&) const = default;
};

struct fence_book_config {
  /// Nothing is granted before it is journaled. False: there is no journal.
  bool journals = false;
  /// Random number of the agent's process: it alone knows which of its fences are used up, so what
  /// was issued to another (before a `dlrun resume`) starts nothing any more.
  std::uint64_t agent = 0;
  std::function<std::uint64_t()> random{}; ///< for tokens
};

/// Pure: issues fences and knows what became of each. It never issues an incarnation twice, over
/// all coordinators of a job.
class fence_book {
public:
  fence_book(fence_book_config config, const std::vector<protocol::role_name>& roles);

  /// There is such a role too; of one that is known it changes nothing.
  void add(const protocol::role_name& role);
  void restore(const journaled_role& kept);
  /// R20, R41: begins beyond anything ever issued; `highest` is the highest that was heard of. What
  /// was granted before starts nothing more, unless the role says that it did.
  void begin_anew(dlrun::incarnation highest);
  /// R41: whether `self` can only have been issued after the journal was written that this book
  /// was read from. Not of starts that are used up, whose tokens are forgotten.
  bool is_beyond(const protocol::role_name& role, const protocol::fence& self) const;

  /// Issues fences until there are `wanted` that are not used. True when that grants some at once.
  bool issue(const protocol::role_name& role, std::size_t wanted);
  /// Fences that the role may be started with, ascending.
  const std::vector<protocol::fence>& granted(const protocol::role_name& role) const;
  dlrun::incarnation last_issued(const protocol::role_name& role) const;
  /// Whether `self` is a fence of this book; `newest` is the newest start that was heard of.
  bool is_issued(const protocol::role_name& role, const protocol::fence& self,
                 dlrun::incarnation newest) const;
  /// R35: whether `self` was issued to an agent before this one, and may still run.
  bool was_issued(const protocol::role_name& role, const protocol::fence& self,
                  dlrun::incarnation newest) const;
  /// R35: there is another agent. What was granted to the one before starts nothing more, since
  /// nobody knows any longer what of it was used.
  void serve(std::uint64_t agent);
  /// The role was started with it: it and the older ones are used up.
  void use(const protocol::role_name& role, const protocol::fence& self);

  /// What is to be journaled next; empty when nothing is, or a write is on its way.
  std::vector<journaled_role> begin_write();
  /// That write is done. @returns the roles with newly granted fences.
  std::vector<protocol::role_name> end_write();

private:
  struct page {
    std::optional<protocol::fence> in_use;
    std::vector<protocol::fence> granted; ///< journaled, not used
    std::vector<protocol::fence> earlier; ///< journaled for an agent before this one
    std::vector<protocol::fence> writing; ///< on their way to the journal
    std::vector<protocol::fence> fresh;   ///< not on their way yet
    dlrun::incarnation last_issued;
    dlrun::incarnation believed_up_to;
  };

  fence_book_config config_;
  std::map<protocol::role_name, page> pages_;
  bool is_writing_ = false;
  std::optional<dlrun::incarnation> begun_anew_; ///< R20: beyond what
  bool everything_is_new_ = false;               ///< R20: the next write names every role
};

} // namespace dlrun::coordinator
