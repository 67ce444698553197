/// What makes the root of a run who it is for the agents of other hosts, so that one that comes
/// back is the same to them (rule R35).
#pragma once

#include "actors/link/gatekeeper.hpp"
#include "proto/root_secrets.pb.h"
#include "runtime/job_identity.hpp"
#include "runtime/root_beats.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace dlrun::runtime {

/// The file root.secrets in a run folder, readable by its owner alone. It is there from when a run
/// on several hosts begins until it has ended in order.
class root_secrets {
public:
  /// Those that an earlier root of the run left, else new ones. @returns bad_usage, naming the file
  /// and the way out, when it is there and cannot be used; system.
  static result<root_secrets> take(const std::filesystem::path& run_dir);
  /// The run has ended in order: nobody comes back. Nothing happens if there is no such file.
  static void forget(const std::filesystem::path& run_dir);

  /// Has a root left some there, that did not come to its end? Says nothing of whether they can be
  /// used.
  static bool are_left(const std::filesystem::path& run_dir);

  /// Before the job of the run is changed, also where no root follows for now: what was started is
  /// of another one, and no root takes it over. Nothing happens if there is no such file. @returns
  /// as take()
  static result<void> job_changes(const std::filesystem::path& run_dir);

  /// This root is one more that ran the job as it is now; the only one, unless it is the same.
  void note_root(std::uint64_t process, bool is_same_job);
  /// Those, of which this may take over what they started.
  std::set<std::uint64_t> roots_of_same_job() const;

  /// Were they left by an earlier root?
  bool are_found() const { return kept_.roots() > 1; }
  transport::run_token token() const;
  /// @param lifetime of the certificates that it issues
  result<std::shared_ptr<job_identity>> identity(std::chrono::seconds lifetime) const;
  /// The port to listen on at `own_number`, and to exchange beats on; 0: a free one.
  std::uint16_t control_port() const { return static_cast<std::uint16_t>(kept_.control_port()); }
  /// Beats of this root, which follow on those of the roots before it.
  result<root_beats> start_beats(const std::string& own_number) const;
  /// Before anything of another host is started: who comes back finds these.
  /// @param control_address as gatekeeper::address(). @returns bad_usage or system.
  result<void> keep(const std::string& control_address, const root_beats& beats);
  /// Before a host that joins by itself is told anything: who comes back lets its agent in again.
  /// In place of the one that had its name; the oldest of very many is forgotten. @returns as
  /// keep()
  result<void> keep(const records::EnrolledHost& host);
  /// Those, oldest first.
  std::vector<records::EnrolledHost> enrolled() const;

private:
  root_secrets(std::filesystem::path file, records::RootSecrets kept)
      : file_{std::move(file)}
      , kept_{std::move(kept)} {}
  result<void> write() const;

  std::filesystem::path file_;
  records::RootSecrets kept_;
};

} // namespace dlrun::runtime
