/// The beats of a simulated process with others, around the product's peer_watch and own_time.
#pragma once

#include "actors/agent/beats/own_time.hpp"
#include "actors/agent/beats/peer_watch.hpp"
#include "tests/simulation/process.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace dlrun::simulation {

/// The thread that sends beats, reads those of others and judges. It is stopped when its process
/// is, and its datagrams wait meanwhile.
class beat_line {
public:
  using told = std::function<void(const agent::sighting&)>;

  /// @param send to the role of a peer  @param now by the clock of its host
  /// @param last_sequence as agent::beat_options has it
  beat_line(world& where, process& of, std::uint64_t boot,
            std::function<void(protocol::role_name, const host_beat&)> send,
            std::function<protocol::time_point()> now, std::uint64_t last_sequence = 0);

  void begin();
  /// Replaces what was watched under that name, unless it is the same start.
  void watch(const std::string& name, protocol::role_name to, std::uint64_t boot, told tell);
  void forget(const std::string& name) { peers_.erase(name); }
  void note_turn() { turn_ = now_(); }
  void receive(const host_beat& datagram);
  agent::sight sees(const std::string& name) const;

private:
  struct peer {
    protocol::role_name to;
    std::uint64_t boot = 0;
    agent::peer_watch watch;
    agent::sight seen = agent::sight::unproven;
    told tell;
  };

  void wake_at(protocol::time_point due);
  void serve();
  void read_all(protocol::time_point at);
  void send_all(protocol::time_point at);
  void look_at_all(protocol::time_point at);

  world& world_;
  process& process_;
  std::uint64_t boot_;
  std::uint64_t last_sequence_;
  std::function<void(protocol::role_name, const host_beat&)> send_;
  std::function<protocol::time_point()> now_;
  agent::watch_rules rules_;
  agent::own_time own_time_;
  protocol::time_point turn_{};
  protocol::time_point next_beat_{};
  protocol::time_point due_{};
  std::uint64_t alarm_ = 0; ///< the newest; older ones do nothing
  std::map<std::string, peer> peers_;
  std::vector<agent::beat> inbox_;
};

} // namespace dlrun::simulation
