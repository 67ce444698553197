#include "kubernetes/host_pods.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <utility>

namespace dlrun::kubernetes {
host_pods::host_pods(pod_requests& requests, const api_client& client, host_pods_options options)
    : requests_{requests}
    , client_{client}
    , options_{std::move(options)}
    , plan_{options_.rules}
    , admission_{options_.rules.bug}
    , refusals_{options_.refusals}
    , starts_{options_.starts}
    , silences_{options_.silences} {}

void host_pods::on_news(pod_news news) {
  const std::scoped_lock lock{mutex_};
  admission_.on_news(news);
  news_.push_back(std::move(news));
}

void host_pods::on_watch_refused(const api_refusal& why) {
  {
    const std::scoped_lock lock{mutex_};
    admission_.on_silence();
  }
  on_refused(pod_question::told, why);
}

std::string host_pods::why_not_in(const arriving_pod& who) const {
  const std::scoped_lock lock{mutex_};
  return admission_.why_not(who);
}

void host_pods::hosts_are(host_sights hosts) {
  const std::scoped_lock lock{mutex_};
  hosts_ = std::move(hosts);
  is_paused_ = false;
}

void host_pods::hosts_come(host_sights hosts) {
  const std::scoped_lock lock{mutex_};
  coming_ = std::move(hosts);
}

void host_pods::pause() {
  const std::scoped_lock lock{mutex_};
  is_paused_ = true;
}

void host_pods::on_watch_works() { on_done(pod_question::told); }

std::optional<pods_end> host_pods::end() const {
  const std::scoped_lock lock{mutex_};
  return end_;
}

bool host_pods::is_paused() const {
  const std::scoped_lock lock{mutex_};
  return is_paused_;
}

/// Once it is to end that stays so.
bool host_pods::must_end() {
  const std::scoped_lock lock{mutex_};
  if (!end_) end_ = plan_.end();
  if (!end_) end_ = refusals_.end(hosts_.has_value());
  if (!end_) end_ = starts_.end(hosts_.has_value());
  return end_.has_value();
}

std::vector<std::string> host_pods::held_up_by() const {
  const std::scoped_lock lock{mutex_};
  auto all = refusals_.told();
  if (!refused_.empty()) all.push_back(refused_);
  std::ranges::copy(starts_.told(), std::back_inserter(all));
  std::ranges::copy(silences_.told(), std::back_inserter(all));
  return all;
}

void host_pods::pass() {
  if (must_end() || is_paused()) return;
  std::vector<pod_news> news;
  std::optional<host_sights> hosts, coming;
  {
    const std::scoped_lock lock{mutex_};
    news.swap(news_);
    hosts = hosts_;
    if (!hosts) coming = coming_;
  }
  for (const auto& one : news) {
    plan_.on_news(one);
    if (std::holds_alternative<pod_listing>(one)) budget_.forget();
  }
  const auto now = client_.time().now();
  look_at_starts(now);
  if (const auto& known = hosts ? hosts : coming) look_at_silences(*known, now);
  look_at_nodes();
  if ((!looked_ || now - *looked_ >= options_.look_period) && !look()) return;
  say_when_whole();
  guard(hosts, now);
  const auto actions = plan_.next(wanted_, hosts, now);
  if (plan_.end()) return; // from the next pass on
  const bool makes =
      std::ranges::any_of(actions, [](const auto& one) { return std::holds_alternative<create_pod>(one); });
  if (makes && looked_ < now && !look()) return; // what nobody wants any more is not made
  carry_out(actions);
}

void host_pods::look_at_starts(time_point now) {
  const auto news = [&] {
    const std::scoped_lock lock{mutex_};
    return starts_.look(plan_.pods(), now);
  }();
  for (const auto& one : news) options_.warn(one);
}

void host_pods::look_at_silences(const host_sights& hosts, time_point now) {
  const auto news = [&] {
    const std::scoped_lock lock{mutex_};
    return silences_.look(plan_.pods(), hosts, now);
  }();
  if (silences_.is_in_doubt()) options_.list_anew();
  for (const auto& one : news) options_.warn(one);
}

void host_pods::look_at_nodes() {
  auto told = plan_.refused().told();
  {
    const std::scoped_lock lock{mutex_};
    if (told == refused_) return;
    refused_ = told;
  }
  options_.warn(told);
}

/// Before pods are made and deleted: none may be evicted beside.
void host_pods::guard(const std::optional<host_sights>& hosts, time_point now) {
  if (options_.budget.empty() || wanted_.owner.empty()) return;
  const auto stay = budget_.next(plan_.pods(), wanted_, hosts, now);
  if (!stay) return;
  if (const auto done = requests_.guard(options_.budget, *stay, give_up()); !done) {
    budget_.on_refused(client_.time().now());
    if (!may_pass(done.error().kind)) on_refused(pod_question::guarded, done.error());
    return; // that nobody answers is told of what was asked for before
  }
  budget_.on_told(*stay);
  on_done(pod_question::guarded);
}

/// @returns whether it is known what is wanted
bool host_pods::look() {
  auto wanted = requests_.wanted(give_up());
  looked_ = client_.time().now();
  if (!wanted) {
    on_refused(pod_question::wanted, wanted.error());
    return false;
  }
  wanted_ = std::move(*wanted);
  on_done(pod_question::wanted);
  say_who_leads();
  return true;
}

void host_pods::say_who_leads() {
  if (!options_.has_standby || is_known_to_lead_) return;
  const auto done = requests_.lead(give_up());
  is_known_to_lead_ = done.has_value();
  done ? on_done(pod_question::led) : on_refused(pod_question::led, done.error());
}

/// Of what was told of pods, all is known then.
void host_pods::say_when_whole() {
  const bool is_whole = plan_.is_whole(wanted_);
  if (is_whole && !is_whole_) options_.tell(fmt::format("all {} pods of hosts run", wanted_.count()));
  is_whole_ = is_whole;
}

/// What the server does not answer it does not answer for the others either.
void host_pods::carry_out(const std::vector<pod_action>& actions) {
  for (const auto& action : actions) {
    if (is_paused()) return; // since the last request, which may have taken its time
    const auto refused = std::visit([this](const auto& what) { return carry_out(what); }, action);
    if (refused && (may_pass(refused->kind) || refused->kind == refusal_kind::namespace_ends)) return;
  }
}

std::optional<api_refusal> host_pods::carry_out(const create_pod& what) {
  if (!wanted_.contains(what.slot) || wanted_.owner.empty()) return std::nullopt;
  const auto made = requests_.create(what, wanted_.owner, give_up());
  const auto now = client_.time().now();
  if (!made) {
    plan_.on_not_created(what, made.error().kind, now);
    on_refused(pod_question::made, made.error());
    return made.error();
  }
  on_done(pod_question::made);
  if (!*made) {
    plan_.on_name_taken(what);
    return std::nullopt;
  }
  plan_.on_created(what, **made, now);
  note_created(**made, now);
  options_.tell(fmt::format("made pod {}: {}", (*made)->name, what.why));
  return std::nullopt;
}

void host_pods::note_created(const pod_record& made, time_point now) {
  const std::scoped_lock lock{mutex_};
  admission_.on_created(made, now);
}

std::optional<api_refusal> host_pods::carry_out(const delete_pod& what) {
  const auto done = requests_.remove(what, give_up());
  if (!done) {
    on_refused(pod_question::removed, done.error());
    return done.error();
  }
  on_done(pod_question::removed);
  if (*done) {
    options_.tell(fmt::format("deleted pod {}: {}", what.name, what.why));
    return std::nullopt;
  }
  plan_.on_news(pod_gone{what.uid});
  options_.list_anew(); // what else the watch has not told
  return std::nullopt;
}

void host_pods::on_refused(pod_question what, const api_refusal& why) {
  const auto now = client_.time().now();
  const auto is_news = [&] {
    const std::scoped_lock lock{mutex_};
    return refusals_.on_refused(what, why, now);
  }();
  if (is_news) options_.warn(why.message);
}

void host_pods::on_done(pod_question what) {
  const std::scoped_lock lock{mutex_};
  refusals_.on_done(what);
}

time_point host_pods::give_up() const { return client_.time().now() + options_.request_max; }

} // namespace dlrun::kubernetes
