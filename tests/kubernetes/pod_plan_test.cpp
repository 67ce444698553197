#include "tests/kubernetes/pod_plan_fixture.hpp"

#include <gmock/gmock.h>

namespace dlrun::kubernetes {
namespace {

using test::changed;
using test::pod;
using test::pod_plan_test;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using namespace std::chrono_literals;

TEST_F(pod_plan_test, does_nothing_before_it_knows_what_there_is_and_what_is_wanted) {
  EXPECT_THAT(next(), IsEmpty());
  list({});
  EXPECT_THAT(plan.next({"", 3}, hosts, now), IsEmpty());
  EXPECT_THAT(next(), ElementsAre("+0-1"));
}

TEST_F(pod_plan_test, makes_what_is_missing_once) {
  count = 3;
  list({pod(1, 4)});
  EXPECT_THAT(next(), ElementsAre("+0-1", "+2-1"));
  plan.on_created({0, 1, ""}, pod(0, 1, pod_phase::pending), now);
  plan.on_created({2, 1, ""}, pod(2, 1, pod_phase::pending), now);
  now += 1min;
  EXPECT_THAT(next(), IsEmpty()) << "the watch may be late";
  list({pod(1, 4), pod(2, 1)});
  EXPECT_THAT(next(), ElementsAre("+0-2")) << "it was there before the list, and is not in it";
}

TEST_F(pod_plan_test, a_list_that_had_begun_before_a_pod_was_made_says_nothing_of_it) {
  list({});
  next();
  const auto before = now;
  now += 10ms;
  plan.on_created({0, 1, ""}, pod(0, 1), now);
  plan.on_news(pod_listing{{}, before});
  EXPECT_THAT(next(), IsEmpty());
}

TEST_F(pod_plan_test, what_was_told_before_the_answer_came_counts_once) {
  list({});
  next();
  plan.on_news(pod(0, 1));
  plan.on_news(pod_gone{"u0-1"});
  EXPECT_THAT(next(), ElementsAre("+0-2"));
  EXPECT_THAT(why(), HasSubstr("job-hosts-0-1 is gone"));
}

TEST_F(pod_plan_test, adopts_what_it_finds_and_leaves_what_is_anothers) {
  list({pod(0, 7), changed(pod(1, 1), [](auto& one) { one.owner = "other"; })});
  EXPECT_THAT(next(), IsEmpty());
  count = 2;
  EXPECT_THAT(next(), ElementsAre("+1-2")) << "the name is taken";
}

TEST_F(pod_plan_test, replaces_a_pod_that_is_deleted_while_it_still_runs) {
  list({});
  join(pod(0, 1));
  EXPECT_THAT(next(), IsEmpty());
  plan.on_news(changed(pod(0, 1), [](auto& one) { one.is_going = true; }));
  EXPECT_THAT(next(), ElementsAre("+0-2"));
  EXPECT_THAT(why(), HasSubstr("is being deleted"));
  make(pod(0, 2));
  EXPECT_THAT(next(), IsEmpty()) << "it goes already";
}

TEST_F(pod_plan_test, replaces_a_pod_that_failed_and_deletes_it_then) {
  list({changed(pod(0, 1, pod_phase::failed), [](auto& one) { one.reason = "Evicted"; })});
  EXPECT_THAT(next(), ElementsAre("+0-2"));
  EXPECT_THAT(why(), HasSubstr("has failed: Evicted"));
  make(pod(0, 2));
  EXPECT_THAT(next(), ElementsAre("-u0-1"));
  EXPECT_THAT(next(), IsEmpty()) << "it was asked for";
  now += 10s;
  EXPECT_THAT(next(), ElementsAre("-u0-1")) << "and had no effect";
}

TEST_F(pod_plan_test, of_pods_that_ended_the_newest_stays_to_tell_why) {
  list({pod(0, 1, pod_phase::failed), pod(0, 2, pod_phase::failed), pod(0, 3, pod_phase::failed)});
  EXPECT_THAT(next(), ElementsAre("-u0-1", "-u0-2", "+0-4"));
}

TEST_F(pod_plan_test, waits_for_the_end_of_the_job_where_a_host_heard_of_it) {
  list({pod(0, 1, pod_phase::succeeded)});
  EXPECT_THAT(next(), IsEmpty());
  now += 14s;
  EXPECT_THAT(next(), IsEmpty());
  now += 1s;
  EXPECT_THAT(next(), ElementsAre("+0-2")) << "it was another job's end, or another root's";
}

TEST_F(pod_plan_test, deletes_what_is_not_wanted_any_more) {
  list({pod(0, 1), pod(1, 1), pod(2, 3)});
  EXPECT_THAT(next(), ElementsAre("-u1-1", "-u2-3"));
  EXPECT_THAT(why(), HasSubstr("1 pods"));
}

TEST_F(pod_plan_test, keeps_the_pods_of_both_groups_those_for_ps_shards_first) {
  ps_count = 2;
  list({pod(0, 1)});
  EXPECT_THAT(next(), ElementsAre("+ps0-1", "+ps1-1"));
  for (const std::uint32_t index : {0U, 1U})
    make(changed(pod(index, 1), [&](auto& one) {
      one.slot = {pod_group::ps, index};
      one.uid += "-ps";
    }));
  EXPECT_THAT(next(), IsEmpty());
  EXPECT_TRUE(plan.is_whole({test::owner, count, ps_count}));
  ps_count = 0;
  EXPECT_THAT(next(), ElementsAre("-u0-1-ps", "-u1-1-ps"));
  EXPECT_FALSE(plan.is_whole({test::owner, count, ps_count}));
}

TEST_F(pod_plan_test, of_two_pods_of_a_slot_the_newer_one_stays) {
  list({pod(0, 1), pod(0, 2, pod_phase::pending)});
  EXPECT_THAT(next(), ElementsAre("-u0-1"));
}

class given_up : public pod_plan_test {
protected:
  given_up() {
    list({});
    join(pod(0, 1));
    next();
    now += 10s;
    next();
    lose(0);
    EXPECT_THAT(next(), IsEmpty());
  }
};

TEST_F(given_up, is_a_pod_whose_host_the_job_gave_up_and_that_says_that_all_is_well) {
  now += 1900ms;
  EXPECT_THAT(next(), IsEmpty());
  now += 100ms;
  EXPECT_THAT(next(), ElementsAre("+0-2"));
  EXPECT_THAT(why(), HasSubstr("given up the host of job-hosts-0-1"));
  plan.on_created({0, 2, ""}, pod(0, 2, pod_phase::pending), now);
  EXPECT_THAT(next(), ElementsAre("-u0-1")) << "only now, and before the watch has told of its successor";
}

TEST_F(given_up, is_no_pod_whose_host_comes_back_before_another_one_is_made) {
  now += 2s;
  EXPECT_THAT(next(), ElementsAre("+0-2"));
  plan.on_not_created({0, 2, ""}, refusal_kind::no_answer, now);
  (*hosts)[0].standing = host_standing::joining;
  now += 2s;
  EXPECT_THAT(next(), IsEmpty());
}

TEST_F(given_up, is_not_yet_a_pod_whose_container_is_started_again) {
  plan.on_news(changed(pod(0, 1), [](auto& one) { one.runs = false; }));
  now += 14s;
  EXPECT_THAT(next(), IsEmpty());
  plan.on_news(changed(pod(0, 1), [](auto& one) { one.restarts = 1; }));
  EXPECT_THAT(next(), IsEmpty());
  now += 1s;
  EXPECT_THAT(next(), ElementsAre("+0-2"));
  EXPECT_THAT(why(), HasSubstr("has not joined again"));
}

TEST_F(given_up, is_again_a_pod_that_was_restarted_before_it_joined) {
  plan.on_news(changed(pod(0, 1), [](auto& one) { one.restarts = 1; }));
  (*hosts)[0].standing = host_standing::there;
  next();
  lose(0);
  next();
  now += 2s;
  EXPECT_THAT(next(), ElementsAre("+0-2")) << "that restart was before";
}

TEST_F(given_up, is_no_pod_while_the_job_says_nothing) {
  hosts.reset();
  now += 1h;
  EXPECT_THAT(next(), IsEmpty());
}

TEST_F(given_up, is_no_successor_while_the_earlier_pod_is_in_its_place) {
  now += 2s;
  next();
  make(pod(0, 2));
  EXPECT_THAT(next(), ElementsAre("-u0-1"));
  (*hosts)[0] = {host_standing::there, pod(0, 1).address};
  now += 1min;
  next();
  lose(0);
  now += 1min;
  next();
  now += 1min;
  EXPECT_THAT(next(), Each(HasSubstr("-"))) << "it never joined";
  for (const auto& one : actions) EXPECT_TRUE(std::holds_alternative<delete_pod>(one));
}

TEST_F(pod_plan_test, gives_a_pod_up_whose_container_never_runs_for_long) {
  const auto held = [](std::uint32_t restarts) {
    return changed(pod(0, 1), [&](auto& one) {
      one.is_held_back = true;
      one.runs = false;
      one.restarts = restarts;
    });
  };
  list({held(3)});
  EXPECT_THAT(next(), IsEmpty());
  plan.on_news(held(4));
  EXPECT_THAT(next(), ElementsAre("+0-2"));
  EXPECT_THAT(why(), HasSubstr("5 times in vain"));
}

/// A root that waits for all its hosts would wait for ever.
TEST_F(pod_plan_test, gives_such_a_pod_up_too_while_the_job_waits_for_its_pods) {
  hosts.reset();
  list({changed(pod(0, 1), [](auto& one) {
    one.is_held_back = true;
    one.runs = false;
    one.restarts = 4;
  })});
  EXPECT_THAT(next(), ElementsAre("+0-2"));
  EXPECT_THAT(why(), HasSubstr("5 times in vain"));
}

constexpr std::uint64_t one_gib = std::uint64_t{1} << 30;

/// Of a pod of 4 GiB, whose container was killed for memory, and waits or runs again.
class out_of_memory : public pod_plan_test {
protected:
  void allow(std::uint64_t max) {
    plan = pod_plan{{.memory_max = max}};
    list({});
    join(ended(0, false));
    next();
  }
  static pod_record ended(std::uint32_t ends, bool is_out_of_memory = true) {
    return changed(pod(0, 1), [&](auto& one) {
      one.memory = 4 * one_gib;
      one.runs = ends == 0;
      one.ends = ends;
      one.restarts = ends == 0 ? 0 : ends - 1;
      one.is_out_of_memory = is_out_of_memory;
    });
  }
  void end(std::uint32_t ends, bool is_out_of_memory = true) {
    plan.on_news(ended(ends, is_out_of_memory));
    lose(0);
  }
  void come_back() {
    (*hosts)[0].standing = host_standing::there;
    EXPECT_THAT(next(), IsEmpty());
  }
};

TEST_F(out_of_memory, is_left_to_the_kubelet_the_first_time_and_more_memory_the_second) {
  allow(100 * one_gib);
  end(1);
  EXPECT_THAT(next(), IsEmpty());
  come_back();
  end(2);
  EXPECT_THAT(next(), ElementsAre("+0-2"));
  EXPECT_EQ(std::get<create_pod>(actions.front()).memory, 6 * one_gib);
  EXPECT_THAT(why(), HasSubstr("out of memory twice, with 4096Mi: its next pod has 6144Mi"));
  EXPECT_FALSE(plan.end());
}

TEST_F(out_of_memory, is_none_where_the_container_ended_otherwise) {
  allow(100 * one_gib);
  end(1);
  next();
  come_back();
  end(2, false);
  EXPECT_THAT(next(), IsEmpty());
  now += 15s;
  EXPECT_THAT(next(), ElementsAre("+0-2"));
  EXPECT_EQ(std::get<create_pod>(actions.front()).memory, 4 * one_gib);
}

TEST_F(out_of_memory, once_an_hour_is_left_to_the_kubelet) {
  allow(100 * one_gib);
  for (std::uint32_t i = 1; i < 5; ++i, now += 61min) {
    end(i);
    EXPECT_THAT(next(), IsEmpty()) << i;
    come_back();
  }
}

TEST_F(out_of_memory, before_the_job_has_begun_is_the_same) {
  allow(5 * one_gib);
  hosts.reset();
  for (const std::uint32_t ends : {1U, 2U}) {
    plan.on_news(ended(ends));
    EXPECT_THAT(next(), SizeIs(ends - 1));
  }
  EXPECT_EQ(std::get<create_pod>(actions.front()).memory, 5 * one_gib) << "no more than is allowed";
}

TEST_F(out_of_memory, ends_the_job_where_a_pod_may_have_no_more) {
  for (const auto& [max, words] : {std::pair{std::uint64_t{0}, "without --memory-max no pod gets more"},
                                   {4 * one_gib, "no pod gets more than --memory-max 4096Mi"}}) {
    allow(max);
    end(1);
    next();
    come_back();
    end(2);
    EXPECT_THAT(next(), IsEmpty());
    ASSERT_TRUE(plan.end());
    EXPECT_EQ(plan.end()->exit_code, 1);
    EXPECT_THAT(plan.end()->why, HasSubstr("job-hosts-0-1 was out of memory twice, with 4096Mi"));
    EXPECT_THAT(plan.end()->why, HasSubstr(words));
  }
}

TEST_F(pod_plan_test, gives_later_pods_of_a_slot_the_memory_that_the_last_one_had) {
  list({changed(pod(0, 3, pod_phase::failed), [](auto& one) { one.memory = 6 * one_gib; })});
  EXPECT_THAT(next(), ElementsAre("+0-4"));
  EXPECT_EQ(std::get<create_pod>(actions.front()).memory, 6 * one_gib);
}

TEST_F(pod_plan_test, makes_another_pod_that_keeps_off_a_node_which_computes_other_bits) {
  hosts.reset(); // the job waits for it
  count = 1;
  list({pod(0, 1)});
  ASSERT_THAT(next(), IsEmpty());
  plan.on_news(changed(pod(0, 1), [](auto& one) {
    one.node = "node7";
    one.has_other_bits = true;
    one.runs = false;
  }));
  ASSERT_THAT(next(), ElementsAre("+0-2"));
  EXPECT_EQ(why(), "node node7, on which job-hosts-0-1 is, would compute other bits than the job began with");
  EXPECT_THAT(std::get<create_pod>(actions.front()).keep_off, ElementsAre("node7"));
  make(changed(pod(0, 2), [](auto& one) { one.node = "node8"; }));
  EXPECT_THAT(next(), ElementsAre("-u0-1"));
  count = 2;
  ASSERT_THAT(next(), ElementsAre("+1-1"));
  EXPECT_THAT(std::get<create_pod>(actions.front()).keep_off, ElementsAre("node7")) << "so do all later ones";
}

} // namespace
} // namespace dlrun::kubernetes
