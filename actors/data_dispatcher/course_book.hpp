/// The course of the training as the journal has it, and the change that is on its way there (rule
/// R15).
#pragma once

#include "actors/data_dispatcher/data_dispatcher_actions.hpp"

#include <optional>
#include <utility>

namespace dlrun::data_dispatcher {

/// Pure: keeps the course as it is journaled. One change at a time is on its way to the journal;
/// until the journal has it, the course is what it was.
class course_book {
public:
  /// What a write has changed.
  struct change {
    journaled_course before;
    std::optional<protocol::timeline_started> start; ///< the course goes on on a new timeline
  };

  explicit course_book(journaled_course course);

  const journaled_course& course() const { return course_; }
  timeline_id timeline() const { return newest_timeline(course_.history); }
  bool is_writing() const { return writing_.has_value(); }

  /// Orders to journal `course`. Not while another is on its way.
  void write(journaled_course course, std::optional<protocol::timeline_started> start,
             data_dispatcher_actions& out);
  /// The write with this id is synced: its course is the course. Nothing if it is not the one on
  /// its way.
  std::optional<change> on_journaled(std::uint64_t id);

private:
  struct writing {
    std::uint64_t id = 0;
    journaled_course course;
    std::optional<protocol::timeline_started> start;
  };

  journaled_course course_;
  std::optional<writing> writing_;
  std::uint64_t next_write_ = 1;
};

/// The entry of the timeline that follows this history, from `branch` on.
inline protocol::timeline_entry next_entry(const protocol::history& history, version_id branch) {
  return {{newest_timeline(history).value + 1}, branch, history.back().revision, {}};
}

} // namespace dlrun::data_dispatcher
