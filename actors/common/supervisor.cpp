#include "actors/common/supervisor.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <utility>

namespace dlrun::supervision {

supervisor::supervisor(supervisor_options options, std::vector<child_spec> children)
    : options_(options) {
  for (auto& spec : children) {
    child made;
    made.spec = std::move(spec);
    children_.push_back(std::move(made));
  }
}

result<supervisor> supervisor::create(supervisor_options options, std::vector<child_spec> children) {
  if (auto ok = validate(options, children); !ok) return tl::unexpected(ok.error());
  return supervisor(options, std::move(children));
}

// --- events

actions supervisor::start(time_point now) {
  DLRUN_CHECK(phase_ == phase::created || phase_ == phase::finished, "a supervisor is started twice");
  now_ = std::max(now_, now);
  if (phase_ == phase::finished) return {}; // shut down before it was started
  phase_ = phase::running;
  for (auto& c : children_) {
    c.wanted = true;
    c.in_order = true;
    c.why = "initial start";
  }
  return advance();
}

actions supervisor::shutdown(time_point now) {
  now_ = std::max(now_, now);
  if (phase_ == phase::stopping || phase_ == phase::finished) return {};
  stop_everything();
  return advance();
}

actions supervisor::add(child_spec spec, time_point now) {
  now_ = std::max(now_, now);
  if (phase_ != phase::running) return {};
  const bool starts_are_under_way =
      std::any_of(children_.begin(), children_.end(), [](const child& c) { return c.in_order; });
  child* c = find(spec.id);
  if (c == nullptr) c = &children_.emplace_back();
  c->spec = std::move(spec);
  c->has_been_up = true;
  c->wanted = true;
  c->in_order = starts_are_under_way;
  c->start_at = now_;
  c->delays = 0;
  c->why = "added";
  return advance();
}

actions supervisor::dismiss(std::string_view id, milliseconds grace, time_point now) {
  now_ = std::max(now_, now);
  child* c = find(id);
  if (phase_ != phase::running || c == nullptr) return {};
  c->wanted = false;
  c->in_order = false;
  actions out;
  if (c->live() && c->state != child_state::stopping) stop(*c, stop_child::kind::leave, grace, out);
  for (auto& a : advance()) out.push_back(std::move(a));
  return out;
}

actions supervisor::tick(time_point now) {
  now_ = std::max(now_, now);
  actions out;
  issue_kills(out);
  for (auto& a : advance()) out.push_back(std::move(a));
  return out;
}

actions supervisor::child_started(std::string_view id, generation number, time_point now) {
  now_ = std::max(now_, now);
  child* c = current(id, number);
  if (c == nullptr || c->state != child_state::starting) return {};
  note_up(*c);
  return advance();
}

actions supervisor::child_start_failed(std::string_view id, generation number, std::string detail,
                                       time_point now) {
  now_ = std::max(now_, now);
  child* c = current(id, number);
  if (c == nullptr || c->state == child_state::up) return {};
  start_failed(*c, {std::move(detail)});
  return advance();
}

actions supervisor::child_exited(std::string_view id, generation number, child_exit how, time_point now) {
  now_ = std::max(now_, now);
  child* c = current(id, number);
  if (c == nullptr) return {};
  if (how.had_begun && c->state == child_state::starting) note_up(*c);
  if (c->state == child_state::up)
    ended_by_itself(*c, how);
  else
    start_failed(*c, {"it ended before it was up: " + how.detail, how.settled, how.counts});
  return advance();
}

// --- children

supervisor::child* supervisor::find(std::string_view id) {
  const auto found =
      std::find_if(children_.begin(), children_.end(), [&](const child& c) { return c.spec.id == id; });
  return found == children_.end() ? nullptr : &*found;
}

supervisor::child* supervisor::current(std::string_view id, generation number) {
  child* c = find(id);
  return c != nullptr && c->live() && c->number == number ? c : nullptr;
}

// --- decisions

void supervisor::note_up(child& which) {
  which.state = child_state::up;
  which.has_been_up = true;
  which.in_order = false;
}

void supervisor::ended_by_itself(child& which, const child_exit& how) {
  which.state = child_state::absent;
  if (std::exchange(which.stop_pending, false))
    return; // its turn to be stopped had not come; it is just gone
  if (which.spec.restart == restart_type::permanent) restart(which, how);
}

/// Also the end of a child that is being stopped, which is what was wanted of it.
void supervisor::start_failed(child& which, const child_exit& how) {
  const bool was_starting = which.state == child_state::starting && !which.stop_pending;
  which.state = child_state::absent;
  which.stop_pending = false;
  if (!was_starting) return;
  if (which.has_been_up)
    return restart(which, {"its restart failed: " + how.detail, how.settled, how.counts});
  gave_up_ = fmt::format("child '{}' could not be started: {}", which.spec.id, how.detail);
  stop_everything();
}

void supervisor::restart(child& which, const child_exit& how) {
  if (how.counts && !count_restart()) {
    gave_up_ = fmt::format("more than {} restarts within {} ms; the last: child '{}' ended: {}",
                           options_.intensity, options_.period.count(), which.spec.id, how.detail);
    return stop_everything();
  }
  delay_restart(which, how.settled);
  which.wanted = true;
  which.why = fmt::format("restart {} of at most {} within {} ms: '{}' ended: {}", restarts_.size(),
                          options_.intensity, options_.period.count(), which.spec.id, how.detail);
}

/// @returns false when this restart is one too many. As in OTP, a restart exactly one period ago
/// still counts.
bool supervisor::count_restart() {
  while (!restarts_.empty() && restarts_.front() + options_.period < now_) restarts_.pop_front();
  restarts_.push_back(now_);
  return restarts_.size() <= options_.intensity;
}

void supervisor::delay_restart(child& which, bool settled) {
  which.delays = settled ? 0 : which.delays;
  which.start_at = now_;
  if (options_.delay.first == milliseconds{0} || settled) return;
  const auto longest = which.spec.delay_max.value_or(options_.delay.max);
  auto delay = options_.delay.first;
  for (std::size_t i = 0; i < which.delays && delay < longest; ++i) delay *= 2;
  which.start_at = now_ + std::min(delay, longest);
  ++which.delays;
}

void supervisor::stop_everything() {
  phase_ = phase::stopping;
  for (auto& c : children_) {
    c.wanted = false;
    c.in_order = false;
    if (c.state == child_state::stopping)
      c.state = child_state::up; // it was leaving: there is no time for that
    c.stop_pending = c.state == child_state::starting || c.state == child_state::up;
  }
}

// --- actions

actions supervisor::advance() {
  actions out;
  issue_stop(out);
  if (phase_ == phase::stopping)
    issue_end(out);
  else if (phase_ == phase::running)
    issue_starts(out);
  return out;
}

/// The last of those that must go, when nobody behind it is still going.
void supervisor::issue_stop(actions& out) {
  if (phase_ != phase::stopping) return;
  for (auto c = children_.rbegin(); c != children_.rend(); ++c) {
    if (c->state == child_state::stopping) return;
    if (c->stop_pending) return stop(*c, stop_child::kind::terminate, c->spec.patience, out);
  }
}

void supervisor::issue_end(actions& out) {
  if (std::any_of(children_.begin(), children_.end(), [](const child& c) { return c.live(); })) return;
  phase_ = phase::finished;
  if (gave_up_)
    out.emplace_back(escalate{*gave_up_});
  else
    out.emplace_back(supervisor_stopped{});
}

void supervisor::issue_starts(actions& out) {
  bool wait_for_earlier = false;
  for (auto& c : children_) {
    const bool may = !c.in_order || !wait_for_earlier;
    if (c.wanted && !c.live() && may && c.start_at <= now_) start(c, out);
    wait_for_earlier = wait_for_earlier || c.in_order;
  }
}

void supervisor::issue_kills(actions& out) {
  for (auto& c : children_) {
    if (c.state != child_state::stopping || c.killed || now_ < c.kill_at) continue;
    c.killed = true;
    out.emplace_back(stop_child{c.spec.id, c.number, stop_child::kind::kill});
  }
}

void supervisor::stop(child& which, stop_child::kind how, milliseconds patience, actions& out) {
  which.state = child_state::stopping;
  which.stop_pending = false;
  which.killed = false;
  which.kill_at = now_ + patience;
  out.emplace_back(stop_child{which.spec.id, which.number, how});
}

void supervisor::start(child& which, actions& out) {
  which.state = child_state::starting;
  which.wanted = false;
  ++which.number;
  out.emplace_back(start_child{which.spec.id, which.number, which.why});
}

} // namespace dlrun::supervision
