/// What the data dispatcher keeps in the journal: the course of the training (docs/formats.md).
#pragma once

#include "actors/data_dispatcher/data_dispatcher_actions.hpp"
#include "persistence/journal.hpp"

#include <map>
#include <string>
#include <vector>

namespace dlrun::data_dispatcher {

/// What a new start begins with; that of a new job when there is nothing. @returns storage_damaged
/// for an entry that cannot be read.
result<journaled_course> read_course(const std::map<std::string, std::string>& entries);

/// Makes the writes of one start of the dispatcher, each of which has what the one before has not.
class course_writer {
public:
  /// @param entries what the journal has; of one of format 1 all results are written anew
  explicit course_writer(const std::map<std::string, std::string>& entries = {});

  /// To be written before the next are asked for; all or none.
  std::vector<persistence::journal_write> to_writes(const journaled_course& course);

private:
  bool was_older_ = false; ///< R41: this dispatcher knew so when it began; one before it does not
  std::vector<protocol::evaluated> apart_; ///< the results in entries of their own
};

} // namespace dlrun::data_dispatcher
