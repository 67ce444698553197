#include "actors/data_dispatcher/course_journal.hpp"

#include "actors/common/job_journal.hpp"
#include "actors/common/journaled_evaluation.hpp"
#include "proto/journal_records.pb.h"

namespace dlrun::data_dispatcher {
namespace {

using common::course_is_older_key;
using common::course_key;
using common::outcome_key;

tl::unexpected<error> unreadable(const char* key) {
  return fail(error_code::storage_damaged,
              fmt::format("the entry '{}' of the journal cannot be read: use the version of dlrun that wrote "
                          "it, restore the run folder from a copy, or train in another one",
                          key));
}

void put(const protocol::parked_slot& parked, records::ParkedSlot& into) {
  into.set_step(parked.step.value);
  into.set_slot(parked.slot.value);
  into.set_record_after(parked.record + 1); // all_records becomes 0
}

protocol::parked_slot parked_from(const records::ParkedSlot& from) {
  return {{from.step()}, {from.slot()}, from.record_after() - 1}; // 0 becomes all_records
}

protocol::timeline_entry entry_from(const records::Timeline& from) {
  protocol::timeline_entry entry{{from.timeline()}, {from.branch()}, from.revision(), {}};
  for (const auto& parked : from.parked()) entry.parked.push_back(parked_from(parked));
  return entry;
}

} // namespace

result<journaled_course> read_course(const std::map<std::string, std::string>& entries) {
  journaled_course course;
  if (const auto end = entries.find(outcome_key); end != entries.end()) {
    records::JournalOutcome outcome;
    if (!outcome.ParseFromString(end->second)) return unreadable(outcome_key);
    course.ended = outcome.kind() == records::JournalOutcome::COMPLETED;
  }
  course.lost = entries.contains(course_is_older_key);
  const auto found = entries.find(course_key);
  if (found == entries.end()) return course;
  records::JournalCourse message;
  if (message.ParseFromString(found->second)) {
    course.history.clear();
    for (const auto& entry : message.history()) course.history.push_back(entry_from(entry));
    for (const auto& parked : message.parked()) course.parked.push_back(parked_from(parked));
    auto evaluations = common::read_evaluations(entries, message);
    if (evaluations) course.evaluations = std::move(*evaluations);
    if (evaluations && protocol::is_valid(course.history)) return course;
  }
  return unreadable(course_key);
}

course_writer::course_writer(const std::map<std::string, std::string>& entries)
    : was_older_{entries.contains(course_is_older_key)} {
  const auto found = entries.find(course_key);
  records::JournalCourse message;
  if (found == entries.end() || !message.ParseFromString(found->second)) return;
  if (message.evaluations_apart() == 0) return;
  apart_ = common::read_evaluations(entries, message).value_or(std::vector<protocol::evaluated>{});
}

std::vector<persistence::journal_write> course_writer::to_writes(const journaled_course& course) {
  records::JournalCourse message;
  for (const auto& entry : course.history) {
    auto& stored = *message.add_history();
    stored.set_timeline(entry.timeline.value);
    stored.set_branch(entry.branch.value);
    stored.set_revision(entry.revision);
    for (const auto& parked : entry.parked) put(parked, *stored.add_parked());
  }
  for (const auto& parked : course.parked) put(parked, *message.add_parked());
  message.set_evaluations_apart(static_cast<std::uint32_t>(course.evaluations.size()));
  auto writes = common::evaluation_writes(apart_, course.evaluations);
  apart_ = course.evaluations;
  writes.push_back({course_key, message.SerializeAsString()});
  if (was_older_ && !course.lost) {
    writes.push_back({course_is_older_key, std::nullopt});
    was_older_ = false;
  }
  return writes;
}

} // namespace dlrun::data_dispatcher
