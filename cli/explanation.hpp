/// Why each role of a run is where it is, as its events tell it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace dlrun::cli {

/// The newest place of a role.
struct explained_role {
  std::string role; ///< "ps_shard"
  std::uint64_t index = 0;
  std::uint64_t incarnation = 0; ///< of the start that was placed there; later ones stay there
  std::string host;
  std::string since;      ///< time of the wall clock
  std::string reason;     ///< for people, as the one who placed it says it
  std::string moved_from; ///< the host that it was on before; "" when this is its first
  std::string why_moved;  ///< how it, or that host, ended
  std::string host_lost;  ///< why its host is given up while it has no other; "" when that is there
};

/// A GPU that gets no more workers.
struct explained_gpu {
  std::uint64_t gpu = 0;
  std::string host;
  std::string since; ///< time of the wall clock
  std::string reason;
};

/// A host that is being drained, or is.
struct explained_drain {
  std::string host;
  bool is_over = false; ///< it may be switched off
  std::string since;    ///< time of the wall clock
};

/// Follows the lines of events.jsonl. What is damaged there is passed over. A run that is resumed
/// begins anew: all of its roles are placed again. Not thread-safe.
class explanation {
public:
  void add(std::string_view line);

  /// By kind and index; without the workers that are too many since `dlrun scale`.
  std::vector<explained_role> roles() const;
  /// In the order of their times.
  const std::vector<explained_gpu>& avoided_gpus() const { return avoided_; }
  /// By host.
  std::vector<explained_drain> drains() const;
  /// Had the newest start of the run a list of hosts? Nothing: the events do not tell.
  std::optional<bool> has_hosts() const;
  bool is_resumed() const { return is_resumed_; }

private:
  using role_key = std::pair<std::string, std::uint64_t>;
  struct placed_role {
    explained_role shown;
    std::string end; ///< of its newest start that has ended, since it was placed
  };
  void begin_anew(const nlohmann::json& event);
  void place(const role_key& key, const nlohmann::json& event);

  std::map<role_key, placed_role> roles_;
  std::map<std::string, std::string> lost_; ///< hosts that are given up, with the reason
  std::map<std::string, explained_drain> drains_;
  std::vector<explained_gpu> avoided_;
  std::optional<std::uint64_t> workers_; ///< as many as are wanted, once somebody scaled
  bool is_resumed_ = false;
  std::optional<bool> resumed_with_hosts_;
};

} // namespace dlrun::cli
