/// What was asked of a journal by several at once, and whether one order explains all answers.
#pragma once

#include "persistence/journal.hpp"

#include <condition_variable>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::test {

/// One call. Moments are numbers that grow with time; no two are the same.
struct journal_call {
  enum class kind { take, write, read };
  enum class answer {
    done,    ///< carried out; take and read: `entries` is what was found
    refused, ///< take: somebody has this term or a later one; write: somebody else has the journal.
             ///< It may have been carried out before that (an answer was lost, and it asked again)
    unknown, ///< none came: carried out at any moment since, or never
  };
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

  kind what = kind::take;
  std::uint64_t term = 0; ///< of who asks; read: of who was found to have it, 0: nobody yet
  std::vector<persistence::journal_write> changes{};
  answer told = answer::unknown;
  std::map<std::string, std::string> entries{};
  std::uint64_t begun = 0;
  std::uint64_t ended = never; ///< of unknown ones it stays so
};

using journal_history = std::vector<journal_call>;

/// Pure: whether the calls can be put into one order that keeps to their times, in which a journal
/// that does one after the other gives all these answers (linearizability, by the search of Wing
/// and Gong with the states of Lowe). @returns nothing, or a call that none of the longest orders
/// can explain, as text.
std::optional<std::string> unexplained_call(const journal_history& history);

/// One line a call.
std::string to_text(const journal_history& history);

/// Takes down calls of several threads.
class history_recorder {
public:
  /// @returns the number of the call
  std::size_t begin(journal_call::kind what, std::uint64_t term,
                    std::vector<persistence::journal_write> changes = {});
  /// @param term read: of who was found
  void end(std::size_t call, journal_call::answer told, std::map<std::string, std::string> entries = {},
           std::optional<std::uint64_t> term = {});

  /// Blocks until so many more calls have ended, or no more will.
  void wait_for_more(std::size_t calls);
  void no_more();

  journal_history all() const;

private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t ended_ = 0;
  bool is_over_ = false;
  std::uint64_t moment_ = 0;
  journal_history calls_;
};

} // namespace dlrun::test
