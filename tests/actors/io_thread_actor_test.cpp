// Where an io_thread_actor runs.
#include "actors/common/io_thread_actor.hpp"

#include "actors/common/actor_config.hpp"

#include <caf/all.hpp>
#include <gtest/gtest.h>
#include <thread>

namespace dlrun::common {
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
  actor_config config{2};
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

} // namespace
} // namespace dlrun::common
