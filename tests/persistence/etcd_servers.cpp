#include "tests/persistence/etcd_servers.hpp"

#include "base/http_client.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <dlrun/check.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace dlrun::test {
namespace {

constexpr auto patience = std::chrono::seconds(30);

/// 127.a.b.c by three bytes of the process's number.
std::string own_address() {
  const auto number = static_cast<unsigned>(::getpid());
  return fmt::format("127.{}.{}.{}", 64 + (number >> 16 & 63U), number >> 8 & 255U, number & 255U);
}

template <class Condition>
void wait_for(const char* what, const Condition& holds) {
  const auto give_up = std::chrono::steady_clock::now() + patience;
  while (!holds()) {
    DLRUN_CHECK(std::chrono::steady_clock::now() < give_up, "etcd {}", what);
    std::this_thread::yield();
  }
}

} // namespace

bool etcd_servers::are_installed() {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access((folder + "/etcd").c_str(), X_OK) == 0) return true;
  return false;
}

etcd_servers::etcd_servers(std::size_t members, std::vector<std::string> more_arguments)
    : address_(own_address())
    , more_(std::move(more_arguments))
    , members_(members) {
  for (std::size_t i = 0; i < members; ++i) start(i);
  wait_until_up();
}

etcd_servers::~etcd_servers() {
  for (std::size_t i = 0; i < size(); ++i) kill(i);
}

std::string etcd_servers::endpoint(std::size_t member) const {
  return fmt::format("http://{}:{}", address_, 2379 + 2 * member);
}

std::string etcd_servers::peer(std::size_t member) const {
  return fmt::format("http://{}:{}", address_, 2380 + 2 * member);
}

persistence::etcd_place etcd_servers::place() const {
  persistence::etcd_place all;
  for (std::size_t i = 0; i < size(); ++i) all.endpoints.push_back(endpoint(i));
  return all;
}

std::vector<std::string> etcd_servers::arguments_of(std::size_t member) const {
  std::string all;
  for (std::size_t i = 0; i < size(); ++i) all += fmt::format("{}m{}={}", i == 0 ? "" : ",", i, peer(i));
  std::vector<std::string> arguments{"etcd",
                                     fmt::format("--name=m{}", member),
                                     fmt::format("--data-dir={}/m{}", folder_.path().string(), member),
                                     "--listen-client-urls=" + endpoint(member),
                                     "--advertise-client-urls=" + endpoint(member),
                                     "--listen-peer-urls=" + peer(member),
                                     "--initial-advertise-peer-urls=" + peer(member),
                                     "--initial-cluster=" + all,
                                     "--initial-cluster-token=" + folder_.path().filename().string()};
  arguments.insert(arguments.end(), more_.begin(), more_.end());
  return arguments;
}

void etcd_servers::start(std::size_t member) {
  auto arguments = arguments_of(member);
  std::vector<char*> words;
  for (auto& one : arguments) words.push_back(one.data());
  words.push_back(nullptr);
  const auto log = (folder_.path() / fmt::format("m{}.log", member)).string();
  const auto child = ::fork();
  DLRUN_CHECK(child >= 0, "no more processes");
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(fd, STDOUT_FILENO);
    ::dup2(fd, STDERR_FILENO);
    ::execvp(words[0], words.data());
    ::_exit(127);
  }
  members_.at(member) = child;
}

void etcd_servers::kill(std::size_t member) {
  auto& process = members_.at(member);
  if (process == 0) return;
  ::kill(process, SIGKILL);
  ::waitpid(process, nullptr, 0);
  process = 0;
}

void etcd_servers::stop(std::size_t member) const { ::kill(members_.at(member), SIGSTOP); }
void etcd_servers::go_on(std::size_t member) const { ::kill(members_.at(member), SIGCONT); }

std::string etcd_servers::post(std::size_t member, const std::string& path, const std::string& body,
                               const std::string& token) const {
  const auto answer =
      base::http_client({}).send({.method = "POST",
                                  .url = endpoint(member) + path,
                                  .headers = {"Content-Type: application/json", "Authorization: " + token},
                                  .body = body},
                                 std::chrono::milliseconds(500));
  return answer && answer->status == 200 ? answer->body : std::string{};
}

void etcd_servers::wait_until_up() const {
  wait_for("does not come up", [&] {
    for (std::size_t i = 0; i < size(); ++i)
      if (members_[i] != 0 && !post(i, "/v3/kv/range", R"({"key":"eA=="})").empty()) return true;
    return false;
  });
}

std::size_t etcd_servers::leader() const {
  std::size_t found = 0;
  wait_for("has no leader", [&] {
    for (std::size_t i = 0; i < size(); ++i) {
      const auto status = nlohmann::json::parse(post(i, "/v3/maintenance/status", "{}"), nullptr, false);
      if (!status.is_object() || !status.contains("leader")) continue;
      if (status["leader"] != status["header"]["member_id"]) continue;
      found = i;
      return true;
    }
    return false;
  });
  return found;
}

silent_member::silent_member()
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  ::socklen_t size = sizeof at;
  DLRUN_CHECK(::bind(socket_.get(), address, size) == 0 && ::getsockname(socket_.get(), address, &size) == 0,
              "loopback has a port");
  endpoint_ = fmt::format("http://127.0.0.1:{}", ntohs(at.sin_port));
}

void silent_member::accept() const { DLRUN_CHECK(::listen(socket_.get(), 64) == 0, "a socket listens"); }

} // namespace dlrun::test
