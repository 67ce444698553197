// One core's TLS: what writing and reading costs a session, without a socket.
//   build/release/bin/tls_throughput
#include "security/certificate_authority.hpp"
#include "security/tls_session.hpp"

#include <benchmark/benchmark.h>

namespace {

using namespace dlrun;
using security::tls_session;

/// Two sessions that have shaken hands.
struct session_pair {
  tls_session client, server;
};

result<tls_session> start(const security::certificate_authority& authority, const char* role,
                          tls_session::side as) {
  const auto mine = authority.issue({"benchmark", role, 0, "here"});
  if (!mine) return tl::unexpected(mine.error());
  const auto context = security::tls_context::make(*mine);
  if (!context) return tl::unexpected(context.error());
  return tls_session::start(**context, as);
}

result<session_pair> connect() {
  const auto authority = security::certificate_authority::make("benchmark");
  if (!authority) return tl::unexpected(authority.error());
  auto client = start(*authority, "worker", tls_session::side::client);
  auto server = start(*authority, "ps_shard", tls_session::side::server);
  if (!client || !server) return tl::unexpected(client ? server.error() : client.error());
  session_pair made{std::move(*client), std::move(*server)};
  std::vector<std::byte> nothing;
  for (auto [from, to] = std::pair(&made.client, &made.server); !from->wire().empty(); std::swap(from, to)) {
    if (auto fed = to->feed(from->wire(), nothing); !fed) return tl::unexpected(fed.error());
    from->sent(from->wire().size());
  }
  return made;
}

void set_bytes(benchmark::State& state) { state.SetBytesProcessed(state.iterations() * state.range(0)); }

void write(benchmark::State& state) {
  auto pair = connect();
  if (!pair) return state.SkipWithError(pair.error().message.c_str());
  const std::vector<std::byte> plaintext(static_cast<std::size_t>(state.range(0)), std::byte{1});
  for (auto _ : state) {
    if (auto done = pair->client.write(plaintext); !done) state.SkipWithError(done.error().message.c_str());
    pair->client.sent(pair->client.wire().size());
  }
  set_bytes(state);
}

/// Writing is not measured.
void read(benchmark::State& state) {
  auto pair = connect();
  if (!pair) return state.SkipWithError(pair.error().message.c_str());
  std::vector<std::byte> plaintext(static_cast<std::size_t>(state.range(0)), std::byte{1});
  for (auto _ : state) {
    state.PauseTiming();
    if (auto done = pair->client.write(plaintext); !done) state.SkipWithError(done.error().message.c_str());
    state.ResumeTiming();
    auto wire = pair->client.wire();
    if (const auto got = pair->server.read(wire, plaintext); !got || *got != plaintext.size())
      state.SkipWithError("not all was read");
    pair->client.sent(pair->client.wire().size());
  }
  set_bytes(state);
}

BENCHMARK(write)->Arg(16 << 10)->Arg(1 << 20);
BENCHMARK(read)->Arg(16 << 10)->Arg(1 << 20);

} // namespace
