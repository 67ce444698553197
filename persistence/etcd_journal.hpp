/// etcd_journal: the journal of a coordinator that may run on any host.
#pragma once

#include "persistence/etcd_client.hpp"

#include <functional>

namespace dlrun::persistence {

struct etcd_journal_options {
  etcd_place place;
  std::string prefix; ///< of the run's keys, without a '/' at its end
  /// Incarnation that takes the journal; must be above every one that has taken it.
  incarnation owner;
  etcd_patience patience{};
  /// Called after each attempt to take the journal that failed because nobody answers (timed_out)
  /// or etcd has no space (disk_full); the attempt may have taken it all the same. May block.
  /// @returns whether to try again. Empty: take() does not try again.
  std::function<bool(const error& why)> keep_trying{};
};

/// A journal in an etcd. Keys: PREFIX/owner, whose value names term, taker and number of the last
/// write, and PREFIX/entry/KEY. Taking the journal compares the owner that was read. Every write is
/// one transaction that compares the owner as of the write before, and puts itself there as the
/// next. So a write that was overtaken, by a newer term or a later write, does nothing when it
/// arrives late; and a write whose answer was lost is repeated under its number, by its writer
/// alone, and done once.
///
/// Without an answer within `patience` the outcome of a write is unknown (timed_out): it may be
/// done later. This journal then takes no other write.
class etcd_journal : public journal {
public:
  /// Takes the term, then reads.
  /// @returns fenced when `owner` is not above the last one; bad_usage when what is there is no
  /// journal; as etcd_client does.
  static result<std::unique_ptr<etcd_journal>> take(const etcd_journal_options& options);

  /// Reads the contents as of one moment; fences nobody, and an owner may be writing. @returns
  /// nothing when there is no journal.
  static result<std::optional<journal_contents>> read(const etcd_place& place, const std::string& prefix,
                                                      etcd_patience patience = {});

  /// Finds out whether such a journal can be written, with up to `entries_max` changes at once.
  /// @returns the id of etcd's cluster.
  static result<std::string> probe(const etcd_place& place, const std::string& prefix,
                                   std::size_t entries_max, etcd_patience patience = {});

  /// Checks the prefix of a run that is to begin. @returns bad_usage, with the way out, when there
  /// is anything under the prefix, or the prefix lies within the journal of another run: removing
  /// the keys of that run would remove these too.
  static result<void> check_free(const etcd_place& place, const std::string& prefix,
                                 etcd_patience patience = {});

  ~etcd_journal() override;

  const std::map<std::string, std::string>& contents() const override;
  result<void> write(std::span<const journal_write> changes) override;

private:
  class implementation;
  explicit etcd_journal(std::unique_ptr<implementation> parts);

  std::unique_ptr<implementation> parts_;
};

} // namespace dlrun::persistence
