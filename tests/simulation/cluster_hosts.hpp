/// The hosts of a simulated job, and what passes between them.
#pragma once

#include "tests/simulation/hosts_plan.hpp"

#include <map>
#include <optional>
#include <set>
#include <vector>

namespace dlrun::simulation {

/// Which hosts are up, stopped, cut off: in one direction or both. Number 0 is the root's, which is
/// always up.
class cluster_hosts {
public:
  /// As if it were a host: where the journal is, unless that is in the run folder.
  static constexpr std::uint32_t journal = 1000;
  /// Of a host between which and the root nothing passes both ways, or that does not run.
  struct outage {
    std::optional<protocol::time_point> since{};
    std::optional<protocol::time_point> ended{}; ///< the last one
  };

  explicit cluster_hosts(const hosts_plan& plan)
      : count_(plan.count)
      , clocks_(plan.clocks)
      , hosts_(plan.count) {}

  std::uint32_t count() const { return count_; }
  bool passes(std::uint32_t from, std::uint32_t to) const { return !cuts_.contains({from, to}); }
  /// What was sent then: a cut takes what is on its way.
  bool has_passed_since(protocol::time_point sent, std::uint32_t from, std::uint32_t to) const {
    const auto at = mended_.find({from, to});
    return passes(from, to) && (at == mended_.end() || at->second <= sent);
  }
  bool passes_both_ways(std::uint32_t one, std::uint32_t other) const {
    return passes(one, other) && passes(other, one);
  }
  bool has_journal(std::uint32_t host) const { return passes_both_ways(host, journal); }
  bool is_up(std::uint32_t host) const { return hosts_.at(host).down == 0; }
  bool is_stopped(std::uint32_t host) const { return hosts_.at(host).stopped > 0; }
  bool is_gone(std::uint32_t host) const { return hosts_.at(host).gone; }
  const outage& outage_of(std::uint32_t host) const { return hosts_.at(host).out; }
  /// Since when it has answered nothing that was sent then or later: the longest that one of the
  /// reasons why it cannot has lasted. What a host that is stopped got before it may answer later.
  std::optional<protocol::time_point> unable_since(std::uint32_t host) const;
  /// Since when packets do not pass both ways between the root and this host.
  std::optional<protocol::time_point> cut_since(std::uint32_t host) const { return hosts_.at(host).cut; }

  /// What the clock of that host shows then.
  protocol::time_point shows(std::uint32_t host, protocol::time_point at) const;
  /// Of a start of an agent of a host.
  std::uint64_t next_boot() { return ++boots_; }

  /// Each counts until it is taken back.
  void cut(std::uint32_t from, std::uint32_t to, protocol::time_point now);
  void mend(std::uint32_t from, std::uint32_t to, protocol::time_point now);
  void take_down(std::uint32_t host, protocol::time_point now);
  void bring_up(std::uint32_t host, protocol::time_point now);
  void stop(std::uint32_t host, protocol::time_point now);
  void go_on(std::uint32_t host, protocol::time_point now);
  /// It is down and never comes back.
  void lose_for_ever(std::uint32_t host, protocol::time_point now);
  void mend_all(protocol::time_point now);

private:
  struct one_host {
    int down = 0;
    int stopped = 0;
    bool gone = false;
    outage out{};
    std::optional<protocol::time_point> cut{};
    std::optional<protocol::time_point> deaf_since{};
    std::optional<protocol::time_point> mute_since{};
    std::optional<protocol::time_point> down_since{};
    std::optional<protocol::time_point> stopped_since{};
  };
  void note(protocol::time_point now);

  std::uint32_t count_;
  std::vector<host_clock> clocks_; ///< none of a job on one host
  std::uint64_t boots_ = 0;
  std::vector<one_host> hosts_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> cuts_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, protocol::time_point> mended_; ///< last
};

} // namespace dlrun::simulation
