#include "actors/data_dispatcher/course_book.hpp"

#include <dlrun/check.hpp>

namespace dlrun::data_dispatcher {

course_book::course_book(journaled_course course)
    : course_(std::move(course)) {
  DLRUN_CHECK(is_valid(course_.history), "a journal has a history");
}

void course_book::write(journaled_course course, std::optional<protocol::timeline_started> start,
                        data_dispatcher_actions& out) {
  DLRUN_CHECK(!writing_, "the course is changed while a change is on its way to the journal");
  writing_ = writing{next_write_++, std::move(course), std::move(start)};
  out.emplace_back(journal_course{writing_->id, writing_->course});
}

std::optional<course_book::change> course_book::on_journaled(std::uint64_t id) {
  if (!writing_ || writing_->id != id) return std::nullopt;
  change done{std::exchange(course_, std::move(writing_->course)), std::move(writing_->start)};
  writing_.reset();
  return done;
}

} // namespace dlrun::data_dispatcher
