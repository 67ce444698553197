// The tensor channel over TCP: what a worker does to get a PS shard's parameters where they share
// no memory, without and with TLS, beside a bare socket that moves as many bytes from the same kind
// of buffer to the same kind of buffer.
//   build/release/bin/tcp_throughput
#include "benchmarks/buffer_sizes.hpp"
#include "security/certificate_authority.hpp"
#include "security/tls_context.hpp"
#include "transport/copy_buffers.hpp"
#include "transport/parameter_segment.hpp"
#include "transport/tcp_client.hpp"
#include "transport/tcp_server.hpp"
#include "transport/tcp_wire.hpp"

#include <algorithm>
#include <benchmark/benchmark.h>
#include <future>
#include <sys/socket.h>
#include <thread>

namespace {

using namespace dlrun;
using namespace dlrun::benchmarks;

/// Two ends of one connection on the loopback interface, blocking.
struct socket_pair {
  base::unique_fd sender, receiver;
};

std::optional<socket_pair> connect_pair() {
  const base::unique_fd listener(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const where = reinterpret_cast<sockaddr*>(&at);
  socklen_t length = sizeof at;
  socket_pair made;
  made.receiver.reset(::socket(AF_INET, SOCK_STREAM, 0));
  if (::bind(listener.get(), where, length) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), where, &length) != 0 ||
      ::connect(made.receiver.get(), where, length) != 0)
    return std::nullopt;
  made.sender.reset(::accept(listener.get(), nullptr, nullptr));
  transport::tcp::set_no_delay(made.sender.get());
  transport::tcp::set_no_delay(made.receiver.get());
  return made;
}

/// Sends all of `from` for each byte that comes, until none comes any more.
void send_on_request(int socket, std::span<const std::byte> from) {
  char asked = 0;
  while (::recv(socket, &asked, 1, 0) == 1)
    for (std::size_t sent = 0; sent < from.size();) {
      const auto some = ::send(socket, from.data() + sent, from.size() - sent, MSG_NOSIGNAL);
      if (some <= 0) return;
      sent += static_cast<std::size_t>(some);
    }
}

void raw_socket(benchmark::State& state) {
  const auto bytes = floats_of(state) * sizeof(float);
  auto ends = connect_pair();
  auto from = transport::segment::create("raw", bytes);
  transport::copy_buffers memory;
  auto to = memory.lend(bytes);
  if (!ends || !from || !to) return state.SkipWithError("no socket or no memory");
  std::ranges::fill(from->mutable_bytes(), std::byte{1});
  std::thread sender([&] { send_on_request(ends->sender.get(), from->bytes()); });
  for (auto _ : state) {
    const char ask = 1;
    if (::send(ends->receiver.get(), &ask, 1, MSG_NOSIGNAL) != 1 ||
        ::recv(ends->receiver.get(), to->memory.data(), bytes, MSG_WAITALL) != static_cast<ssize_t>(bytes)) {
      state.SkipWithError("the socket broke");
      break;
    }
  }
  ::shutdown(ends->receiver.get(), SHUT_RDWR);
  sender.join();
  set_bytes(state);
}

/// Fetches by `tls`, or without if there is none.
void fetch_all(benchmark::State& state, const std::shared_ptr<const security::tls_context>& tls) {
  const auto floats = floats_of(state);
  const auto token = transport::run_token::random().value();
  const auto server = transport::tcp_server::start({.token = token, .tls = tls});
  const auto client = transport::tcp_client::start({.token = token, .tls = tls});
  auto writer = transport::parameter_writer::create(floats);
  if (!server || !client || !writer) return state.SkipWithError("no server, no client or no memory");
  std::ranges::fill(writer->begin_write({0}, {0}), 1.0F);
  writer->publish();
  const auto id = (*server)->offer(writer->shared());
  if (!id) return state.SkipWithError(id.error().message.c_str());
  for (auto _ : state) {
    std::promise<result<transport::segment>> got;
    const auto asked = (*client)->fetch(
        (*server)->address(), *id, writer->shared().size(), transport::parameter_part(floats, 0),
        std::chrono::steady_clock::now() + std::chrono::seconds(60),
        [&](result<transport::segment> one) { got.set_value(std::move(one)); });
    if (!asked) return state.SkipWithError(asked.error().message.c_str());
    if (const auto copy = got.get_future().get(); !copy)
      return state.SkipWithError(copy.error().message.c_str());
  }
  set_bytes(state);
}

void tensor_channel(benchmark::State& state) { fetch_all(state, nullptr); }

void tls_channel(benchmark::State& state) {
  const auto authority = security::certificate_authority::make("benchmark");
  if (!authority) return state.SkipWithError(authority.error().message.c_str());
  const auto mine = authority->issue({"benchmark", "any", 0, "here"});
  if (!mine) return state.SkipWithError(mine.error().message.c_str());
  const auto context = security::tls_context::make(*mine);
  if (!context) return state.SkipWithError(context.error().message.c_str());
  fetch_all(state, *context);
}

BENCHMARK(raw_socket)->Apply(sizes)->UseRealTime();
BENCHMARK(tensor_channel)->Apply(sizes)->UseRealTime();
BENCHMARK(tls_channel)->Apply(sizes)->UseRealTime();

} // namespace
