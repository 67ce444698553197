#include "actors/agent/control_socket.hpp"

#include "base/atomic_file.hpp"
#include "base/os_error.hpp"
#include "base/own_machine.hpp"
#include "base/read_at.hpp"
#include "base/write_all.hpp"
#include "job/host_mark.hpp"
#include "job/run_layout.hpp"
#include "transport/exchange_wire.hpp"
#include "transport/run_token.hpp"

#include <array>
#include <fcntl.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <pwd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace dlrun::agent {
namespace {

namespace wire = transport::wire;

constexpr std::size_t request_bytes_max = 4096;
constexpr std::size_t packet_bytes_max = 160 * 1024; // it must fit the socket's buffer
constexpr std::string_view answer_beside = "m";      // a packet beside which comes memory with the answer
constexpr char no_answer_sign = '\0';            // begins what is none; an answer that does comes in memory
constexpr std::string_view is_ending{"\0e", 2};  // nobody is left who would answer
constexpr std::string_view is_refused{"\0r", 2}; // and why
constexpr int client_patience_ms = 1000;
constexpr char abstract_sign = '@'; // in front of a name in agent.json, as in /proc/net/unix
constexpr mode_t socket_mode = 0600;

bool wait_readable(int socket, int patience_ms) {
  pollfd watched{socket, POLLIN, 0};
  return ::poll(&watched, 1, patience_ms) > 0;
}

/// A socket in a folder, by a path that is short enough for the kernel however long the folder's
/// is.
struct socket_place {
  base::unique_fd folder;
  sockaddr_un address{};
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

result<socket_place> place_of_socket(const std::filesystem::path& run_dir) {
  socket_place made;
  made.folder.reset(::open(run_dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!made.folder) return base::fail_errno(fmt::format("cannot open '{}'", run_dir.string()));
  made.address.sun_family = AF_UNIX;
  const auto path = fmt::format("/proc/self/fd/{}/{}", made.folder.get(), run_layout::control_socket);
  path.copy(made.address.sun_path, sizeof made.address.sun_path - 1);
  return made;
}

/// In place of the one that a root left that was killed. @returns whether there can be one.
bool bind_in_folder(int socket, const std::filesystem::path& run_dir) {
  const auto place = place_of_socket(run_dir);
  if (!place) return false;
  ::unlinkat(place->folder.get(), run_layout::control_socket, 0);
  return ::bind(socket, place->get(), sizeof place->address) == 0 &&
         ::fchmodat(place->folder.get(), run_layout::control_socket, socket_mode, 0) == 0;
}

/// @returns the name of the address, as agent.json has it.
result<std::string> bind_abstract(int socket) {
  const auto token = transport::run_token::random();
  if (!token) return tl::unexpected(token.error());
  const auto name = "dlrun-control-" + token->to_hex();
  const auto address = wire::make_abstract_address(name);
  if (!address) return tl::unexpected(address.error());
  if (::bind(socket, address->get(), address->length) != 0)
    return base::fail_errno("cannot listen for 'dlrun status'");
  return abstract_sign + name;
}

/// What agent.json says.
struct root_place {
  int pid = 0;
  std::string host, boot, socket;
  bool is_abstract() const { return socket.starts_with(abstract_sign); }
};

std::string user_name(uid_t user) {
  std::array<char, 4096> memory{};
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(user, &entry, memory.data(), memory.size(), &found);
  return found != nullptr ? entry.pw_name : fmt::format("{}", user);
}

tl::unexpected<error> no_run_in(const std::filesystem::path& run_dir) {
  std::error_code why;
  std::string more;
  if (!std::filesystem::exists(run_dir, why)) more = why ? ": " + why.message() : ": it does not exist";
  return fail(error_code::bad_usage,
              fmt::format("'{}' is not the folder of a running job{}", run_dir.string(), more));
}

result<root_place> read_place(const std::filesystem::path& run_dir) {
  const auto file = run_dir / run_layout::agent;
  std::error_code why;
  std::ifstream in;
  if (std::filesystem::is_regular_file(file, why)) in.open(file);
  if (why && why != std::errc::no_such_file_or_directory && why != std::errc::not_a_directory)
    return fail(error_code::bad_usage,
                fmt::format("cannot look into the run folder '{}': {}", run_dir.string(), why.message()));
  if (auto other = in.is_open() ? std::string{} : job::tell_host_folder(run_dir); !other.empty())
    return fail(error_code::bad_usage, std::move(other));
  if (!in.is_open()) return no_run_in(run_dir);
  const auto content = nlohmann::json::parse(in, nullptr, false);
  try { // one of dlrun 0.1 has neither host nor boot
    return root_place{content.at("pid"), content.value("host", ""), content.value("boot", ""),
                      content.at("socket")};
  } catch (const nlohmann::json::exception&) {
    return fail(error_code::bad_usage, fmt::format("'{}' is damaged", file.string()));
  }
}

tl::unexpected<error> no_answer(const root_place& root) {
  return fail(error_code::timed_out, fmt::format("the root of the run (pid {}) does not answer", root.pid));
}

/// Why nobody answers there. A kernel that has begun anew has ended all that ran before; another
/// one, of another name, is another host.
tl::unexpected<error> why_gone(const root_place& root, const std::filesystem::path& run_dir) {
  const auto folder = run_dir.string();
  if (!root.host.empty() && root.host != base::host_name() && root.boot != base::kernel_boot())
    return fail(error_code::bad_usage,
                fmt::format("the run in '{0}' belongs to host {1}, where its root process (pid {2}) runs: "
                            "call this command there; from here only files of the run are seen",
                            folder, root.host, root.pid));
  const std::string other_namespace =
      root.is_abstract() ? ", or runs in another network namespace, which this file system hides" : "";
  return fail(
      error_code::role_lost,
      fmt::format("the run in '{}' is over: its root process (pid {}) died without ending it in order{}",
                  folder, root.pid, other_namespace));
}

tl::unexpected<error> of_another_user(const root_place& root, const std::filesystem::path& run_dir) {
  struct stat about {};
  const bool is_known = ::stat((run_dir / run_layout::control_socket).c_str(), &about) == 0;
  return fail(error_code::bad_usage,
              fmt::format("the run in '{}' belongs to {}, who alone may ask its root process (pid {}): call "
                          "this as that user",
                          run_dir.string(),
                          is_known ? fmt::format("the user {}", user_name(about.st_uid)) : "another user",
                          root.pid));
}

/// @returns 0 or errno.
int connect_to(int socket, const root_place& root, const std::filesystem::path& run_dir) {
  if (root.is_abstract()) {
    const auto address = wire::make_abstract_address(std::string_view{root.socket}.substr(1));
    if (!address) return EINVAL;
    return ::connect(socket, address->get(), address->length) == 0 ? 0 : errno;
  }
  const auto place = place_of_socket(run_dir);
  if (!place) return ENOENT;
  return ::connect(socket, place->get(), sizeof place->address) == 0 ? 0 : errno;
}

/// Of memory with an answer.
result<std::string> read_all(int memory) {
  struct stat about {};
  if (::fstat(memory, &about) != 0) return base::fail_errno("cannot read the answer of the root");
  std::string answer(static_cast<std::size_t>(about.st_size), '\0');
  if (!base::read_at(memory, std::as_writable_bytes(std::span{answer}), 0))
    return base::fail_errno("cannot read the answer of the root");
  return answer;
}

bool listens(const root_place& root, const std::filesystem::path& run_dir) {
  const auto socket = wire::make_socket();
  return socket && connect_to(socket->get(), root, run_dir) == 0;
}

/// The connection has ended. A root that ends in order takes its file away before its connections
/// end. @param said the last packet, "" if there was none
tl::unexpected<error> why_unanswered(const root_place& root, const std::filesystem::path& run_dir,
                                     std::string_view said = "") {
  if (said.starts_with(is_refused))
    return fail(error_code::system, fmt::format("the root of the run (pid {}) cannot answer: {}", root.pid,
                                                said.substr(is_refused.size())));
  if (const auto now = read_place(run_dir); !now) return tl::unexpected(now.error());
  if (!listens(root, run_dir)) return why_gone(root, run_dir);
  if (said.starts_with(is_ending))
    return fail(error_code::bad_usage, fmt::format("the run in '{}' is ending: its root process (pid {}) "
                                                   "does not take this any more",
                                                   run_dir.string(), root.pid));
  return fail(error_code::system,
              fmt::format("the root of the run (pid {}) ended the connection without an answer: try again",
                          root.pid));
}

/// Beside a packet, in memory. @returns 0 or errno.
int send_beside(int connection, std::string_view answer) {
  const base::unique_fd memory{::memfd_create("dlrun:answer", MFD_CLOEXEC)};
  if (!memory || !base::write_all(memory.get(), answer)) return errno;
  return wire::send_packet(connection, answer_beside.data(), answer_beside.size(), memory.get());
}

} // namespace

/// Who has asked, and waits for one packet.
class control_reply::asker {
public:
  explicit asker(base::unique_fd connection)
      : connection_{std::move(connection)} {}
  ~asker() {
    if (!is_answered_) send(is_ending);
  }
  asker(const asker&) = delete;
  asker& operator=(const asker&) = delete;
  asker(asker&&) = delete;
  asker& operator=(asker&&) = delete;

  /// @returns 0 or errno.
  int answer(std::string_view answer) {
    is_answered_ = true;
    const bool fits = answer.size() <= packet_bytes_max && !answer.starts_with(no_answer_sign);
    return fits ? send(answer) : send_beside(connection_.get(), answer);
  }
  void refuse(std::string_view why) {
    is_answered_ = true;
    send(fmt::format("{}{}", is_refused, why));
  }

private:
  int send(std::string_view packet) const {
    return wire::send_packet(connection_.get(), packet.data(), packet.size());
  }

  base::unique_fd connection_;
  bool is_answered_ = false;
};

control_reply::control_reply(base::unique_fd connection)
    : asker_{std::make_shared<asker>(std::move(connection))} {}

void control_reply::operator()(std::string_view answer) const {
  if (const int failed = asker_->answer(answer); failed != 0)
    asker_->refuse(std::generic_category().message(failed));
}

void control_reply::refuse(std::string_view why) const { asker_->refuse(why); }

result<std::unique_ptr<control_server>> control_server::start(const std::filesystem::path& run_dir,
                                                              handler answer) {
  auto socket = wire::make_socket();
  if (!socket) return tl::unexpected(socket.error());
  result<std::string> name{run_layout::control_socket};
  if (!bind_in_folder(socket->get(), run_dir)) name = bind_abstract(socket->get());
  if (!name) return tl::unexpected(name.error());
  if (::listen(socket->get(), 16) != 0) return base::fail_errno("cannot listen for 'dlrun status'");
  const auto place = nlohmann::json{
      {"pid", ::getpid()},
      {"host", base::host_name()},
      {"boot", base::kernel_boot()},
      {"socket", *name}}.dump();
  if (auto written = base::write_file_atomically(run_dir / run_layout::agent, place + "\n"); !written) {
    std::error_code ignored;
    std::filesystem::remove(run_dir / run_layout::control_socket, ignored);
    return tl::unexpected(written.error());
  }
  base::unique_fd folder{::open(run_dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!folder) return base::fail_errno(fmt::format("cannot open '{}'", run_dir.string()));
  std::unique_ptr<control_server> made(
      new control_server(std::move(*socket), std::move(folder), std::move(answer)));
  if (auto ok = made->thread_.start("dlrun-control", "the control socket", *made); !ok)
    return tl::unexpected(ok.error());
  return made;
}

control_server::control_server(base::unique_fd socket, base::unique_fd folder, handler answer)
    : listener_{std::move(socket)}
    , folder_{std::move(folder)}
    , handler_{std::move(answer)} {}

/// Who is not answered any more sees that the file is gone. Both are in the folder that was served,
/// whatever its name is by now.
control_server::~control_server() {
  ::unlinkat(folder_.get(), run_layout::agent, 0);
  ::unlinkat(folder_.get(), run_layout::control_socket, 0);
  thread_.stop();
}

std::chrono::steady_clock::time_point control_server::watch(std::vector<pollfd>& fds) {
  return listener_.watch(fds, true, std::chrono::steady_clock::now());
}

void control_server::serve(std::span<const pollfd> fds) {
  if (fds[0].revents == 0) return;
  listener_.accept_waiting(std::chrono::steady_clock::now(), [this](base::unique_fd connection) {
    if (wire::check_peer_user(connection.get())) answer(std::move(connection));
    return false; // one at a turn: each may take its time
  });
}

void control_server::answer(base::unique_fd connection) const {
  const int socket = connection.get();
  const control_reply reply{std::move(connection)};
  if (!wait_readable(socket, client_patience_ms))
    return reply.refuse(fmt::format("nothing was asked within {} ms", client_patience_ms));
  std::string request(request_bytes_max, '\0');
  const auto packet = wire::receive_packet(socket, request.data(), request.size());
  if (!packet) return reply.refuse(packet.error().message);
  if (packet->size > request.size())
    return reply.refuse(fmt::format("what was asked is longer than {} bytes", request_bytes_max));
  if (packet->size == 0) return; // the asker has gone
  request.resize(packet->size);
  handler_(request, reply);
}

result<std::string> exchange_with_root(const std::filesystem::path& run_dir, const std::string& request,
                                       std::chrono::milliseconds deadline) {
  const auto root = read_place(run_dir);
  if (!root) return tl::unexpected(root.error());
  const auto socket = wire::make_socket();
  if (!socket) return tl::unexpected(socket.error());
  const int refused = connect_to(socket->get(), *root, run_dir);
  if (refused == EAGAIN) return no_answer(*root); // as many wait as can
  if (refused == EACCES) return of_another_user(*root, run_dir);
  if (refused != 0) return why_unanswered(*root, run_dir);
  if (auto same = wire::check_peer_user(socket->get()); !same) return tl::unexpected(same.error());
  // What has not come any more was refused before.
  const int unsent = wire::send_packet(socket->get(), request.data(), request.size());
  if (unsent != 0 && unsent != EPIPE) return why_unanswered(*root, run_dir);
  if (!wait_readable(socket->get(), static_cast<int>(deadline.count()))) return no_answer(*root);
  std::string answer(packet_bytes_max, '\0');
  const auto packet = wire::receive_packet(socket->get(), answer.data(), answer.size());
  if (!packet || packet->size == 0) return why_unanswered(*root, run_dir);
  if (packet->descriptor) return read_all(packet->descriptor.get());
  answer.resize(std::min(packet->size, answer.size()));
  if (answer.starts_with(no_answer_sign)) return why_unanswered(*root, run_dir, answer);
  return answer;
}

} // namespace dlrun::agent
