// What 999 other hosts cost the root's agent on its own thread: a tick, ten times a second, and
// what it shows to who waits for hosts, behind each message of a host.
//   build/release/bin/root_turns
#include "actors/agent/hosts_wait.hpp"

#include <benchmark/benchmark.h>
#include <cstdlib>
#include <fmt/format.h>

namespace {

using namespace dlrun;

constexpr std::uint32_t hosts = 999;
constexpr std::uint64_t root = 5;

/// All of them are there.
class many_hosts {
public:
  many_hosts()
      : roles_{config()} {
    for (std::uint32_t i = 0; i < hosts; ++i) join(i);
  }

  agent::hosted_roles& roles() { return roles_; }
  protocol::time_point now() const { return now_; }

private:
  static agent::hosted_roles_config config() {
    agent::hosted_roles_config made;
    made.root = "control";
    made.root_process = root;
    made.joining.root = made.root;
    made.joining.hosts_min = hosts + 1;
    made.joining.way_to_join = "hosts join at 10.0.0.1:7700";
    return made;
  }
  void join(std::uint32_t number) {
    const auto name = fmt::format("job-hosts-{}", number);
    agent::hosted_actions ignored;
    std::string refused;
    const auto let_in =
        roles_.admit({name, fmt::format("10.0.{}.{}", number / 250, number % 250 + 2), 4}, now_, ignored);
    protocol::host_joined joined;
    joined.host = name;
    joined.boot = number + 1;
    joined.root = root;
    joined.cpus = 4;
    if (let_in) roles_.on_joined(joined, now_, refused);
    if (!let_in || !refused.empty()) std::abort();
  }

  protocol::time_point now_{std::chrono::hours{1}};
  agent::hosted_roles roles_;
};

void tick(benchmark::State& state) {
  many_hosts all;
  for (auto _ : state) benchmark::DoNotOptimize(all.roles().tick(all.now()));
}
BENCHMARK(tick)->Unit(benchmark::kMicrosecond);

/// @param begun whether the job has, and nobody waits any more
void show(benchmark::State& state, bool begun) {
  many_hosts all;
  agent::hosts_wait waiting;
  if (begun) waiting.note_begun();
  for (auto _ : state) waiting.show(all.roles());
}
BENCHMARK_CAPTURE(show, waits, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(show, trains, true)->Unit(benchmark::kMicrosecond);

} // namespace
