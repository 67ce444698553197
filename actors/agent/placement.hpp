/// Which host each role runs on, and why.
#pragma once

#include "actors/agent/host_rooms.hpp"
#include "actors/agent/known_stores.hpp"
#include "actors/protocol/host_messages.hpp"
#include "actors/protocol/planted_bug.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace dlrun::agent {

/// Where a role is, or is to be.
struct place {
  std::string host;
  std::string reason; ///< for people
};

/// Pure: the coordinator stays with the root, or, where its journal is elsewhere, goes where the
/// fewest PS shards are, of equals not to the root's host; PS shards keep off its host where others
/// have as few. When it has ended there it goes elsewhere, since its journal may be out of reach of
/// that host alone. A PS shard goes to the host that holds the best of its known_stores (R30); of
/// equals to one that is open, then not to the root's host, which has copies of all when a job was
/// complete. One that has none goes to the host that has the fewest, for its disk and its link are
/// what it needs; of equals to the root's, whose loss ends the job anyway. Only if no other host is
/// open for it does a PS shard, keeper or worker go to the root's when that is spared, having no
/// cores for the job; a worker that starts again leaves it then. PS shards and keepers go to a host
/// for workers only if no other but the root's is open for them; they and a coordinator that moves
/// go to a preemptible one only if no other of its kind is. A keeper goes to another host than its
/// PS shard and the other copies, and, if it was given up there, than before: one that has a store
/// of that PS shard, else the one with the fewest stores. A worker goes where the fewest threads of
/// roles share a core; one that needs a GPU where the fewest workers share one. It goes nowhere
/// else than where there is one, and to no host that takes PS shards alone: it may have to wait for
/// a host. A host that is closed takes only what has its store there and has it nowhere else (R37):
/// a PS shard without a whole copy on a host that is open, a keeper for which there is no such
/// host, unless copies may wait for one. Another role that starts again goes where it was, if that
/// host is there: a PS shard's store is there, unless it is a PS shard that is crowded and has a
/// whole copy elsewhere, or a keeper that moves as a better host is open (R44). Of hosts that are
/// as good the first by name is taken, so that the same hosts get the same roles, whichever was
/// there first.
class placement : public host_rooms {
public:
  /// @param threads_per_worker threads that a worker keeps busy; a PS shard keeps one busy.
  /// @param coordinator_moves its journal can be had from every host.
  /// @param copies_may_wait as of hosted_roles_config
  /// @param workers_need_gpus they compute on GPUs alone.
  /// The root's host is spared if it is added with 0 cores.
  placement(std::string root, std::uint32_t threads_per_worker, bool coordinator_moves = false,
            bool copies_may_wait = false, bool workers_need_gpus = false,
            protocol::planted_bug bug = protocol::planted_bug::none);

  /// That keeper may be there: neither its PS shard nor another copy of the store is.
  bool is_free_for(const std::string& host, const protocol::role_name& keeper) const;
  /// A host that is open and free for that keeper is there.
  bool has_open_host_for_copy(const protocol::role_name& keeper) const;
  bool workers_need_gpus() const { return workers_need_gpus_; }
  /// Where there is no such host, there is no copy while a host is drained.
  bool copies_may_wait() const { return copies_may_wait_; }
  /// One on which it was not given up, and on a machine without another store of that PS shard,
  /// unlike the host where it is; or, as far as that is equal, of a better standing. Not the root's
  /// where that is spared.
  bool has_better_host_for_copy(const protocol::role_name& keeper) const;
  /// Another store of its PS shard is, or is to be, on the machine of that host.
  bool shares_machine(const std::string& host, const protocol::role_name& keeper) const;
  /// What it told of when it began; in place of what it told before. A PS shard whose
  /// store there is gone has no place any more if another host has told of one.
  void set_stores(const std::string& name, const std::vector<protocol::held_store>& stores);
  /// The host with the best store of this PS shard, of those that are there, or of all that ever
  /// told of one; null when none has any.
  const std::string* find_store(ps_shard_id shard, bool is_there = true) const;
  /// Those of hosts that are away too.
  const known_stores& stores() const { return stores_; }
  /// What a copy on that host holds now, in place of what the host told of.
  void note_copy(const std::string& host, const protocol::held_store& copy) { stores_.note(host, copy); }
  /// A keeper is to be on another host than its PS shard and the other copies, and a worker on one
  /// that takes workers, and has GPUs if it needs one. Any other role has a host at all times.
  bool can_put(const protocol::role_name& role) const;

  /// Like host_rooms::add_host(). A copy may come there again that was given up there before.
  void add_host(const std::string& name, const host_room& room);
  /// Places one start of `role` on a host that is there; the root's host must be.
  /// @param elsewhere not where it was, if there is another: the start before was given up there
  /// @param moves a keeper goes to a better host if there is one (R44)
  const place& put(const protocol::role_name& role, bool elsewhere = false, bool moves = false);
  /// Of these keepers of a PS shard, whose copies are whole, the one where it is to start: on a
  /// host that is there, of several on one that is open, then by timeline and floor, for the others
  /// are to follow it; then by end, then not on the root's. Null: no host of them is there.
  const protocol::role_name* best_copy(ps_shard_id shard,
                                       const std::vector<protocol::role_name>& whole) const;
  /// The same as put() of a PS shard, where these keepers have all that it had (R25); the host of
  /// one of them is there. It stays where it was if that host is there, unless that is closed and
  /// the keeper's is open, or it `moves` and the keeper's is open (R44). What it leaves behind
  /// counts for as much as the copy.
  const place& put_on_copy(ps_shard_id shard, const std::vector<protocol::role_name>& whole,
                           bool moves = false);
  /// It runs there.
  void keep(const protocol::role_name& role, const std::string& host, std::string reason) {
    places_[role] = {host, std::move(reason)};
  }
  /// It has no place any more.
  void forget(const protocol::role_name& role) { places_.erase(role); }
  /// Where it was put last; null before that.
  const place* find(const protocol::role_name& role) const;
  /// The host where it was put last; "" before that.
  std::string host_of(const protocol::role_name& role) const;
  const std::map<protocol::role_name, place>& all() const { return places_; }

private:
  struct load {
    std::uint32_t ps_shards = 0;
    std::uint32_t keepers = 0;
    std::uint32_t workers = 0;
    std::uint32_t threads = 0;
    bool coordinator = false; ///< one that moves
  };

  bool takes_workers(const host_room& room) const;
  std::tuple<bool, bool, standing> rank_for_copy(const std::string& host,
                                                 const protocol::role_name& keeper) const;
  load load_of(const std::string& host, const protocol::role_name& except) const;
  place choose(const protocol::role_name& role, bool elsewhere) const;
  place choose_for_coordinator(const protocol::role_name& role) const;
  place choose_for_shard(const protocol::role_name& role) const;
  place choose_for_worker(const protocol::role_name& role) const;
  place choose_for_keeper(const protocol::role_name& role, bool elsewhere) const;

  std::string root_;
  std::uint32_t threads_per_worker_;
  bool coordinator_moves_;
  bool copies_may_wait_;
  bool workers_need_gpus_;
  protocol::planted_bug bug_;
  known_stores stores_;
  std::map<protocol::role_name, place> places_;
  std::map<protocol::role_name, std::set<std::string>> given_up_; ///< keepers: on these hosts
};

/// Pure. Why a keeper is better elsewhere, which has_better_host_for_copy(); for people.
std::string why_not_kept(const protocol::role_name& keeper, const placement& places);

/// Pure. The PS shard of that keeper has been placed on its host.
bool is_in_the_way(const protocol::role_name& keeper, const placement& places);

/// Pure. Keepers that are to go: the PS shard of each is placed on its host, and opens the store
/// when the keeper is gone (R25).
std::vector<protocol::role_name> keepers_in_the_way(const placement& places);

} // namespace dlrun::agent
