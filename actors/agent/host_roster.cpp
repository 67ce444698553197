#include "actors/agent/host_roster.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <fmt/format.h>
#include <utility>

namespace dlrun::agent {

using protocol::time_point;

std::string_view to_string(host_state state) {
  switch (state) {
  case host_state::away: return "away";
  case host_state::starting: return "starting";
  case host_state::joining: return "joining";
  case host_state::there: return "there";
  case host_state::leaving: return "leaving";
  }
  return "?";
}

host_states::entries::const_iterator host_states::find(const std::string& host) const {
  const auto found = std::ranges::lower_bound(all_, host, {}, &entries::value_type::first);
  return found != all_.end() && found->first == host ? found : all_.end();
}

bool host_states::contains(const std::string& host) const { return find(host) != all_.end(); }

host_state host_states::at(const std::string& host) const {
  const auto found = find(host);
  DLRUN_CHECK(found != all_.end(), "host {} has no state", host);
  return found->second;
}

host_roster::host_roster(host_rules rules, const std::vector<std::string>& hosts)
    : rules_{rules} {
  for (const auto& host : hosts) hosts_[host].retry_after = rules_.retry_first;
}

roster_events host_roster::start(time_point now) {
  roster_events out;
  for (auto& [host, one] : hosts_) {
    one.began = now;
    if (one.is_enrolled || drained_.contains(host)) continue;
    if (rules_.reattach_patience == protocol::duration{0})
      begin(host, one, now, out);
    else
      one.retry_at = now + rules_.reattach_patience;
  }
  return out;
}

void host_roster::begin(const std::string& host, entry& one, time_point now, roster_events& out) {
  one.retry_at.reset();
  one.began = now;
  one.command_runs = true;
  out.push_back(run_command{host, ++one.attempt});
}

void host_roster::retry_later(const std::string& host, entry& one, time_point now, roster_events& out) {
  if (std::exchange(one.command_runs, false)) out.push_back(kill_command{host, one.attempt});
  if (closed_ || one.is_enrolled || drained_.contains(host)) return;
  one.retry_at = now + one.retry_after;
  one.retry_after = std::min(2 * one.retry_after, rules_.retry_max);
}

void host_roster::give_up(const std::string& host, entry& one, std::string why, time_point now,
                          roster_events& out, bool left) {
  const auto boot = *one.boot;
  one.boot.reset();
  one.signs = {};
  one.leaves = false;
  one.is_lost = one.is_enrolled && !left;
  one.given_up.insert(boot);
  out.push_back(host_lost{host, boot, std::move(why), left});
  retry_later(host, one, now, out);
}

void host_roster::fail_start(const std::string& host, entry& one, std::string why, time_point now,
                             roster_events& out) {
  out.push_back(host_not_started{host, std::move(why), one.is_enrolled});
  retry_later(host, one, now, out);
}

// ---- what is heard

std::string host_roster::on_joined(const std::string& host, std::uint64_t boot, time_point now,
                                   roster_events& out) {
  const auto found = hosts_.find(host);
  if (found == hosts_.end()) return fmt::format("host {} is not one of the job's", host);
  auto& one = found->second;
  if (closed_ && one.boot != boot) return "the job is over"; // who is there is dismissed, not refused
  if (one.given_up.contains(boot))
    return fmt::format("host {} was given up, and its roles run elsewhere", host);
  if (one.is_enrolled && one.boot != boot && !one.command_runs)
    return fmt::format("host {} is not waited for any more: it has to join again", host);
  if (one.boot && *one.boot != boot) {
    give_up(host, one, "its agent was started again", now, out);
    // The command that runs is the new agent's.
    std::erase_if(out, [](const auto& event) { return std::holds_alternative<kill_command>(event); });
    one.command_runs = true;
  }
  if (one.boot != boot) {
    one.boot = boot;
    one.signs = host_signs{now};
  }
  one.signs.on_link(now);
  one.to_earlier = entry::comeback::none;
  one.is_lost = false;
  one.retry_at.reset();
  one.retry_after = rules_.retry_first;
  if (one.is_enrolled && std::exchange(one.command_runs, false))
    out.push_back(kill_command{host, one.attempt}); // it has come
  return "";
}

result<std::uint64_t> host_roster::admit(const std::string& host, time_point now) {
  const auto refuse = [&](error_code code, std::string_view why) {
    return fail(code, fmt::format("host {} {}", host, why));
  };
  if (closed_) return fail(error_code::in_use, "the job is over");
  auto found = hosts_.find(host);
  if (found != hosts_.end() && !found->second.is_enrolled)
    return refuse(error_code::bad_usage,
                  "is one of the list of hosts, whose agents the root starts: join under another name");
  if (found != hosts_.end() && found->second.boot)
    return refuse(error_code::in_use,
                  "is there: a host joins once, so join under another name, or when the loss of that one is "
                  "noticed, after a few seconds");
  const bool may_come = found != hosts_.end() && found->second.command_runs;
  if (may_come && found->second.to_earlier == entry::comeback::none)
    return refuse(error_code::in_use, "is joining already: a host joins once, so join under another name");
  if (found == hosts_.end()) found = hosts_.emplace(host, entry{}).first;
  auto& one = found->second;
  one.is_enrolled = true;
  one.to_earlier = entry::comeback::none;
  one.command_runs = true;
  one.began = now;
  return ++one.attempt;
}

void host_roster::await_return(const std::string& host) {
  auto& one = hosts_[host];
  one.is_enrolled = true;
  one.command_runs = true; // what its agent came by is the earlier root's
  one.to_earlier = entry::comeback::awaited;
}

bool host_roster::on_leaving(const std::string& host) {
  const auto found = hosts_.find(host);
  return found != hosts_.end() && found->second.boot && !std::exchange(found->second.leaves, true);
}

roster_events host_roster::let_go(const std::string& host, time_point now) {
  roster_events out;
  const auto found = hosts_.find(host);
  if (closed_ || found == hosts_.end() || !found->second.boot) return out;
  found->second.command_runs = false; // it ends with its agent
  give_up(host, found->second, "it was asked to leave", now, out, true);
  return out;
}

roster_events host_roster::set_drained(const std::string& host, bool is_drained, time_point now) {
  roster_events out;
  const bool is_news = is_drained ? drained_.insert(host).second : drained_.erase(host) != 0;
  const auto found = hosts_.find(host);
  if (!is_news || found == hosts_.end()) return out;
  auto& one = found->second;
  if (is_drained)
    one.retry_at.reset();
  else if (!closed_ && !one.is_enrolled && !one.boot && !one.command_runs && !one.retry_at)
    begin(host, one, now, out);
  return out;
}

void host_roster::on_heard(const std::string& host, std::uint64_t boot, time_point now) {
  const auto found = hosts_.find(host);
  if (found != hosts_.end() && found->second.boot == boot) found->second.signs.on_heard(now);
}

roster_events host_roster::on_sighting(const std::string& host, std::uint64_t boot, const sighting& now_seen,
                                       time_point now) {
  roster_events out;
  const auto found = hosts_.find(host);
  if (found == hosts_.end() || found->second.boot != boot) return out;
  auto& one = found->second;
  one.signs.see(now_seen);
  if (closed_) return out; // it goes as it should
  if (one.signs.take_passing()) out.push_back(host_beats{host, true});
  check(host, one, now, out);
  return out;
}

void host_roster::on_link_lost(const std::string& host, std::uint64_t boot, time_point now) {
  const auto found = hosts_.find(host);
  if (found != hosts_.end() && found->second.boot == boot) found->second.signs.on_link_lost(now);
}

roster_events host_roster::on_command_ended(const std::string& host, std::uint64_t attempt,
                                            const std::string& why, time_point now) {
  roster_events out;
  const auto found = hosts_.find(host);
  if (closed_ || found == hosts_.end() || found->second.attempt != attempt || !found->second.command_runs)
    return out;
  auto& one = found->second;
  one.command_runs = false;
  if (!one.boot)
    fail_start(host, one, why, now, out);
  else if (one.signs.is_link_lost())
    give_up(host, one, "its agent " + why, now, out, drained_.contains(host));
  // Else the agent may well live on without it, as behind ssh: its link tells.
  return out;
}

roster_events host_roster::tick(time_point now) {
  roster_events out;
  if (closed_) return out; // hosts leave as they should
  const auto before = std::exchange(ticked_, now).value_or(now);
  const auto paused = now - before >= rules_.own_pause_min ? now - before : protocol::duration{0};
  for (auto& [host, one] : hosts_) {
    one.signs.excuse(paused);
    check(host, one, now, out);
  }
  return out;
}

void host_roster::check(const std::string& host, entry& one, time_point now, roster_events& out) {
  if (one.boot) {
    if (one.signs.take_blocked(rules_, now)) out.push_back(host_beats{host, false});
    const bool is_drained = drained_.contains(host);
    const bool is_ours = one.attempt > 0; // of another root's command nobody hears
    const bool has_ended = is_ours && !one.command_runs && !one.is_enrolled;
    if (auto why = one.signs.why_lost(rules_, has_ended, now); !why.empty())
      give_up(host, one, is_drained ? "it is drained, and " + why : why, now, out, is_drained);
    return;
  }
  if (one.to_earlier == entry::comeback::awaited && now - one.began >= rules_.reattach_patience) {
    one.to_earlier = entry::comeback::late;
    out.push_back(host_not_started{host, "has not come back to this root, which goes on without it", true});
  }
  if (one.retry_at) {
    if (now >= *one.retry_at) begin(host, one, now, out);
  } else if (one.command_runs && now - one.began >= rules_.start_patience) {
    fail_start(host, one,
               fmt::format("gave no word within {:.0f} s", protocol::to_seconds(rules_.start_patience)), now,
               out);
  }
}

roster_events host_roster::close() {
  closed_ = true;
  roster_events out;
  for (auto& [host, one] : hosts_) {
    one.retry_at.reset();
    one.signs.forget_loss();
    if (!one.boot && std::exchange(one.command_runs, false)) out.push_back(end_command{host, one.attempt});
  }
  return out;
}

// ---- views

std::optional<std::uint64_t> host_roster::boot_of(const std::string& host) const {
  const auto found = hosts_.find(host);
  return found == hosts_.end() ? std::nullopt : found->second.boot;
}

bool host_roster::is_expected(const std::string& host) const {
  const auto found = hosts_.find(host);
  return found != hosts_.end() && !found->second.boot &&
         (found->second.command_runs || found->second.retry_at || found->second.is_lost);
}

std::vector<std::string> host_roster::missing() const {
  std::vector<std::string> all;
  for (const auto& [host, one] : hosts_)
    if (!one.boot && !drained_.contains(host) &&
        (!one.is_enrolled || one.to_earlier == entry::comeback::awaited))
      all.push_back(host);
  return all;
}

std::vector<std::string> host_roster::on_their_way() const {
  std::vector<std::string> all;
  for (const auto& [host, one] : hosts_) {
    const bool is_first = one.retry_at && one.attempt == 0;
    const bool is_started = one.command_runs && (one.is_enrolled || one.attempt <= 1);
    if (!one.boot && one.to_earlier != entry::comeback::late && (is_started || is_first)) all.push_back(host);
  }
  return all;
}

host_state host_roster::state_of(const std::string& host) const {
  const auto found = hosts_.find(host);
  return found == hosts_.end() ? host_state::away : state_of(found->second);
}

host_state host_roster::state_of(const entry& one) {
  if (one.boot) return one.leaves ? host_state::leaving : host_state::there;
  if (!one.command_runs) return host_state::away;
  return one.is_enrolled ? host_state::joining : host_state::starting;
}

host_states host_roster::states() const {
  host_states all;
  all.reserve(hosts_.size());
  for (const auto& [host, one] : hosts_) all.add(host, state_of(one));
  return all;
}

std::size_t host_roster::there() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(hosts_, [](const auto& one) { return one.second.boot.has_value(); }));
}

std::size_t host_roster::drained_away() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(drained_, [&](const auto& host) { return !boot_of(host); }));
}

std::size_t host_roster::staying() const {
  return static_cast<std::size_t>(std::ranges::count_if(hosts_, [](const auto& entry) {
    const auto& one = entry.second;
    return one.boot && !one.signs.is_link_lost() && !one.signs.is_silent();
  }));
}

std::size_t host_roster::enrolling() const {
  return static_cast<std::size_t>(std::ranges::count_if(hosts_, [](const auto& one) {
    return one.second.is_enrolled && !one.second.boot && one.second.command_runs;
  }));
}

} // namespace dlrun::agent
