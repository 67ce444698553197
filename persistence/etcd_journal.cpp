#include "persistence/etcd_journal.hpp"

#include "base/random.hpp"
#include "base/utf8.hpp"
#include "persistence/etcd_owner.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

namespace dlrun::persistence {
namespace {

/// Of those that take the term at the same time one wins each round.
constexpr int rounds_max = 100;

tl::unexpected<error> not_a_journal(const std::string& prefix, const std::string& owner) {
  return fail(error_code::bad_usage,
              fmt::format("what etcd has under {}/ is no journal of a run that this dlrun can read (owner: "
                          "\"{}\"): name another cluster.journal.etcd.prefix",
                          prefix, base::printable(owner)));
}

/// Who has the journal, nobody yet where it is new, and its entries.
struct found_keys {
  std::optional<etcd_owner> owner{};
  std::map<std::string, std::string> entries{};
};

/// Its own keys only: under the prefix there may be a journal of another run.
result<found_keys> read_keys(etcd_client& client, const std::string& prefix) {
  auto keys = client.read(key_of_owner(prefix), key_of_entry(prefix, ""));
  if (!keys) return tl::unexpected(keys.error());
  found_keys found{keys->single ? etcd_owner_from(*keys->single) : std::nullopt, std::move(keys->entries)};
  const bool is_new = !keys->single && found.entries.empty();
  if (!found.owner && !is_new) return not_a_journal(prefix, keys->single.value_or(""));
  return found;
}

/// "a" and "a/b" of "a/b/c".
std::vector<std::string> prefixes_around(const std::string& prefix) {
  std::vector<std::string> all;
  for (auto at = prefix.find('/'); at != std::string::npos; at = prefix.find('/', at + 1))
    all.push_back(prefix.substr(0, at));
  return all;
}

tl::unexpected<error> not_free(const std::string& prefix, const std::string& why,
                               const std::string& removed) {
  return fail(
      error_code::bad_usage,
      fmt::format("{}: name another cluster.journal.etcd.prefix than {}, or leave it out, or, if what "
                  "is there is not wanted any more, remove it with 'etcdctl del --prefix {}/'",
                  why, prefix, removed));
}

/// A user of etcd that may not read outside the prefix cannot tell, and has no run there either.
result<void> check_around(etcd_client& client, const std::string& prefix) {
  for (const auto& outer : prefixes_around(prefix)) {
    const auto there = client.read(key_of_owner(outer), key_of_owner(outer));
    if (!there && there.error().code == error_code::bad_usage) continue;
    if (!there) return tl::unexpected(there.error());
    if (there->single && etcd_owner_from(*there->single))
      return not_free(prefix,
                      fmt::format("etcd has the journal of another run under {}/, around this one", outer),
                      outer);
  }
  return {};
}

} // namespace

class etcd_journal::implementation {
public:
  explicit implementation(const etcd_journal_options& options)
      : prefix_(options.prefix)
      , self_{options.owner, base::random_number()} {}

  result<void> take(const etcd_journal_options& options) {
    auto made = etcd_client::make(options.place, options.patience);
    if (!made) return tl::unexpected(made.error());
    client_ = std::move(*made);
    for (;;) { // as one taker: an attempt without an answer may have been done
      auto taken = take();
      if (taken || !may_pass(taken.error())) return taken;
      if (!options.keep_trying || !options.keep_trying(taken.error())) return taken;
    }
  }
  result<void> write(std::span<const journal_write> changes) {
    if (broken_) return tl::unexpected(*broken_);
    const std::vector<journal_write> wanted(changes.begin(), changes.end());
    for (;;) {
      const auto attempt = attempt_at(wanted);
      const auto written = put_owner(self_, attempt.owner, prefixed(wanted));
      if (!written && written.error().code == error_code::disk_full) return tl::unexpected(written.error());
      if (!written) return end(written.error());
      if (written->is_equal) {
        settle(attempt);
        return {};
      }
      const auto done = std::ranges::find_if(
          unsettled_, [&](const auto& one) { return to_text(one.owner) == written->found; });
      if (done == unsettled_.end()) return end(overtaken_by(written->found).error());
      settle(write_attempt{*done});
    }
  }

  const std::map<std::string, std::string>& contents() const { return entries_; }

private:
  static bool may_pass(const error& why) {
    return why.code == error_code::timed_out || why.code == error_code::disk_full;
  }

  struct write_attempt {
    etcd_owner owner; ///< once it is done
    std::vector<journal_write> changes;
  };

  /// Asked for again it has the same number, so that it is done once.
  write_attempt attempt_at(const std::vector<journal_write>& changes) {
    const auto known = std::ranges::find(unsettled_, changes, &write_attempt::changes);
    if (known != unsettled_.end()) return *known;
    auto owner = self_;
    owner.write = ++last_number_;
    unsettled_.push_back({owner, changes});
    return unsettled_.back();
  }

  void settle(const write_attempt& done) {
    self_ = done.owner;
    persistence::apply(done.changes, entries_);
    unsettled_.clear();
  }

  tl::unexpected<error> end(const error& why) {
    broken_ = why;
    return tl::unexpected(why);
  }

  std::vector<journal_write> prefixed(std::vector<journal_write> changes) const {
    for (auto& change : changes) change.key = key_of_entry(prefix_, change.key);
    return changes;
  }

  result<void> take() {
    auto before = read_keys(*client_, prefix_);
    for (int round = 0; before && round < rounds_max; ++round) {
      if (before->owner == self_) return keep(*before);
      if (before->owner && before->owner->term >= self_.term) return overtaken(*before->owner);
      const auto taken = put_owner(before->owner, self_, {});
      if (!taken) return tl::unexpected(taken.error());
      before = read_keys(*client_, prefix_);
    }
    if (!before) return tl::unexpected(before.error());
    return fail(error_code::timed_out,
                fmt::format("the journal {}/ in etcd changes hands all the time", prefix_));
  }

  result<void> keep(found_keys& found) {
    entries_ = std::move(found.entries);
    return {};
  }

  /// Where the answer was lost, `after` is found there.
  result<etcd_client::comparison> put_owner(const std::optional<etcd_owner>& before, const etcd_owner& after,
                                            std::vector<journal_write> changes) {
    const auto key = key_of_owner(prefix_);
    const auto expected = before ? std::optional(to_text(*before)) : std::nullopt;
    changes.push_back({key, to_text(after)});
    auto done = client_->compare_and_write(key, expected, changes);
    if (done && done->found == to_text(after)) done->is_equal = true;
    return done;
  }

  result<void> overtaken_by(const std::optional<std::string>& owner) const {
    const auto who = owner ? etcd_owner_from(*owner) : std::nullopt;
    if (who && is_older(*who, self_))
      return fail(
          error_code::fenced,
          fmt::format("older data was put back into the journal {}/ in etcd: write {} of incarnation {} "
                      "is the last one there, and write {} of incarnation {} was done",
                      prefix_, who->write, who->term, self_.write, self_.term));
    if (who) return overtaken(*who);
    return fail(error_code::fenced, fmt::format("the journal {}/ in etcd has been removed", prefix_));
  }

  result<void> overtaken(const etcd_owner& by) const {
    return fail(error_code::fenced, fmt::format("the journal {}/ in etcd was taken by incarnation {}: "
                                                "incarnation {} comes too late",
                                                prefix_, by.term, self_.term));
  }

  std::string prefix_;
  etcd_owner self_; ///< with the last write that is known to be done
  std::unique_ptr<etcd_client> client_;
  std::map<std::string, std::string> entries_;
  /// Of which etcd said that it has no space: it says so of what it has done, too. All compare the
  /// same owner, so that at most one of them is.
  std::vector<write_attempt> unsettled_;
  std::uint64_t last_number_ = 0;
  std::optional<error> broken_; ///< why there are no more writes
};

etcd_journal::etcd_journal(std::unique_ptr<implementation> parts)
    : parts_(std::move(parts)) {}
etcd_journal::~etcd_journal() = default;

result<std::unique_ptr<etcd_journal>> etcd_journal::take(const etcd_journal_options& options) {
  auto parts = std::make_unique<implementation>(options);
  if (auto taken = parts->take(options); !taken) return tl::unexpected(taken.error());
  return std::unique_ptr<etcd_journal>(new etcd_journal(std::move(parts)));
}

result<std::optional<journal_contents>> etcd_journal::read(const etcd_place& place, const std::string& prefix,
                                                           etcd_patience patience) {
  const auto client = etcd_client::make(place, patience);
  if (!client) return tl::unexpected(client.error());
  auto found = read_keys(**client, prefix);
  if (!found) return tl::unexpected(found.error());
  if (!found->owner) return std::nullopt;
  return journal_contents{found->owner->term, std::move(found->entries)};
}

result<std::string> etcd_journal::probe(const etcd_place& place, const std::string& prefix,
                                        std::size_t entries_max, etcd_patience patience) {
  const auto client = etcd_client::make(place, patience);
  if (!client) return tl::unexpected(client.error());
  return (*client)->probe(key_of_owner(prefix), entries_max + 1); // the owner's
}

result<void> etcd_journal::check_free(const etcd_place& place, const std::string& prefix,
                                      etcd_patience patience) {
  const auto client = etcd_client::make(place, patience);
  if (!client) return tl::unexpected(client.error());
  const auto found = (*client)->find_first(prefix + "/");
  if (!found) return tl::unexpected(found.error());
  if (!*found) return check_around(**client, prefix);
  return not_free(prefix,
                  fmt::format("etcd has the key {} already, of another run or of something else",
                              base::printable(**found)),
                  prefix);
}

const std::map<std::string, std::string>& etcd_journal::contents() const { return parts_->contents(); }
result<void> etcd_journal::write(std::span<const journal_write> changes) { return parts_->write(changes); }

} // namespace dlrun::persistence
