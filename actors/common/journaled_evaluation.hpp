/// An evaluation as the journal has it, in two of its entries: the coordinator's and the course.
#pragma once

#include "actors/protocol/dispatch_messages.hpp"
#include "proto/journal_records.pb.h"

namespace dlrun::common {

inline protocol::evaluated evaluated_from(const records::JournalEvaluation& from) {
  protocol::evaluated result;
  result.timeline = {from.timeline()};
  result.version = {from.version()};
  result.loss_sum_bits = from.loss_sum_bits();
  result.records = from.records();
  result.metric_bits.assign(from.metric_bits().begin(), from.metric_bits().end());
  return result;
}

} // namespace dlrun::common
