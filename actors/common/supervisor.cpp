#include "actors/common/supervisor.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

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
  stop_everything(false, "the supervisor was asked to shut down");
  return advance();
}

actions supervisor::tick(time_point now) {
  now_ = std::max(now_, now);
  actions out;
  issue_kills(out);
  for (auto& a : advance()) out.push_back(std::move(a));
  return out;
}

std::optional<time_point> supervisor::next_tick() const {
  auto next = time_point::max();
  for (const auto& c : children_) {
    if (c.state == child_state::stopping && !c.killed) next = std::min(next, c.kill_at);
    // A delay that is over waits for something else than time.
    if (c.wanted && !c.live() && c.start_at > now_) next = std::min(next, c.start_at);
  }
  return next == time_point::max() ? std::nullopt : std::optional(next);
}

actions supervisor::child_started(std::string_view id, generation number, time_point now) {
  now_ = std::max(now_, now);
  child* c = current(id, number);
  if (c == nullptr || c->state != child_state::starting) return {};
  c->state = child_state::up;
  c->kind = start_kind::restart;
  c->in_order = false;
  return advance();
}

actions supervisor::child_start_failed(std::string_view id, generation number, std::string detail,
                                       time_point now) {
  now_ = std::max(now_, now);
  child* c = current(id, number);
  if (c == nullptr || c->state == child_state::up) return {};
  start_failed(*c, detail);
  return advance();
}

actions supervisor::child_exited(std::string_view id, generation number, child_exit how, time_point now) {
  now_ = std::max(now_, now);
  child* c = current(id, number);
  if (c == nullptr) return {};
  if (c->state == child_state::up)
    ended_by_itself(*c, how);
  else
    start_failed(*c, "it ended before it was up: " + how.detail);
  return advance();
}

result<actions> supervisor::add_child(child_spec spec, time_point now) {
  now_ = std::max(now_, now);
  if (phase_ == phase::stopping || phase_ == phase::finished)
    return fail(error_code::interrupted,
                fmt::format("child '{}' is not added: its supervisor is stopping", spec.id));
  if (auto ok = validate(options_, {spec}); !ok) return tl::unexpected(ok.error());
  if (find(spec.id) != nullptr)
    return fail(error_code::bad_usage, fmt::format("a child called '{}' exists already", spec.id));
  child made;
  made.spec = std::move(spec);
  made.number = highest_removed_; // late events of a removed child of this name stay late
  if (phase_ == phase::running) {
    made.kind = start_kind::added;
    made.wanted = true;
    made.in_order = true;
    made.why = "it was added";
  }
  children_.push_back(std::move(made));
  return advance();
}

result<actions> supervisor::remove_child(std::string_view id, time_point now) {
  now_ = std::max(now_, now);
  child* c = find(id);
  if (c == nullptr || c->removing)
    return fail(error_code::bad_usage, fmt::format("there is no child called '{}'", id));
  c->removing = true;
  c->wanted = false;
  c->in_order = false;
  actions out;
  if (!c->live()) {
    forget_absent(*c);
  } else if (c->state != child_state::stopping && !c->stop_pending) {
    c->why = "it was removed";
    stop(*c, out); // its own order, not part of a reverse stop
  }
  for (auto& a : advance()) out.push_back(std::move(a));
  return out;
}

// --- queries

std::vector<std::string> supervisor::children() const {
  std::vector<std::string> ids;
  for (const auto& c : children_) ids.push_back(c.spec.id);
  return ids;
}

bool supervisor::is_up(std::string_view id) const {
  return std::any_of(children_.begin(), children_.end(), [&](const child& c) {
    return c.spec.id == id && c.state == child_state::up && !c.stop_pending;
  });
}

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

void supervisor::ended_by_itself(child& which, const child_exit& how) {
  which.state = child_state::absent;
  if (which.stop_pending) return forget_absent(which); // its turn to be stopped had not come; it is just gone
  const bool again = which.spec.restart == restart_type::permanent ||
                     (which.spec.restart == restart_type::transient && how.reason == exit_reason::abnormal);
  if (again) return restart(which, how);
  const auto id = which.spec.id;
  const bool significant = which.spec.significant;
  which.removing = which.spec.restart == restart_type::temporary;
  forget_absent(which);
  check_auto_shutdown(significant, id);
}

/// Also the end of a child that is being stopped, which is what was wanted of it.
void supervisor::start_failed(child& which, const std::string& detail) {
  const bool was_starting = which.state == child_state::starting && !which.stop_pending;
  which.state = child_state::absent;
  if (!was_starting) return forget_absent(which);
  const auto why = fmt::format("child '{}' could not be started: {}", which.spec.id, detail);
  switch (which.kind) {
  case start_kind::initial: return stop_everything(true, why);
  case start_kind::added: which.removing = true; return forget_absent(which);
  case start_kind::restart: return restart(which, {exit_reason::abnormal, "its restart failed: " + detail});
  }
}

void supervisor::restart(child& which, const child_exit& how) {
  if (how.counts && !count_restart()) {
    const auto limit =
        fmt::format("more than {} restarts within {} ms", options_.intensity, options_.period.count());
    return stop_everything(
        true, fmt::format("{}; the last: child '{}' ended: {}", limit, which.spec.id, how.detail));
  }
  delay_restart(which, how.settled);
  const auto index = static_cast<std::size_t>(&which - children_.data());
  const auto reason = fmt::format("restart {} of at most {} within {} ms: '{}' ended: {}", restarts_.size(),
                                  options_.intensity, options_.period.count(), which.spec.id, how.detail);
  switch (options_.restarts) {
  case strategy::one_for_one:
    which.wanted = true;
    which.why = reason;
    return;
  case strategy::one_for_all: return restart_group(0, which.start_at, reason);
  case strategy::rest_for_one: return restart_group(index, which.start_at, reason);
  }
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
  auto delay = options_.delay.first;
  for (std::size_t i = 0; i < which.delays && delay < options_.delay.max; ++i) delay *= 2;
  which.start_at = now_ + std::min(delay, options_.delay.max);
  ++which.delays;
}

/// Stops what lives of the children from `first` on, and has them all started in order after that.
/// Temporary children are stopped for good; transient ones that had ended are started again: both
/// as OTP does.
void supervisor::restart_group(std::size_t first, time_point start_at, const std::string& why) {
  for (std::size_t i = first; i < children_.size(); ++i) {
    auto& c = children_[i];
    if (c.live()) {
      c.group_stop = true;
      c.stop_pending = c.state != child_state::stopping;
      c.removing = c.removing || c.spec.restart == restart_type::temporary;
    }
    if (c.removing) continue;
    c.wanted = true;
    c.in_order = true;
    c.start_at = std::max(c.start_at, start_at);
    c.why = why;
  }
}

void supervisor::stop_everything(bool giving_up, const std::string& why) {
  phase_ = phase::stopping;
  giving_up_ = giving_up;
  end_reason_ = why;
  for (auto& c : children_) {
    c.wanted = false;
    c.in_order = false;
    c.stop_pending = c.state == child_state::starting || c.state == child_state::up;
    if (c.stop_pending) c.why = why;
  }
}

void supervisor::check_auto_shutdown(bool significant, const std::string& id) {
  if (!significant || options_.automatic_shutdown == auto_shutdown::never) return;
  const bool others = std::any_of(children_.begin(), children_.end(), [&](const child& c) {
    return c.spec.significant && c.spec.id != id && (c.live() || c.wanted);
  });
  if (options_.automatic_shutdown == auto_shutdown::all_significant && others) return;
  stop_everything(false, fmt::format("automatic shutdown: the significant child '{}' has ended", id));
}

/// To be called when a child has become absent: clears what concerned its stop. Invalidates
/// `which`.
void supervisor::forget_absent(child& which) {
  which.stop_pending = false;
  which.group_stop = false;
  if (!which.removing) return;
  highest_removed_ = std::max(highest_removed_, which.number);
  children_.erase(children_.begin() + (&which - children_.data()));
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
  for (auto c = children_.rbegin(); c != children_.rend(); ++c) {
    if (c->state == child_state::stopping) return;
    if (c->stop_pending) return stop(*c, out);
  }
}

void supervisor::issue_end(actions& out) {
  if (std::any_of(children_.begin(), children_.end(), [](const child& c) { return c.live(); })) return;
  phase_ = phase::finished;
  if (giving_up_)
    out.push_back(escalate{end_reason_});
  else
    out.push_back(supervisor_stopped{end_reason_});
}

void supervisor::issue_starts(actions& out) {
  bool wait_for_earlier =
      std::any_of(children_.begin(), children_.end(), [](const child& c) { return c.group_stop; });
  bool beginning = false;
  for (auto& c : children_) {
    const bool may = !c.in_order || !wait_for_earlier;
    if (c.wanted && !c.live() && may && c.start_at <= now_) start(c, out);
    wait_for_earlier = wait_for_earlier || c.in_order;
    beginning =
        beginning || (c.kind == start_kind::initial && (c.wanted || c.state == child_state::starting));
  }
  if (!beginning && !announced_) {
    announced_ = true;
    out.push_back(supervisor_started{});
  }
}

void supervisor::issue_kills(actions& out) {
  for (auto& c : children_) {
    if (c.state != child_state::stopping || c.killed || now_ < c.kill_at) continue;
    c.killed = true;
    out.push_back(stop_child{c.spec.id, c.number, stop_child::kind::kill, time_point::max(),
                             fmt::format("it did not stop within {} ms", c.spec.shutdown.patience.count())});
  }
}

void supervisor::stop(child& which, actions& out) {
  using policy = shutdown_policy::kind;
  const auto& how = which.spec.shutdown;
  which.state = child_state::stopping;
  which.stop_pending = false;
  which.killed = how.how == policy::brutal_kill;
  which.kill_at = how.how == policy::timeout ? now_ + how.patience : time_point::max();
  out.push_back(stop_child{which.spec.id, which.number,
                           which.killed ? stop_child::kind::kill : stop_child::kind::terminate, which.kill_at,
                           which.why});
}

void supervisor::start(child& which, actions& out) {
  which.state = child_state::starting;
  which.wanted = false;
  ++which.number;
  out.push_back(start_child{which.spec.id, which.number, which.why});
}

} // namespace dlrun::supervision
