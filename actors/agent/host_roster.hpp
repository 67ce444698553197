/// Which hosts are there.
#pragma once

#include "actors/agent/beats/sighting.hpp"
#include "actors/agent/host_rules.hpp"
#include "actors/agent/host_signs.hpp"
#include "actors/protocol/host_messages.hpp"
#include "actors/protocol/time.hpp"

#include <cstdint>
#include <dlrun/error.hpp>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace dlrun::agent {

enum class host_state : std::uint8_t {
  away,     ///< nobody waits for it, or its agent is tried again later
  starting, ///< from here
  joining,  ///< by itself
  there,
  leaving
};
std::string_view to_string(host_state state);

/// Of all hosts, in the order of their names. In one piece of memory: roots ask for it again and
/// again, and may have a thousand.
class host_states {
public:
  void reserve(std::size_t count) { all_.reserve(count); }
  /// Behind those that are there.
  void add(const std::string& host, host_state state) { all_.emplace_back(host, state); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  std::size_t size() const { return all_.size(); }
  bool contains(const std::string& host) const;
  /// Of one that it contains.
  host_state at(const std::string& host) const;

private:
  using entries = std::vector<std::pair<std::string, host_state>>;
  entries::const_iterator find(const std::string& host) const;

  entries all_;
};

/// Run the command that starts the agent of this host; answer with on_command_ended().
struct run_command {
  std::string host;
  std::uint64_t attempt = 0;
};
/// Kill that command.
struct kill_command {
  std::string host;
  std::uint64_t attempt = 0;
};
/// Ask that command to end: an agent that has not begun removes what it made.
struct end_command {
  std::string host;
  std::uint64_t attempt = 0;
};
/// This start of the host's agent counts no more, nor does what it runs.
struct host_lost {
  std::string host;
  std::uint64_t boot = 0;
  std::string why;
  bool left = false; ///< it had said that it goes, and its workers had gone before; or it was drained
};
/// Its agent did not come up.
struct host_not_started {
  std::string host;
  std::string why;
  bool enrolled = false; ///< it was to come by itself, and is waited for no more
};
/// Do its beats pass? Told when they do not, and when they do after all.
struct host_beats {
  std::string host;
  bool pass = false;
};
using roster_event =
    std::variant<run_command, kill_command, end_command, host_lost, host_not_started, host_beats>;
using roster_events = std::vector<roster_event>;

/// Pure: of each host but the root's, whether its agent is there, by its boot: as long as its
/// host_signs say so (R29). A boot that was given up is let in no more: what it runs was started
/// again elsewhere.
class host_roster {
public:
  host_roster(host_rules rules, const std::vector<std::string>& hosts);

  roster_events start(protocol::time_point now);
  /// @returns why it is refused, "" when it is let in. A boot that replaces one that is there gives
  /// that up.
  std::string on_joined(const std::string& host, std::uint64_t boot, protocol::time_point now,
                        roster_events& out);
  /// A host that is not in the list has enrolled: its agent will come by itself, once. It is
  /// waited for as long as what it came by lasts, which is its command here: answered by
  /// on_command_ended() with the attempt that is returned. @returns bad_usage with the reason, or
  /// in_use where it may try again later.
  result<std::uint64_t> admit(const std::string& host, protocol::time_point now);
  /// A host that an earlier root of the job let in. Its agent may come back as it is; before
  /// start().
  void await_return(const std::string& host);
  /// The agent that is there says that it is to leave. @returns whether that is new.
  bool on_leaving(const std::string& host);
  /// It has nothing to do any more, and goes.
  roster_events let_go(const std::string& host, protocol::time_point now);
  /// It is drained, or not any more; also before start(), and of a host that is not there yet. As
  /// long as it is, its end is no loss, and nobody starts its agent or waits for it.
  roster_events set_drained(const std::string& host, bool is_drained, protocol::time_point now);
  void on_heard(const std::string& host, std::uint64_t boot, protocol::time_point now);
  /// What its beats tell of it.
  roster_events on_sighting(const std::string& host, std::uint64_t boot, const sighting& now_seen,
                            protocol::time_point now);
  void on_link_lost(const std::string& host, std::uint64_t boot, protocol::time_point now);
  roster_events on_command_ended(const std::string& host, std::uint64_t attempt, const std::string& why,
                                 protocol::time_point now);
  roster_events tick(protocol::time_point now);
  /// Nobody is started any more, and who is there is told to go.
  roster_events close();

  /// Of the agent that is there; nothing when none is.
  std::optional<std::uint64_t> boot_of(const std::string& host) const;
  /// Its agent is being started, or will be; or it had joined, and is lost: it may join again.
  bool is_expected(const std::string& host) const;
  host_state state_of(const std::string& host) const;
  /// Of those that are not there: whose agent is being started for the first time, has enrolled, or
  /// had joined an earlier root just now. A host whose agent could not be started is not among
  /// them, though it is tried again and again.
  std::vector<std::string> on_their_way() const;
  host_states states() const;
  /// Of those that are to be started from here, or had joined an earlier root just now.
  std::vector<std::string> missing() const;
  /// How many are there, and how many of those that enrolled are on their way.
  std::size_t there() const;
  std::size_t enrolling() const;
  /// How many are not there because they are drained.
  std::size_t drained_away() const;
  /// How many are there that have not gone since close(): not seen to lose their link since then. A
  /// link that was lost before may come back, and only then does the host hear that it is to go.
  std::size_t staying() const;

private:
  struct entry {
    std::optional<std::uint64_t> boot; ///< of the agent that is there
    host_signs signs{};                ///< of that
    std::uint64_t attempt = 0;
    bool command_runs = false;
    protocol::time_point began{}; ///< the attempt
    std::optional<protocol::time_point> retry_at{};
    protocol::duration retry_after{};
    std::set<std::uint64_t> given_up{};
    bool leaves = false;      ///< the agent that is there
    bool is_enrolled = false; ///< nobody starts its agent here
    bool is_lost = false;     ///< of one that enrolled: it was there, and did not leave
    enum class comeback : std::uint8_t { none, awaited, late };
    comeback to_earlier{}; ///< its agent enrolled with an earlier root, and has not come to this one
  };

  void begin(const std::string& host, entry& one, protocol::time_point now, roster_events& out);
  void give_up(const std::string& host, entry& one, std::string why, protocol::time_point now,
               roster_events& out, bool left = false);
  void fail_start(const std::string& host, entry& one, std::string why, protocol::time_point now,
                  roster_events& out);
  void retry_later(const std::string& host, entry& one, protocol::time_point now, roster_events& out);
  void check(const std::string& host, entry& one, protocol::time_point now, roster_events& out);
  static host_state state_of(const entry& one);

  host_rules rules_;
  std::map<std::string, entry> hosts_;
  std::set<std::string> drained_; ///< also of those that are not among `hosts_`
  std::optional<protocol::time_point> ticked_;
  bool closed_ = false;
};

} // namespace dlrun::agent
