/// Lets hosts join a running job: the part of the root behind the door.
#pragma once

#include "actors/agent/enrolment/enrolment_server.hpp"
#include "actors/agent/routed_launcher.hpp"
#include "runtime/host_bundles.hpp"

#include <memory>

namespace dlrun::runtime {

/// Checks a request by itself: its name, address, folder and cores. @returns bad_usage.
result<void> check_request(const bootstrap::JoinRequest& who);

/// Serves hosts that come to the door: asks the agent of the job whether a host may join, and gives
/// the host its bundle. Thread-safe.
class enrolment_desk {
public:
  /// Listens where the list of hosts says, and lets nobody in yet. @returns bad_usage when the port
  /// is in use, or the key cannot be used.
  static result<std::shared_ptr<enrolment_desk>> create(const spec::JoinSpec& join,
                                                        std::shared_ptr<const job_identity> identity,
                                                        const std::string& root,
                                                        std::shared_ptr<host_bundles> bundles);
  ~enrolment_desk();
  enrolment_desk(const enrolment_desk&) = delete;
  enrolment_desk& operator=(const enrolment_desk&) = delete;

  /// Where hosts join.
  const std::string& address() const { return address_; }
  /// Lets hosts in from now on. @param agent the agent of the job, on whose thread the launcher is
  /// asked
  result<void> open(const protocol::agent_actor& agent,
                    const std::shared_ptr<agent::routed_launcher>& launcher);
  /// No host joins any more. Blocks until its thread has ended.
  void close();
  /// Makes a token for one host. @returns as enrolment_server::make_token().
  result<security::secret_text> make_token(std::chrono::seconds lifetime);
  /// A host that was let in is there, or is not waited for.
  void let_go(const std::string& host);
  /// The root has new credentials, which it shows from now on.
  void renew(const security::credentials& own);

private:
  enrolment_desk(agent::enrolment_listener listener, agent::enrolment_options options,
                 std::shared_ptr<host_bundles> bundles);

  const std::string address_;
  const agent::enrolment_options options_;
  const std::shared_ptr<host_bundles> bundles_;
  std::mutex mutex_;
  agent::enrolment_listener listener_;              ///< until it opens; guarded by mutex_, as is the next
  std::unique_ptr<agent::enrolment_server> server_; ///< null before and after
};

} // namespace dlrun::runtime
