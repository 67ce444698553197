/// The thread that exchanges beats with the agents of other hosts.
#pragma once

#include "actors/agent/beats/peer_watch.hpp"

#include <dlrun/error.hpp>
#include <functional>
#include <memory>
#include <string>

namespace dlrun::agent {

struct beat_options {
  /// Number of an interface of this host; beats go from and to a UDP port of it.
  std::string address;
  std::uint16_t port = 0; ///< 0: a free one
  std::uint64_t boot = 0; ///< random number of this start, or of one that this one goes on for
  /// Of the beats before the first one: whoever goes on for another start leaves out all numbers
  /// that it may have used.
  std::uint64_t last_sequence = 0;
  watch_rules rules{};
};

/// Whom to exchange beats with.
struct beat_peer {
  std::string name; ///< of its host
  std::uint64_t boot = 0;
  /// Where it is, as its beat_exchange::address(), until a beat of it comes from elsewhere. "": it
  /// is not known before its first beat; so it may be behind a firewall that lets through what
  /// answers.
  std::string address{};
  beat_keys keys{};
};

/// A start of the agent of a host, as the root watches it. @param run_key of the run, which no host
/// is given
inline beat_peer host_seen_by_root(const base::hmac_key& run_key, const std::string& host,
                                   std::uint64_t boot) {
  return {.name = host, .boot = boot, .keys = keys_of_root(pair_key(run_key, host))};
}

/// Watches peers by their beats. Thread-safe.
class beat_service {
public:
  using told = std::function<void(const sighting&)>;

  beat_service() = default;
  virtual ~beat_service() = default;
  beat_service(const beat_service&) = delete;
  beat_service& operator=(const beat_service&) = delete;

  /// Where others are to send their beats: "10.0.0.1:41234".
  virtual const std::string& address() const = 0;
  /// Replaces what was watched under that name, unless it is the same start. `tell` is called on
  /// the thread of the service whenever what is seen changes, first from `unproven`.
  /// @returns bad_usage for what is no address.
  virtual result<void> watch(const beat_peer& peer, told tell) = 0;
  virtual void forget(const std::string& name) = 0;
  /// Sends that peer beats, whatever its boot, so that it learns where this end is now (R39): until
  /// it is watched or forgotten, or until then. @returns bad_usage for what is no address.
  virtual result<void> call(const beat_peer& peer, protocol::time_point until) = 0;
  /// The actor of this process has a turn: from the first one on beats say how long ago the last
  /// one was.
  virtual void note_turn() = 0;
};

/// A UDP socket, and a thread that sends each peer a datagram each period and reads theirs. What is
/// not a beat of a peer, under its key, of its start and newer than the last, is dropped. Beats go
/// to where the newest one of the peer came from.
class beat_exchange final : public beat_service {
public:
  /// @returns bad_usage when `address` is not of this host, system when descriptors or threads have
  /// run out.
  static result<std::unique_ptr<beat_exchange>> start(const beat_options& options);
  ~beat_exchange() override;

  const std::string& address() const override;
  result<void> watch(const beat_peer& peer, told tell) override;
  void forget(const std::string& name) override;
  result<void> call(const beat_peer& peer, protocol::time_point until) override;
  void note_turn() override;

private:
  class loop;
  explicit beat_exchange(std::unique_ptr<loop> loop);
  std::unique_ptr<loop> loop_;
};

} // namespace dlrun::agent
