/// host_rooms: the hosts of a job that are there, and what each has for roles.
#pragma once

#include "actors/protocol/host_takes.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace dlrun::agent {

/// Why a host takes no roles.
enum class closure : std::uint8_t {
  drained, ///< it is, or is being drained
  avoided  ///< starts end there before they are up
};

/// How good a host is for PS shards and copies, the best first.
enum class standing : std::uint8_t {
  stays,
  preemptible, ///< it may go at short notice
  for_workers, ///< it takes others only while no other host is open for them
  spared       ///< it has no cores for the job
};

/// What a host has for roles.
struct host_room {
  std::uint32_t cpus = 1;   ///< at least 1; of the root's host 0 too
  std::uint32_t gpus = 0;   ///< that workers use there
  bool preemptible = false; ///< it may go at short notice
  protocol::host_takes takes = protocol::host_takes::any;
  std::string machine{}; ///< on which it is, with others perhaps; "": one of its own

  standing is() const;
};

/// Pure: hosts by name. What is said of one that is not there is about the one that was.
class host_rooms {
public:
  /// It is there (again). Roles may be placed on it from now on.
  void add_host(const std::string& name, const host_room& room);
  /// It is not any more, since it `is lost` or for what reason else. Roles that were there stay its
  /// roles until they are placed anew.
  void remove_host(const std::string& name, const std::string& why = "is lost");
  bool has_host(const std::string& name) const { return rooms_.contains(name); }
  /// Roles that start are to be elsewhere, for one reason or more. It may be there or not.
  void set_closed(const std::string& name, bool is_closed, closure why = closure::drained);
  bool is_closed(const std::string& name) const { return closed_.contains(name); }
  /// There, and not closed.
  bool is_open(const std::string& name) const { return has_host(name) && !is_closed(name); }
  standing standing_of(const std::string& name) const;
  /// Those that are there.
  const std::map<std::string, host_room>& rooms() const { return rooms_; }
  /// Why a role of that host is to be elsewhere, or is: it is gone, closed, or of a worse kind.
  std::string what_is_wrong_with(const std::string& host) const;

private:
  std::map<std::string, host_room> rooms_;
  std::map<std::string, std::string> gone_;         ///< that were there, with the reason
  std::map<std::string, std::set<closure>> closed_; ///< whether they are there or not
};

} // namespace dlrun::agent
