// Where an io_thread_actor runs.
#include "actors/link/io_thread_actor.hpp"

#include "actors/common/actor_config.hpp"

#include <caf/all.hpp>
#include <gtest/gtest.h>
#include <thread>

namespace dlrun::link {
namespace {

/// Says whether it runs on the thread of the sockets.
using place_actor = caf::typed_actor<caf::replies_to<std::uint64_t>::with<bool>>;

struct holder {
  static inline const char* name = "place";
};

place_actor::behavior_type tell_place(io_thread_actor<holder, place_actor>* self) {
  return {[self](std::uint64_t) {
    return std::this_thread::get_id() == self->home_system().middleman().backend().thread_id();
  }};
}

bool ask_place(const caf::scoped_actor& self, const place_actor& actor) {
  bool is_there = false;
  self->request(actor, std::chrono::seconds(60), std::uint64_t{0})
      .receive([&](bool answer) { is_there = answer; },
               [](const caf::error& why) { FAIL() << "no answer: " << to_string(why); });
  return is_there;
}

TEST(io_thread_actor, runs_on_the_thread_of_the_sockets_once_it_has_started) {
  common::actor_config config{2};
  caf::actor_system system{config};
  {
    const caf::scoped_actor self{system};
    const auto actor = system.spawn(tell_place);
    constexpr int questions_max = 100'000; // it starts on the scheduler and may find the first ones there
    int asked = 0;
    while (!ask_place(self, actor) && asked < questions_max) ++asked;
    ASSERT_LT(asked, questions_max);
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(ask_place(self, actor)) << i;
  }
}

TEST(io_thread_actor, runs_on_the_scheduler_where_there_are_no_sockets) {
  caf::actor_system_config config;
  caf::actor_system system{config};
  const caf::scoped_actor self{system};
  using adder_actor = caf::typed_actor<caf::replies_to<std::uint64_t>::with<std::uint64_t>>;
  const auto adder = system.spawn([](io_thread_actor<holder, adder_actor>*) -> adder_actor::behavior_type {
    return {[](std::uint64_t number) { return number + 1; }};
  });
  self->request(adder, std::chrono::seconds(60), std::uint64_t{1})
      .receive([](std::uint64_t sum) { EXPECT_EQ(sum, 2U); },
               [](const caf::error& why) { FAIL() << "no answer: " << to_string(why); });
}

/// Adds up; its count belongs to whoever is inside.
using counter_actor =
    caf::typed_actor<caf::reacts_to<std::uint64_t>, caf::replies_to<bool>::with<std::uint64_t>>;
struct counter_holder {
  static inline const char* name = "counter";
  std::uint64_t sum = 0; // not atomic
};

TEST(io_thread_actor, a_thread_of_its_own_may_enter_between_its_handlers) {
  common::actor_config config{2};
  caf::actor_system system{config};
  io_thread_actor<counter_holder, counter_actor>* inside = nullptr;
  const caf::scoped_actor self{system};
  const auto counter = system.spawn(
      [&](io_thread_actor<counter_holder, counter_actor>* actor) -> counter_actor::behavior_type {
        inside = actor;
        return {[actor](std::uint64_t number) { actor->state.sum += number; },
                [actor](bool) { return actor->state.sum; }};
      });
  const auto sum = [&] {
    std::uint64_t found = 0;
    self->request(counter, std::chrono::seconds(60), true)
        .receive([&](std::uint64_t answer) { found = answer; },
                 [](const caf::error& why) { FAIL() << "no answer: " << to_string(why); });
    return found;
  };
  ASSERT_EQ(sum(), 0U); // it has started
  constexpr std::uint64_t rounds = 20'000;
  std::thread other{[&] {
    for (std::uint64_t i = 0; i < rounds; ++i) {
      const std::scoped_lock lock{inside->entry()};
      inside->state.sum += 1;
    }
  }};
  for (std::uint64_t i = 0; i < rounds; ++i) self->send(counter, std::uint64_t{1});
  other.join();
  EXPECT_EQ(sum(), 2 * rounds);
}

TEST(entry_lock, who_waits_outside_lets_others_in) {
  base::entry_lock lock;
  bool was_in = false;
  const std::scoped_lock inside{lock};
  EXPECT_TRUE(lock.is_mine());
  lock.outside([&] {
    EXPECT_FALSE(lock.is_mine());
    std::thread other{[&] {
      const std::scoped_lock inside_too{lock};
      was_in = true;
    }};
    other.join();
  });
  EXPECT_TRUE(was_in);
  EXPECT_TRUE(lock.is_mine());
}

TEST(entry_lock, who_is_not_inside_does_not_come_in_by_waiting) {
  base::entry_lock lock;
  bool was_run = false;
  lock.outside([&] { was_run = true; });
  EXPECT_TRUE(was_run);
  EXPECT_FALSE(lock.is_mine());
}

} // namespace
} // namespace dlrun::link
