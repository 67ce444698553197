/// The secrets by which agents of other hosts know the root of a run, so that a root that comes
/// back is the same to them (rule R35).
#pragma once

#include "actors/link/gatekeeper.hpp"
#include "proto/root_secrets.pb.h"
#include "runtime/job_identity.hpp"
#include "runtime/root_beats.hpp"
#include "runtime/root_home.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace dlrun::runtime {

/// The file root.secrets in a run folder, which only its owner can read. It exists from the
/// beginning of a run on several hosts until the run has ended in order.
class root_secrets {
public:
  /// Takes the secrets that an earlier root of the run left, else makes new ones. @returns
  /// bad_usage, naming the file and the way out, when the file cannot be used; system.
  /// @param home where they are kept beside the file; may be null
  static result<root_secrets> take(const std::filesystem::path& run_dir,
                                   std::shared_ptr<root_home> home = {});
  /// Removes the file, if there is one: the run has ended in order, and no root comes back.
  static void forget(const std::filesystem::path& run_dir);

  /// Writes the file as it was kept elsewhere. @returns as keep()
  static result<void> restore(const std::filesystem::path& run_dir, const std::string& bytes);

  /// Whether a root that did not come to its end has left secrets. They may be unusable.
  static bool are_left(const std::filesystem::path& run_dir);

  /// Before the job of the run is changed, also where no root follows for now: what was started is
  /// of another one, and no root takes it over. Nothing happens if there is no such file. @returns
  /// as take()
  static result<void> job_changes(const std::filesystem::path& run_dir);

  /// This root is one more that ran the job as it is now; the only one, unless it is the same.
  void note_root(std::uint64_t process, bool is_same_job);
  /// The job of the run is what this root runs, once `change` has written that. Whatever becomes of
  /// this call, no root takes over what ran another job. @returns as keep() and `change`
  result<void> change_job(std::uint64_t process, const std::function<result<void>()>& change);
  /// Those, of which this may take over what they started.
  std::set<std::uint64_t> roots_of_same_job() const;

  /// Whether an earlier root left these secrets.
  bool are_found() const { return found_; }
  /// Where they, and the record, are kept beside the run folder; null where nowhere.
  const std::shared_ptr<root_home>& home() const { return home_; }
  transport::run_token token() const;
  /// @param lifetime of the certificates that it issues
  result<std::shared_ptr<job_identity>> identity(std::chrono::seconds lifetime) const;
  /// The port to listen on at `own_number`, and to exchange beats on; 0: a free one.
  std::uint16_t control_port() const { return static_cast<std::uint16_t>(kept_.control_port()); }
  /// That of beats of the roots before it, and of hosts that joined them (R39); 0: there were none.
  std::uint16_t beats_port() const { return static_cast<std::uint16_t>(kept_.beats_port()); }
  /// Beats of this root, which follow on those of the roots before it.
  result<root_beats> start_beats(const std::string& own_number) const;
  /// Stores what a later root needs. To be called before anything on another host is started.
  /// @param control_address as gatekeeper::address(). @returns bad_usage or system.
  result<void> keep(const std::string& control_address, const root_beats& beats);
  /// Stores a host that joins by itself, so that a later root lets its agent in again. To be called
  /// before the host is told anything. Replaces a host of the same name; of very many hosts the
  /// oldest is forgotten. @returns as keep() above
  result<void> keep(const records::EnrolledHost& host);
  /// The hosts that have joined, oldest first.
  std::vector<records::EnrolledHost> enrolled() const;

private:
  root_secrets(std::filesystem::path file, records::RootSecrets kept, bool found,
               std::shared_ptr<root_home> home)
      : file_{std::move(file)}
      , kept_{std::move(kept)}
      , found_{found}
      , home_{std::move(home)} {}
  result<void> write() const;

  std::filesystem::path file_;
  records::RootSecrets kept_;
  bool found_;
  std::shared_ptr<root_home> home_;
};

} // namespace dlrun::runtime
