#include "tests/persistence/journal_history.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <tuple>
#include <utility>

namespace dlrun::test {
namespace {

using answer = journal_call::answer;
using kind = journal_call::kind;

/// A journal that does one call after the other.
struct plain_journal {
  std::uint64_t term = 0;
  std::map<std::string, std::string> entries{};

  auto operator<=>(const plain_journal&) const = default;
};

/// @returns the journal after the call, which was not refused, or nothing where it cannot have been
/// answered so
std::optional<plain_journal> after(const plain_journal& before, const journal_call& call) {
  auto now = before;
  switch (call.what) {
  case kind::read:
    if (call.told != answer::unknown && (call.term != before.term || call.entries != before.entries))
      return {};
    return now;
  case kind::take:
    if (before.term >= call.term || (call.told == answer::done && call.entries != before.entries)) return {};
    now.term = call.term;
    return now;
  case kind::write:
    if (before.term != call.term) return {};
    persistence::apply(call.changes, now.entries);
    return now;
  }
  return {};
}

std::string text_of(const journal_call& call) {
  static constexpr const char* kinds[] = {"take", "write", "read"};
  static constexpr const char* answers[] = {"done", "refused", "unknown"};
  std::vector<std::string> pairs;
  for (const auto& one : call.changes) pairs.push_back(one.key + "=" + one.value.value_or("(removed)"));
  for (const auto& [key, value] : call.entries) pairs.push_back(key + ": " + value);
  return fmt::format("{} of term {}, {}, from {} to {}: {}", kinds[static_cast<int>(call.what)], call.term,
                     answers[static_cast<int>(call.told)], call.begun,
                     call.ended == journal_call::never ? "the end" : std::to_string(call.ended),
                     fmt::join(pairs, ", "));
}

/// A refusal is two: what may have been carried out before, and the moment at which it was refused.
struct step {
  journal_call call;
  std::optional<std::size_t> other{}; ///< of a refusal, either half: the other one
};

std::vector<step> steps_of(const journal_history& history) {
  std::vector<step> all;
  for (const auto& call : history) {
    all.push_back({call});
    if (call.told != answer::refused) continue;
    auto earlier = call;
    earlier.told = answer::unknown;
    earlier.ended = journal_call::never;
    const auto refusal = all.size() - 1;
    all.back().other = refusal + 1;
    all.push_back({std::move(earlier), refusal});
  }
  return all;
}

/// Depth first; what was seen with the same calls done and the same journal is not tried again.
class order_search {
public:
  explicit order_search(const journal_history& history)
      : steps_(steps_of(history))
      , is_done_(steps_.size(), false) {}

  bool finds_one() { return place_next(); }

  /// The first call to end of those that the longest order leaves out.
  const journal_call& stuck_at() const { return steps_[stuck_at_].call; }

private:
  bool place_next() {
    const auto first = first_to_end();
    if (!first) return true; // all that were answered are placed
    if (placed_ >= longest_) {
      longest_ = placed_;
      stuck_at_ = *first;
    }
    if (!seen_.insert({is_done_, now_}).second) return false;
    for (std::size_t i = 0; i < steps_.size(); ++i)
      if (!is_done_[i] && steps_[i].call.begun < steps_[*first].call.ended && place(i)) return true;
    return false;
  }

  bool place(std::size_t at) {
    auto next = after_step(at);
    if (!next) return false;
    const auto before = std::exchange(now_, *std::move(next));
    is_done_[at] = true;
    ++placed_;
    if (place_next()) return true;
    --placed_;
    is_done_[at] = false;
    now_ = before;
    return false;
  }

  std::optional<plain_journal> after_step(std::size_t at) const {
    const auto& [call, other] = steps_[at];
    if (call.told != answer::refused)
      return other && is_done_[*other] ? std::nullopt : after(now_, call); // once refused it is not done
    const bool was_done = is_done_[*other];
    const bool is_right = call.what == kind::write ? now_.term != call.term
                          : was_done               ? now_.term > call.term
                                                   : now_.term >= call.term;
    return is_right ? std::optional(now_) : std::nullopt;
  }

  /// Nothing that begins after it can be placed before it.
  std::optional<std::size_t> first_to_end() const {
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < steps_.size(); ++i)
      if (!is_done_[i] && steps_[i].call.told != answer::unknown &&
          (!first || steps_[i].call.ended < steps_[*first].call.ended))
        first = i;
    return first;
  }

  std::vector<step> steps_;
  std::vector<bool> is_done_;
  plain_journal now_;
  std::set<std::pair<std::vector<bool>, plain_journal>> seen_;
  std::size_t placed_ = 0, longest_ = 0, stuck_at_ = 0;
};

} // namespace

std::optional<std::string> unexplained_call(const journal_history& history) {
  order_search search(history);
  if (search.finds_one()) return std::nullopt;
  return text_of(search.stuck_at());
}

std::string to_text(const journal_history& history) {
  std::string text;
  for (const auto& call : history) text += text_of(call) + "\n";
  return text;
}

std::size_t history_recorder::begin(kind what, std::uint64_t term,
                                    std::vector<persistence::journal_write> changes) {
  const std::lock_guard lock(mutex_);
  journal_call call;
  call.what = what;
  call.term = term;
  call.changes = std::move(changes);
  call.begun = ++moment_;
  calls_.push_back(std::move(call));
  return calls_.size() - 1;
}

void history_recorder::end(std::size_t call, answer told, std::map<std::string, std::string> entries,
                           std::optional<std::uint64_t> term) {
  const std::lock_guard lock(mutex_);
  auto& one = calls_[call];
  one.told = told;
  one.entries = std::move(entries);
  one.term = term.value_or(one.term);
  if (told != answer::unknown) one.ended = ++moment_;
  ++ended_;
  changed_.notify_all();
}

void history_recorder::wait_for_more(std::size_t calls) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&, enough = ended_ + calls] { return is_over_ || ended_ >= enough; });
}

void history_recorder::no_more() {
  const std::lock_guard lock(mutex_);
  is_over_ = true;
  changed_.notify_all();
}

journal_history history_recorder::all() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

} // namespace dlrun::test
