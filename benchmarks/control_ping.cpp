// How long a control message and its answer take between two processes, alone and while the tensor
// channel is busy in both: a heartbeat over the control link, as roles send it, beside a thread a
// process that copies parameters out of shared memory without a pause.
//   build/release/bin/control_ping
#include "actors/common/actor_config.hpp"
#include "actors/link/io_thread_actor.hpp"
#include "actors/link/process_link.hpp"
#include "tests/actors/quiet_agent.hpp"
#include "transport/parameter_segment.hpp"

#include <algorithm>
#include <atomic>
#include <benchmark/benchmark.h>
#include <cstdlib>
#include <future>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace dlrun;

constexpr std::size_t bulk_floats = (std::size_t{64} << 20) / sizeof(float);
constexpr auto pause = std::chrono::microseconds(500);
constexpr auto patience = std::chrono::seconds(10);
constexpr link::peer_id agent_peer{{protocol::role_kind::agent, 0}, {1}};
constexpr link::peer_id worker_peer{{protocol::role_kind::worker, 0}, {1}};
constexpr std::size_t address_bytes_max = 64;
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

struct echo_holder {
  static inline const char* name = "echo";
};
using echo_actor = link::io_thread_actor<echo_holder, protocol::agent_actor>;

/// Answers heartbeats with their step.
protocol::agent_actor::behavior_type echo(echo_actor*) {
  return test::quiet_agent(
      [](const protocol::heartbeat& beat) {
        return protocol::coordinator_location{{beat.step}, {}};
      },
      [](const protocol::credentials_wanted&) { return protocol::role_credentials{}; });
}

std::unique_ptr<link::process_link> open_link(caf::actor_system& system, const link::peer_id& self) {
  return link::process_link::create(system, {.token = {}, .self = self, .warn = [](const std::string&) {}})
      .value();
}

/// The other process: says its address, learns whether to be busy, and answers until the pipe is
/// closed.
[[noreturn]] void answer(int from, int to) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  common::actor_config config{2};
  caf::actor_system system{config};
  const auto link = open_link(system, agent_peer);
  link->publish(protocol::agent_actor{system.spawn(echo)});
  char address[address_bytes_max] = {};
  std::ranges::copy(link->address(), address);
  if (::write(to, address, sizeof address) != sizeof address) std::_Exit(1);
  char order = 0;
  if (::read(from, &order, 1) != 1) std::_Exit(1);
  std::optional<bulk_copy> bulk;
  if (order == begin_bulk) bulk.emplace();
  (void)!::read(from, &order, 1);
  std::_Exit(0);
}

protocol::agent_actor find(link::process_link& link, const std::string& address) {
  auto found = std::make_shared<std::promise<result<protocol::agent_actor>>>();
  link.connect<protocol::agent_actor>(address, agent_peer,
                                      [found](const auto& who) { found->set_value(who); });
  return found->get_future().get().value();
}

/// Milliseconds of each ping, sorted.
std::vector<double> measure(const std::string& address, bool busy) {
  common::actor_config config{2};
  caf::actor_system system{config};
  const auto link = open_link(system, worker_peer);
  auto ask = caf::make_function_view(find(*link, address), caf::duration{patience});
  std::optional<bulk_copy> bulk;
  if (busy) bulk.emplace();
  std::vector<double> times;
  for (std::uint64_t number = 0; number < pings; ++number) {
    std::this_thread::sleep_for(pause);
    const auto begin = std::chrono::steady_clock::now();
    const auto answered =
        ask(protocol::heartbeat{.role = worker_peer.role, .self = {}, .state = "training", .step = number});
    if (!answered || answered->incarnation.value != number) return {};
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
    char address[address_bytes_max] = {};
    std::vector<double> times;
    if (::read(answers[0], address, sizeof address) == sizeof address && ::write(orders[1], &order, 1) == 1)
      times = measure(address, busy);
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
