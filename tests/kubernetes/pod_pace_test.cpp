// How soon, and how often, pods are made.
#include "tests/kubernetes/pod_plan_fixture.hpp"

#include <algorithm>
#include <gmock/gmock.h>
#include <utility>

namespace dlrun::kubernetes {
namespace {

using test::pod;
using test::pod_plan_test;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using namespace std::chrono_literals;

TEST_F(pod_plan_test, makes_pods_of_a_slot_less_and_less_often_until_its_host_was_sound) {
  list({});
  std::vector<std::chrono::seconds> pauses;
  std::uint32_t made = 0;
  for (auto last = now; pauses.size() < 9; now += 1s) {
    next();
    std::erase_if(actions, [](const auto& one) { return std::holds_alternative<delete_pod>(one); });
    if (actions.empty()) continue;
    pauses.push_back(std::chrono::duration_cast<std::chrono::seconds>(now - std::exchange(last, now)));
    make(pod(0, ++made, pod_phase::failed));
  }
  EXPECT_THAT(pauses, ElementsAre(0s, 1s, 1s, 2s, 4s, 8s, 16s, 32s, 60s));
  now += 1min;
  next();
  make(pod(0, ++made));
  join(pod(0, made));
  next();
  now += 60s;
  next();
  plan.on_news(pod(0, made, pod_phase::failed));
  EXPECT_THAT(next(), SizeIs(1)) << "at once";
}

/// Each pod of slot 0 joins, and is lost in that way a second later. @returns the pauses until the
/// next one is made, without what the plan waits before it gives a pod up
class lost_again : public pod_plan_test {
protected:
  std::vector<std::chrono::milliseconds> pauses(const std::function<void(pod_record)>& take_away) {
    list({});
    next();
    make(pod(0, 1));
    std::vector<std::chrono::milliseconds> all;
    for (std::uint32_t last = 1; last < 6; ++last) {
      join(pod(0, last));
      next();
      now += 1s;
      take_away(pod(0, last));
      lose(0);
      const auto begin = now;
      while (!makes(last + 1)) now += 100ms;
      all.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(now - begin));
      make(pod(0, last + 1));
    }
    return all;
  }
  bool makes(std::uint32_t incarnation) {
    const auto all = next();
    return std::ranges::find(all, fmt::format("+0-{}", incarnation)) != all.end();
  }
};

TEST_F(lost_again, is_a_pod_that_is_deleted_and_the_next_one_is_made_at_once) {
  EXPECT_THAT(pauses([this](auto one) {
                one.is_going = true;
                plan.on_news(one);
              }),
              Each(0ms));
}

TEST_F(lost_again, is_a_pod_that_is_gone_before_it_was_told_to_go) {
  EXPECT_THAT(pauses([this](const auto& one) { plan.on_news(pod_gone{one.uid}); }), Each(0ms));
}

TEST_F(lost_again, is_a_pod_that_a_new_list_lacks) {
  EXPECT_THAT(pauses([this](const auto&) {
                now += 100ms;
                list({});
              }),
              Each(0ms));
}

TEST_F(lost_again, is_a_pod_that_was_evicted) {
  EXPECT_THAT(pauses([this](auto one) {
                one.phase = pod_phase::failed;
                one.runs = false;
                one.is_disrupted = true;
                plan.on_news(one);
              }),
              Each(0ms));
}

TEST_F(lost_again, is_a_pod_whose_node_is_lost) {
  EXPECT_THAT(pauses([](const auto&) {}), Each(2s));
}

TEST_F(lost_again, is_no_pod_that_failed_by_itself) {
  EXPECT_THAT(pauses([this](auto one) {
                one.phase = pod_phase::failed;
                one.runs = false;
                plan.on_news(one);
              }),
              ElementsAre(0ms, 0ms, 1s, 3s, 7s));
}

TEST_F(lost_again, is_made_less_and_less_often_where_the_server_refuses_it) {
  list({});
  next();
  make(pod(0, 1));
  join(pod(0, 1));
  next();
  plan.on_news(pod_gone{"u0-1"});
  std::vector<std::chrono::milliseconds> all;
  for (auto last = now; all.size() < 6; now += 100ms) {
    if (!makes(2)) continue;
    all.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(now - std::exchange(last, now)));
    plan.on_not_created({0, 2, ""}, refusal_kind::no_room, now);
  }
  EXPECT_THAT(all, ElementsAre(0ms, 1s, 1s, 2s, 4s, 8s));
}

TEST_F(pod_plan_test, a_slot_that_is_refused_waits_and_others_do_not) {
  count = 2;
  list({});
  EXPECT_THAT(next(), ElementsAre("+0-1", "+1-1"));
  plan.on_not_created({0, 1, ""}, refusal_kind::no_room, now);
  EXPECT_THAT(next(), ElementsAre("+1-1"));
  now += 1s;
  EXPECT_THAT(next(), ElementsAre("+0-1", "+1-1"));
  plan.on_name_taken({1, 1, ""});
  EXPECT_THAT(next(), testing::Contains("+1-2"));
}

/// An outage says nothing of a slot: when it is over nobody waits for a minute.
TEST_F(pod_plan_test, an_api_that_is_away_for_long_is_asked_every_second) {
  list({});
  for (int i = 0; i < 600; ++i, now += 1s) {
    ASSERT_THAT(next(), ElementsAre("+0-1"));
    plan.on_not_created({0, 1, ""}, refusal_kind::no_answer, now);
    ASSERT_THAT(next(), IsEmpty());
  }
}

TEST_F(pod_plan_test, makes_no_more_than_a_hundred_at_once_and_fifty_a_second) {
  count = 999;
  list({});
  const auto make_all = [this] {
    const auto all = next();
    for (const auto& one : actions) {
      const auto& what = std::get<create_pod>(one);
      make(pod(what.slot.index, what.incarnation));
    }
    return all.size();
  };
  EXPECT_EQ(make_all(), 100U);
  EXPECT_EQ(make_all(), 0U);
  now += 1s;
  EXPECT_EQ(make_all(), 50U);
  now += 10s;
  EXPECT_EQ(make_all(), 100U);
}

} // namespace
} // namespace dlrun::kubernetes
