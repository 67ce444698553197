// Random failures against a supervisor and a simple oracle that knows nothing of its workings.
#include "tests/actors/common/supervisor_script.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <random>
#include <set>

namespace dlrun::supervision::testing {
namespace {

/// A child as the world sees it, and whether the rules say it should run.
struct process {
  child_spec spec;
  generation number = 0;
  enum class state { none, starting, up, told } now = state::none;
  bool should_run = true;
  bool doomed = false; ///< It lives and has to go.
};

/// Plays children of a supervisor: carries out its actions, fails children at random, and checks
/// each action.
class world {
public:
  explicit world(std::uint64_t seed)
      : random_(seed) {
    supervisor_options options;
    options.intensity = 1'000'000;
    std::vector<child_spec> specs;
    const auto count = 1 + random_() % 6;
    for (std::uint64_t i = 0; i < count; ++i) {
      child_spec spec;
      spec.id = std::string(1, static_cast<char>('a' + i));
      spec.restart = static_cast<restart_type>(random_() % 2);
      spec.patience = milliseconds{random_() % 2 ? 100 : 1000};
      specs.push_back(spec);
      processes_.push_back({spec, 0, process::state::none, true, false});
    }
    core_.emplace(supervisor::create(options, specs).value());
  }

  void run() {
    carry_out(core_->start(now_));
    settle(false); // a first start that fails would end it
    for (int i = 0; i < 40; ++i) {
      if (random_() % 3 == 0) settle(random_() % 2 == 0);
      fail_one();
    }
    settle(false);
    for (const auto& p : processes_) ASSERT_EQ(p.now == process::state::up, p.should_run) << p.spec.id;
    stop();
  }

private:
  /// Answers everything that is open, in random order, until nothing is.
  void settle(bool starts_may_fail) {
    while (true) {
      std::vector<process*> open;
      for (auto& p : processes_)
        if (p.now == process::state::starting || p.now == process::state::told) open.push_back(&p);
      if (open.empty()) return;
      answer(*open[random_() % open.size()], starts_may_fail);
    }
  }

  void answer(process& p, bool starts_may_fail) {
    const auto number = p.number;
    if (p.now == process::state::told) {
      if (random_() % 4 == 0) {
        now_ += milliseconds{150};
        carry_out(core_->tick(now_));
      }
      gone(p);
      carry_out(core_->child_exited(p.spec.id, number, {"gone"}, now_));
    } else if (starts_may_fail && !p.doomed && random_() % 4 == 0) {
      end_by_itself(p);
      carry_out(core_->child_start_failed(p.spec.id, number, "no", now_));
    } else {
      p.now = process::state::up;
      carry_out(core_->child_started(p.spec.id, number, now_));
    }
    if (random_() % 3 == 0) carry_out(core_->child_exited(p.spec.id, number - 1, {"late"}, now_));
  }

  void fail_one() {
    auto& p = processes_[random_() % processes_.size()];
    if (p.now != process::state::up) return;
    end_by_itself(p);
    carry_out(core_->child_exited(p.spec.id, p.number, {"random"}, now_));
  }

  static void gone(process& p) {
    p.now = process::state::none;
    p.doomed = false;
  }

  /// The oracle: what the rules of OTP say should run after this end.
  static void end_by_itself(process& p) {
    p.now = process::state::none;
    if (!std::exchange(p.doomed, false)) p.should_run = p.spec.restart == restart_type::permanent;
  }

  void carry_out(const actions& orders) {
    for (const auto& order : orders) {
      if (const auto* start = std::get_if<start_child>(&order)) check_start(*start);
      if (const auto* stop = std::get_if<stop_child>(&order)) check_stop(*stop);
      stopped_ = stopped_ || std::holds_alternative<supervisor_stopped>(order);
      ASSERT_FALSE(std::holds_alternative<escalate>(order)) << std::get<escalate>(order).reason;
    }
  }

  void check_start(const start_child& order) {
    auto& p = of(order.id);
    EXPECT_EQ(p.now, process::state::none) << "two live starts of " << p.spec.id;
    EXPECT_TRUE(p.should_run) << p.spec.id << " is started although it should not run";
    EXPECT_FALSE(stopping_) << p.spec.id << " is started during shutdown";
    EXPECT_GT(order.number, p.number);
    p.number = order.number;
    p.now = process::state::starting;
  }

  void check_stop(const stop_child& order) {
    auto& p = of(order.id);
    EXPECT_EQ(order.number, p.number);
    EXPECT_NE(p.now, process::state::none) << p.spec.id << " is stopped though it does not live";
    EXPECT_TRUE(stopping_ || p.doomed) << p.spec.id << " is stopped for no reason";
    for (const auto& other : processes_) {
      if (&other > &p && (stopping_ || other.doomed)) {
        EXPECT_EQ(other.now, process::state::none) << p.spec.id << " is stopped before " << other.spec.id;
      }
    }
    p.now = process::state::told;
  }

  void stop() {
    fail_one(); // leaves something in the middle
    stopping_ = true;
    auto orders = core_->shutdown(now_);
    carry_out(orders);
    for (auto& p : processes_) p.doomed = p.now != process::state::none;
    settle(false);
    EXPECT_TRUE(stopped_);
    for (const auto& p : processes_) EXPECT_EQ(p.now, process::state::none);
  }

  process& of(const std::string& id) { return processes_[static_cast<std::size_t>(id.front() - 'a')]; }

  std::mt19937_64 random_;
  std::vector<process> processes_;
  std::optional<supervisor> core_;
  time_point now_{std::chrono::hours(1)};
  bool stopping_ = false;
  bool stopped_ = false; ///< as its last action says
};

TEST(supervisor_property, what_should_run_runs_and_stops_are_in_reverse_order) {
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    world(seed).run();
    if (::testing::Test::HasFailure()) return;
  }
}

} // namespace
} // namespace dlrun::supervision::testing
