/// A real etcd for tests: its members on loopback, in a folder that goes away.
#pragma once

#include "base/unique_fd.hpp"
#include "persistence/etcd_client.hpp"
#include "tests/data/files.hpp"

#include <string>
#include <sys/types.h>
#include <vector>

namespace dlrun::test {

/// Starts Debian's etcd (package etcd-server). Its members listen on an address of loopback that
/// follows from this process's number, so that no other process has it. Broken when it does not
/// come up.
class etcd_servers {
public:
  static bool are_installed();

  explicit etcd_servers(std::size_t members, std::vector<std::string> more_arguments = {});
  ~etcd_servers();
  etcd_servers(const etcd_servers&) = delete;
  etcd_servers& operator=(const etcd_servers&) = delete;

  std::size_t size() const { return members_.size(); }
  std::string endpoint(std::size_t member) const;
  persistence::etcd_place place() const;
  /// Which one leads now; waits for one.
  std::size_t leader() const;
  /// SIGKILL, SIGSTOP, SIGCONT.
  void kill(std::size_t member);
  void stop(std::size_t member) const;
  void go_on(std::size_t member) const;
  /// With what it has on disk.
  void start(std::size_t member);
  /// Until a quorum answers.
  void wait_until_up() const;
  /// What its gateway answers; empty when it does not.
  std::string post(std::size_t member, const std::string& path, const std::string& body,
                   const std::string& token = {}) const;

private:
  std::vector<std::string> arguments_of(std::size_t member) const;
  std::string peer(std::size_t member) const;

  temporary_folder folder_;
  std::string address_;
  std::vector<std::string> more_;
  std::vector<::pid_t> members_; ///< 0: does not run
};

/// An address of loopback where connections are refused, and from accept() on are made and never
/// answered.
class silent_member {
public:
  silent_member();

  std::string endpoint() const { return endpoint_; }
  void accept() const;

private:
  base::unique_fd socket_;
  std::string endpoint_;
};

} // namespace dlrun::test
