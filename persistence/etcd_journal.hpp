/// etcd_journal: the journal of a coordinator that may run on any host.
#pragma once

#include "persistence/etcd_client.hpp"

#include <functional>

namespace dlrun::persistence {

struct etcd_journal_options {
  etcd_place place;
  std::string prefix; ///< of the run's keys, without a '/' at its end
  /// Who takes it; must be above whoever took it before.
  incarnation owner;
  etcd_patience patience{};
  /// While it cannot be taken because nobody answers (timed_out) or etcd has no space (disk_full),
  /// which may have taken it all the same: called after each attempt, may block. @returns whether
  /// to try again. None: does not.
  std::function<bool(const error& why)> keep_trying{};
};

/// Keys of an etcd: PREFIX/owner, whose value names term, taker and number of the last write, and
/// PREFIX/entry/KEY. Taking compares the owner that was read; every write is one transaction that
/// compares the owner as of the write before, and puts itself there as the next. So whatever was
/// overtaken, by a newer term or by a later write, is not done when it arrives late; and a write
/// whose answer was lost is asked for again under its number, by its writer alone, and done once.
///
/// Without an answer for as long as `patience` says a write is unknown (timed_out): it may be done
/// later. This journal then takes no other.
class etcd_journal : public journal {
public:
  /// Takes the term, then reads.
  /// @returns fenced when `owner` is not above the last one; bad_usage when what is there is no
  /// journal; as etcd_client does.
  static result<std::unique_ptr<etcd_journal>> take(const etcd_journal_options& options);

  /// A look that fences nobody; of a moment, while an owner may write. @returns nothing when there
  /// is no journal.
  static result<std::optional<journal_contents>> read(const etcd_place& place, const std::string& prefix,
                                                      etcd_patience patience = {});

  /// Finds out whether such a journal can be written, with up to `entries_max` changes at once.
  /// @returns the id of etcd's cluster.
  static result<std::string> probe(const etcd_place& place, const std::string& prefix,
                                   std::size_t entries_max, etcd_patience patience = {});

  /// Of a run that is to begin. @returns bad_usage, with the way out, when there is anything under
  /// the prefix, or the prefix is within the journal of another run: who removes that one's keys
  /// would remove this one's.
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
