// How long a control message and its answer take between two processes, alone and while the tensor
// channel is busy in both: a request over loopback TCP through CAF, as roles send them, beside a
// thread a process that copies parameters out of shared memory without a pause.
//   build/release/bin/control_ping
#include "actors/common/actor_config.hpp"
#include "transport/parameter_segment.hpp"

#include <algorithm>
#include <atomic>
#include <benchmark/benchmark.h>
#include <cstdlib>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace dlrun;
using echo_actor = caf::typed_actor<caf::replies_to<std::uint64_t>::with<std::uint64_t>>;

constexpr std::size_t bulk_floats = (std::size_t{64} << 20) / sizeof(float);
constexpr auto pause = std::chrono::microseconds(500);
constexpr auto patience = std::chrono::seconds(10);
constexpr int pings = 4000;
/// Between the two processes of one benchmark.
constexpr char begin_bulk = 'b';

/// Copies a version again and again while it lives.
class bulk_copy {
public:
  bulk_copy()
      : writer_{transport::parameter_writer::create(bulk_floats).value()}
      , reader_{open()} {
    std::ranges::fill(writer_.begin_write({0}, {0}), 1.0F);
    writer_.publish();
    thread_ = std::jthread([this](const std::stop_token& stop) {
      std::vector<float> to(bulk_floats);
      while (!stop.stop_requested() && reader_.copy({0}, {0}, to)) benchmark::ClobberMemory();
    });
  }

private:
  transport::parameter_reader open() {
    auto mapped = transport::segment::adopt(base::unique_fd{::dup(writer_.shared().fd())},
                                            transport::parameter_segment_bytes(bulk_floats));
    return transport::parameter_reader::open(std::move(mapped.value()), bulk_floats).value();
  }

  transport::parameter_writer writer_;
  transport::parameter_reader reader_;
  std::jthread thread_;
};

echo_actor::behavior_type echo() {
  return {[](std::uint64_t number) { return number; }};
}

/// The other process: says its port, learns whether to be busy, and answers until the pipe is
/// closed.
[[noreturn]] void answer(int from, int to) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  common::actor_config config{2};
  caf::actor_system system{config};
  const auto self = system.spawn(echo);
  const auto port = system.middleman().publish(self, 0, "127.0.0.1");
  if (!port || ::write(to, &*port, sizeof *port) != sizeof *port) std::_Exit(1);
  char order = 0;
  if (::read(from, &order, 1) != 1) std::_Exit(1);
  std::optional<bulk_copy> bulk;
  if (order == begin_bulk) bulk.emplace();
  (void)!::read(from, &order, 1);
  std::_Exit(0);
}

/// Milliseconds of each ping, sorted.
std::vector<double> measure(std::uint16_t port, bool busy) {
  common::actor_config config{2};
  caf::actor_system system{config};
  auto remote = system.middleman().remote_actor<echo_actor>("127.0.0.1", port);
  if (!remote) return {};
  auto ask = caf::make_function_view(*remote, caf::duration{patience});
  std::optional<bulk_copy> bulk;
  if (busy) bulk.emplace();
  std::vector<double> times;
  for (std::uint64_t number = 0; number < pings; ++number) {
    std::this_thread::sleep_for(pause);
    const auto begin = std::chrono::steady_clock::now();
    if (ask(number) != number) return {};
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    times.push_back(took.count());
  }
  std::ranges::sort(times);
  return times;
}

void ping(benchmark::State& state, bool busy) {
  for (auto _ : state) {
    int orders[2], answers[2];
    if (::pipe(orders) != 0 || ::pipe(answers) != 0) return state.SkipWithError("no pipe can be had");
    const auto other = ::fork();
    if (other == 0) {
      ::close(orders[1]);
      answer(orders[0], answers[1]);
    }
    const char order = busy ? begin_bulk : ' ';
    std::uint16_t port = 0;
    std::vector<double> times;
    if (::read(answers[0], &port, sizeof port) == sizeof port && ::write(orders[1], &order, 1) == 1)
      times = measure(port, busy);
    for (const int one : {orders[0], orders[1], answers[0], answers[1]}) ::close(one);
    ::waitpid(other, nullptr, 0);
    if (times.empty()) return state.SkipWithError("the other process does not answer");
    state.counters["p50_ms"] = times[times.size() / 2];
    state.counters["p99_ms"] = times[times.size() * 99 / 100];
    state.counters["worst_ms"] = times.back();
  }
}

BENCHMARK_CAPTURE(ping, alone, false)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ping, beside_bulk, true)->Iterations(1)->Unit(benchmark::kMillisecond);

} // namespace
