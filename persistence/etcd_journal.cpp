#include "persistence/etcd_journal.hpp"

#include "base/random.hpp"
#include "base/utf8.hpp"
#include "persistence/etcd_owner.hpp"

#include <fmt/format.h>
#include <vector>

namespace dlrun::persistence {
namespace {

/// Of those that take the term at the same time one wins each round.
constexpr int rounds_max = 100;
constexpr std::string_view owner_name = "owner";
constexpr std::string_view entries_name = "entry/";

tl::unexpected<error> not_a_journal(const std::string& prefix, const std::string& owner) {
  return fail(error_code::bad_usage,
              fmt::format("what etcd has under {}/ is no journal of a run that this dlrun can read (owner: "
                          "\"{}\"): name another cluster.journal.etcd.prefix",
                          prefix, base::printable(owner)));
}

/// What is under the prefix: who has the journal, nobody yet where it is new, and its entries.
struct found_keys {
  std::optional<etcd_owner> owner{};
  std::map<std::string, std::string> entries{};
};

result<found_keys> sort_keys(const std::map<std::string, std::string>& keys, const std::string& prefix) {
  found_keys found;
  for (const auto& [key, value] : keys)
    if (key.starts_with(entries_name)) {
      found.entries.emplace(key.substr(entries_name.size()), value);
    } else {
      found.owner = key == owner_name ? etcd_owner_from(value) : std::nullopt;
      if (!found.owner) return not_a_journal(prefix, key == owner_name ? value : key);
    }
  if (!found.entries.empty() && !found.owner) return not_a_journal(prefix, "");
  return found;
}

} // namespace

class etcd_journal::implementation {
public:
  explicit implementation(const etcd_journal_options& options)
      : prefix_(options.prefix + "/")
      , self_{options.owner, base::random_number(), 0} {}

  result<void> take(const etcd_journal_options& options) {
    auto made = etcd_client::make(options.place, options.patience);
    if (!made) return tl::unexpected(made.error());
    client_ = std::move(*made);
    const auto give_up = std::chrono::steady_clock::now() + options.take_patience;
    for (;;) {
      auto taken = take();
      const bool nobody_answers = !taken && taken.error().code == error_code::timed_out;
      if (!nobody_answers || std::chrono::steady_clock::now() >= give_up) return taken;
    }
  }
  result<void> write(std::span<const journal_write> changes) {
    if (broken_) return tl::unexpected(*broken_);
    auto next = self_;
    ++next.write;
    std::vector<journal_write> prefixed;
    for (const auto& change : changes)
      prefixed.push_back({prefix_ + std::string(entries_name) + change.key, change.value});
    auto written = put_owner(self_, next, std::move(prefixed));
    if (written && written->is_equal) {
      self_ = next;
      apply(changes, entries_);
      return {};
    }
    if (!written && written.error().code == error_code::disk_full) return tl::unexpected(written.error());
    broken_ = written ? overtaken_by(written->found).error() : written.error();
    return tl::unexpected(*broken_);
  }

  const std::map<std::string, std::string>& contents() const { return entries_; }

private:
  result<void> take() {
    auto before = read_keys();
    for (int round = 0; before && round < rounds_max; ++round) {
      if (before->owner == self_) return keep(*before);
      if (before->owner && before->owner->term >= self_.term) return overtaken(*before->owner);
      const auto taken = put_owner(before->owner, self_, {});
      if (!taken) return tl::unexpected(taken.error());
      before = read_keys();
    }
    if (!before) return tl::unexpected(before.error());
    return fail(error_code::timed_out,
                fmt::format("the journal {} in etcd changes hands all the time", prefix_));
  }

  result<found_keys> read_keys() {
    const auto keys = client_->read(prefix_);
    if (!keys) return tl::unexpected(keys.error());
    return sort_keys(*keys, prefix_.substr(0, prefix_.size() - 1));
  }

  result<void> keep(found_keys& found) {
    entries_ = std::move(found.entries);
    return {};
  }

  /// Where the answer was lost, `after` is found there.
  result<etcd_client::comparison> put_owner(const std::optional<etcd_owner>& before, const etcd_owner& after,
                                            std::vector<journal_write> changes) {
    const auto key = prefix_ + std::string(owner_name);
    const auto expected = before ? std::optional(to_text(*before)) : std::nullopt;
    changes.push_back({key, to_text(after)});
    auto done = client_->compare_and_write(key, expected, changes);
    if (done && done->found == to_text(after)) done->is_equal = true;
    return done;
  }

  result<void> overtaken_by(const std::optional<std::string>& owner) const {
    const auto who = owner ? etcd_owner_from(*owner) : std::nullopt;
    if (who) return overtaken(*who);
    return fail(error_code::fenced, fmt::format("the journal {} in etcd has been removed", prefix_));
  }

  result<void> overtaken(const etcd_owner& by) const {
    return fail(error_code::fenced, fmt::format("the journal {} in etcd was taken by incarnation {}: "
                                                "incarnation {} comes too late",
                                                prefix_, by.term, self_.term));
  }

  std::string prefix_;
  etcd_owner self_; ///< with the last write that is known to be done
  std::unique_ptr<etcd_client> client_;
  std::map<std::string, std::string> entries_;
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
  const auto keys = (*client)->read(prefix + "/");
  if (!keys) return tl::unexpected(keys.error());
  auto found = sort_keys(*keys, prefix);
  if (!found) return tl::unexpected(found.error());
  if (!found->owner) return std::nullopt;
  return journal_contents{found->owner->term, std::move(found->entries)};
}

result<std::string> etcd_journal::probe(const etcd_place& place, const std::string& prefix,
                                        std::size_t entries_max, etcd_patience patience) {
  const auto client = etcd_client::make(place, patience);
  if (!client) return tl::unexpected(client.error());
  return (*client)->probe(prefix + "/" + std::string(owner_name), entries_max + 1); // the owner's
}

const std::map<std::string, std::string>& etcd_journal::contents() const { return parts_->contents(); }
result<void> etcd_journal::write(std::span<const journal_write> changes) { return parts_->write(changes); }

} // namespace dlrun::persistence
