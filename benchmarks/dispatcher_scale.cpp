// What 1,000 workers cost the data dispatcher's core: processor time and memory. Time is simulated,
// in the periods of the roles: each worker and PS shard reports every 100 ms, the dispatcher ticks
// every 50 ms.
//   build/release/bin/dispatcher_scale
#include "actors/data_dispatcher/data_dispatcher_core.hpp"

#include <benchmark/benchmark.h>
#include <malloc.h>
#include <optional>

namespace {

using namespace dlrun;
using data_dispatcher::data_dispatcher_actions;
using std::chrono::milliseconds;

constexpr std::uint32_t ps_shards = 8;
constexpr std::uint64_t steps_per_second = 100;
constexpr milliseconds report_period{100}, tick_period{50};

std::size_t heap_bytes() { return ::mallinfo2().uordblks; }

/// A job of synchronous training in full swing: workers of different speed that take their leases.
class cluster {
public:
  explicit cluster(std::uint32_t workers)
      : core_(config(workers))
      , workers_(workers) {
    for (std::uint32_t id = 0; id < workers; ++id) join(id);
    for (int i = 0; i < 20; ++i) live(report_period); // speeds are measured, leases have settled
  }

  /// Everything that reaches the core in this time.
  void live(milliseconds time) {
    for (auto passed = milliseconds(0); passed < time; passed += tick_period) {
      now_ += tick_period;
      take(core_.on_tick(now_));
      if (++ticks_ % static_cast<std::uint64_t>(report_period / tick_period) == 0) report();
    }
  }

  void join(std::uint32_t id) { take(core_.on_worker_joined({id}, {++workers_[id].incarnation}, now_)); }
  void lose(std::uint32_t id) { take(core_.on_worker_lost({id}, {workers_[id].incarnation}, now_)); }
  std::uint64_t leases() const { return leases_; }
  std::uint64_t redispatched() const { return redispatched_; }

private:
  struct worker {
    std::uint64_t incarnation = 0, slots_computed = 0, compute_us = 0;
    protocol::lease lease;
  };

  static data_dispatcher::data_dispatcher_core_config config(std::uint32_t workers) {
    data_dispatcher::data_dispatcher_core_config made;
    made.self = {1};
    made.workers = workers;
    made.ps_shards = ps_shards;
    made.steps = 1'000'000'000;
    made.microbatches_per_step = 4 * workers;
    made.durability = protocol::durability::every_step;
    made.sizes.slots_of = [slots = made.microbatches_per_step](step_id) { return slots; };
    made.sizes.records_of = [](step_id, slot_id) { return std::uint64_t{32}; };
    return made;
  }

  void take(const data_dispatcher_actions& actions) {
    for (const auto& action : actions) {
      if (const auto* sent = std::get_if<data_dispatcher::to_worker>(&action)) {
        if (const auto* lease = std::get_if<protocol::lease>(&sent->message)) {
          workers_[sent->to.value].lease = *lease;
          ++leases_;
        }
      } else if (const auto* write = std::get_if<data_dispatcher::journal_course>(&action)) {
        take(core_.on_journaled(write->id, now_));
      } else if (const auto* told = std::get_if<data_dispatcher::to_coordinator>(&action)) {
        redispatched_ += std::holds_alternative<protocol::slots_redispatched>(*told) ? 1 : 0;
      }
    }
  }

  void report() {
    for (std::uint32_t id = 0; id < workers_.size(); ++id) report_worker(id);
    version_ += steps_per_second * static_cast<std::uint64_t>(report_period.count()) / 1000;
    for (std::uint32_t shard = 0; shard < ps_shards; ++shard) report_shard(shard);
  }

  void report_worker(std::uint32_t id) {
    auto& one = workers_[id];
    const auto slots = (one.lease.slots.end.value - one.lease.slots.begin.value) * 10;
    one.slots_computed += slots;
    one.compute_us += slots * (2000 + id % 7 * 20);
    protocol::worker_status status;
    status.worker = {id};
    status.self = {{one.incarnation}, 0};
    status.lease_of = one.lease.dispatcher;
    status.lease_sequence = one.lease.sequence;
    status.slots_computed = one.slots_computed;
    status.compute_us = one.compute_us;
    take(core_.on_worker_status(status, now_));
  }

  void report_shard(std::uint32_t shard) {
    protocol::shard_status status;
    status.shard = {shard};
    status.self = {{1}, 0};
    status.sequence = version_;
    status.applied = status.committed = {version_};
    take(core_.on_shard_status(status, now_));
  }

  data_dispatcher::data_dispatcher_core core_;
  std::vector<worker> workers_;
  protocol::time_point now_{std::chrono::hours(1)};
  std::uint64_t ticks_ = 0, version_ = 0, leases_ = 0, redispatched_ = 0;
};

/// One second of a job's life.
void steady(benchmark::State& state) {
  const auto workers = static_cast<std::uint32_t>(state.range(0));
  const auto before = heap_bytes();
  std::optional<cluster> job(std::in_place, workers);
  const auto held = heap_bytes() - before;
  for (auto _ : state) job->live(milliseconds(1000));
  state.counters["core_share"] = benchmark::Counter(
      static_cast<double>(state.iterations()), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["bytes_a_worker"] = static_cast<double>(held) / workers;
}

/// From the loss of one worker of many until its slots are with others and it is back: the
/// processor time of it.
void one_lost(benchmark::State& state) {
  const auto workers = static_cast<std::uint32_t>(state.range(0));
  cluster job(workers);
  std::uint32_t victim = 0;
  for (auto _ : state) {
    job.lose(victim);
    job.live(report_period);
    job.join(victim);
    job.live(report_period);
    victim = (victim + 1) % workers;
  }
  if (job.redispatched() != static_cast<std::uint64_t>(state.iterations()))
    state.SkipWithError("slots are with nobody");
  state.counters["leases"] = static_cast<double>(job.leases()) / static_cast<double>(state.iterations());
}

/// A tenth of the cluster goes at once and comes back: a rack that is preempted.
void rack_lost(benchmark::State& state) {
  const auto workers = static_cast<std::uint32_t>(state.range(0));
  cluster job(workers);
  for (auto _ : state) {
    for (std::uint32_t id = 0; id < workers / 10; ++id) job.lose(id);
    job.live(2 * report_period);
    for (std::uint32_t id = 0; id < workers / 10; ++id) job.join(id);
    job.live(report_period);
  }
  if (job.redispatched() != static_cast<std::uint64_t>(state.iterations()) * (workers / 10))
    state.SkipWithError("slots are with nobody");
}

BENCHMARK(steady)->Arg(10)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);
BENCHMARK(one_lost)->Arg(10)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);
BENCHMARK(rack_lost)->Arg(10)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);

} // namespace
