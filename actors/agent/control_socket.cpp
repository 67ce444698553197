#include "actors/agent/control_socket.hpp"

#include "base/os_error.hpp"
#include "transport/exchange_wire.hpp"
#include "transport/run_token.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <unistd.h>

namespace dlrun::agent {
namespace {

namespace wire = transport::wire;

constexpr std::size_t request_bytes_max = 4096;
constexpr std::size_t answer_bytes_max = 160 * 1024; // a packet must fit the socket's buffer
constexpr int client_patience_ms = 1000;

bool wait_readable(int socket, int patience_ms) {
  pollfd watched{socket, POLLIN, 0};
  return ::poll(&watched, 1, patience_ms) > 0;
}

} // namespace

result<std::unique_ptr<control_server>> control_server::start(const std::filesystem::path& run_dir,
                                                              handler answer) {
  const auto token = transport::run_token::random();
  if (!token) return tl::unexpected(token.error());
  const auto name = "dlrun-control-" + token->to_hex();
  const auto address = wire::make_abstract_address(name);
  if (!address) return tl::unexpected(address.error());
  auto socket = wire::make_socket();
  if (!socket) return tl::unexpected(socket.error());
  if (::bind(socket->get(), address->get(), address->length) != 0 || ::listen(socket->get(), 16) != 0)
    return base::fail_errno("cannot listen for 'dlrun status'");
  const auto file = run_dir / agent_file;
  std::ofstream out{file};
  out << nlohmann::json{{"pid", ::getpid()}, {"socket", name}}.dump() << '\n';
  if (!out.flush()) return fail(error_code::system, fmt::format("cannot write '{}'", file.string()));
  std::unique_ptr<control_server> made(new control_server(std::move(*socket), file, std::move(answer)));
  if (auto ok = made->thread_.start("dlrun-control", "the control socket", *made); !ok)
    return tl::unexpected(ok.error());
  return made;
}

control_server::control_server(base::unique_fd socket, std::filesystem::path file, handler answer)
    : listener_{std::move(socket)}
    , file_{std::move(file)}
    , handler_{std::move(answer)} {}

control_server::~control_server() {
  thread_.stop();
  std::error_code ignored; // the folder may be gone
  std::filesystem::remove(file_, ignored);
}

std::chrono::steady_clock::time_point control_server::watch(std::vector<pollfd>& fds) {
  const auto now = std::chrono::steady_clock::now();
  fds.push_back(listener_.watched(true, now));
  return listener_.pause_end(now);
}

void control_server::serve(std::span<const pollfd> fds) {
  if (fds[0].revents == 0) return;
  listener_.accept_waiting(std::chrono::steady_clock::now(), [this](base::unique_fd connection) {
    if (wire::check_peer_user(connection.get())) answer(connection.get());
    return false; // one at a turn: each may take its time
  });
}

void control_server::answer(int connection) const {
  if (!wait_readable(connection, client_patience_ms)) return;
  std::string request(request_bytes_max, '\0');
  const auto packet = wire::receive_packet(connection, request.data(), request.size());
  if (!packet || packet->size == 0 || packet->size > request.size()) return;
  request.resize(packet->size);
  const auto said = handler_(request);
  wire::send_packet(connection, said.data(), std::min(said.size(), answer_bytes_max));
}

result<std::string> ask_root(const std::filesystem::path& run_dir, const std::string& request,
                             std::chrono::milliseconds deadline) {
  const auto file = run_dir / agent_file;
  std::ifstream in{file};
  if (!in)
    return fail(error_code::bad_usage,
                fmt::format("'{}' is not the folder of a running job", run_dir.string()));
  const auto content = nlohmann::json::parse(in, nullptr, false);
  if (!content.is_object() || !content.contains("socket") || !content["socket"].is_string())
    return fail(error_code::bad_usage, fmt::format("'{}' is damaged", file.string()));
  const auto address = wire::make_abstract_address(content["socket"].get<std::string>());
  if (!address) return tl::unexpected(address.error());
  const auto socket = wire::make_socket();
  if (!socket) return tl::unexpected(socket.error());
  const auto gone = [&] {
    return fail(
        error_code::role_lost,
        fmt::format("the run in '{0}' is over: its root process (pid {1}) died without ending it in order; "
                    "'dlrun resume {0}' goes on from what is on disk",
                    run_dir.string(), content.value("pid", 0)));
  };
  if (::connect(socket->get(), address->get(), address->length) != 0) return gone();
  if (auto same = wire::check_peer_user(socket->get()); !same) return tl::unexpected(same.error());
  if (wire::send_packet(socket->get(), request.data(), request.size()) != 0) return gone();
  if (!wait_readable(socket->get(), static_cast<int>(deadline.count())))
    return fail(error_code::timed_out,
                fmt::format("the root of the run (pid {}) does not answer", content.value("pid", 0)));
  std::string answer(answer_bytes_max, '\0');
  const auto packet = wire::receive_packet(socket->get(), answer.data(), answer.size());
  if (!packet) return tl::unexpected(packet.error());
  if (packet->size == 0) return gone();
  answer.resize(std::min(packet->size, answer.size()));
  return answer;
}

} // namespace dlrun::agent
