// The agent's view of other hosts.
#include "tests/actors/agent/hosted_roles_fixture.hpp"

namespace dlrun::agent::test_hosts {
namespace {

TEST_F(hosted_roles_test, starts_on_its_own_host_what_is_placed_there) {
  const auto here = all_of<start_here>(roles.start({role_kind::coordinator, 0}, first, now));
  ASSERT_EQ(here.size(), 1U);
  EXPECT_EQ(roles.starts().find({role_kind::coordinator, 0}, first), nullptr);
}

TEST_F(hosted_roles_test, what_a_journal_in_the_run_folder_means_is_told_at_the_start) {
  const auto config = [](bool moves) {
    return hosted_roles_config{.root = "alpha", .hosts = {{"beta", 0}}, .coordinator_moves = moves};
  };
  const auto told = test::the_only<job_event>(hosted_roles{config(false)}.begin(now));
  EXPECT_EQ(told.event, "coordinator-stays");
  EXPECT_THAT(told.text, HasSubstr("that of alpha ends the job, which 'dlrun resume --hosts' goes on with"));
  EXPECT_THAT(all_of<job_event>(hosted_roles{config(true)}.begin(now)), IsEmpty());
}

TEST_F(hosted_roles_test, a_coordinator_that_moves_starts_on_another_host_and_elsewhere_when_that_is_lost) {
  constexpr role_name coordinator{role_kind::coordinator, 0};
  roles = hosted_roles{
      {.root = "alpha", .root_cpus = 2, .hosts = {{"beta", 0}, {"gamma", 0}}, .coordinator_moves = true}};
  roles.begin(now);
  join("beta", 7);
  join("gamma", 8);
  for (const auto& [host, boot] : first_boots) roles.on_sighting(host, boot, {sight::there, 0ms}, now);
  EXPECT_EQ(test::the_only<to_host>(roles.start(coordinator, first, now)).host, "beta");
  roles.on_report(report("beta", 7, coordinator, first, start_state::running), now);
  const auto lost = pass(4s, {{"gamma", 8}});
  const auto end = std::get<role_end>(test::the_only<tell_launch>(lost).what);
  EXPECT_THAT(end.cause, HasSubstr("is lost with host beta"));
  EXPECT_EQ(test::the_only<to_host>(roles.start(coordinator, second, now)).host, "gamma");
}

TEST_F(hosted_roles_test, repeats_an_order_until_the_host_says_that_it_runs) {
  roles.start(worker_role({0}), first, now);
  EXPECT_EQ(sent<protocol::start_order>(roles.start(worker_role({1}), first, now)).size(), 1U);
  EXPECT_EQ(sent<protocol::start_order>(pass(1s, {{"beta", 7}, {"gamma", 8}})).size(), 2U);
  const auto told = test::the_only<tell_launch>(
      roles.on_report(report("beta", 7, worker_role({1}), first, start_state::running), now));
  EXPECT_EQ(std::get<role_runs>(told.what).pid, 100);
  EXPECT_THAT(roles.on_report(report("beta", 7, worker_role({1}), first, start_state::running), now),
              IsEmpty());
  EXPECT_THAT(pass(1s, {{"beta", 7}, {"gamma", 8}}), IsEmpty());
}

TEST_F(hosted_roles_test, tells_an_end_once_and_thanks_for_it_each_time) {
  run_worker_on_beta();
  auto how = report("beta", 7, worker_role({1}), first, start_state::ended);
  how.has_slot = true;
  const auto out = roles.on_report(how, now);
  const auto end = std::get<role_end>(test::the_only<tell_launch>(out).what);
  EXPECT_EQ(end.cause, "exited on host beta");
  EXPECT_TRUE(end.slot.has_value());
  EXPECT_EQ(sent<protocol::start_told>(out).size(), 1U);
  const auto again = roles.on_report(how, now);
  EXPECT_THAT(all_of<tell_launch>(again), IsEmpty());
  EXPECT_EQ(sent<protocol::start_told>(again).size(), 1U);
}

TEST_F(hosted_roles_test, tells_the_end_of_a_start_that_was_never_heard_to_run) {
  roles.start(worker_role({0}), first, now);
  roles.start(worker_role({1}), first, now);
  const auto told = test::the_only<tell_launch>(
      roles.on_report(report("beta", 7, worker_role({1}), first, start_state::ended), now));
  EXPECT_EQ(std::get<role_end>(told.what).cause, "exited on host beta");
  EXPECT_EQ(roles.starts().find(worker_role({1}), first), nullptr);
}

TEST_F(hosted_roles_test, tells_the_end_of_first_starts_that_a_lost_host_never_answered) {
  roles.start(worker_role({0}), first, now);
  roles.start(worker_role({1}), first, now);
  const auto told = test::the_only<tell_launch>(pass(3s, {{"gamma", 8}}));
  EXPECT_EQ(told.role, worker_role({1}));
  EXPECT_THAT(std::get<role_end>(told.what).cause, HasSubstr("is lost with host beta"));
}

TEST_F(hosted_roles_test, passes_on_why_a_start_failed) {
  roles.start(worker_role({0}), first, now);
  roles.start(worker_role({1}), first, now);
  auto how = report("beta", 7, worker_role({1}), first, start_state::not_started);
  how.code = error_code::bad_usage;
  const auto told = test::the_only<tell_launch>(roles.on_report(how, now));
  EXPECT_EQ(std::get<error>(told.what).code, error_code::bad_usage);
  EXPECT_THAT(std::get<error>(told.what).message, HasSubstr("on host beta"));
}

TEST_F(hosted_roles_test, asks_for_an_end_until_it_has_come) {
  run_worker_on_beta();
  EXPECT_EQ(
      sent<protocol::stop_order>(roles.stop(worker_role({1}), first, protocol::stop_how::end, now)).at(0).how,
      protocol::stop_how::end);
  EXPECT_EQ(sent<protocol::stop_order>(pass(1s, {{"beta", 7}, {"gamma", 8}})).size(), 2U);
  EXPECT_EQ(sent<protocol::stop_order>(roles.stop(worker_role({1}), first, protocol::stop_how::kill, now))
                .at(0)
                .how,
            protocol::stop_how::kill);
  EXPECT_EQ(sent<protocol::stop_order>(roles.stop(worker_role({1}), first, protocol::stop_how::leave, now))
                .at(0)
                .how,
            protocol::stop_how::kill)
      << "what was ordered before is stronger";
  roles.on_report(report("beta", 7, worker_role({1}), first, start_state::ended), now);
  EXPECT_THAT(pass(1s, {{"beta", 7}, {"gamma", 8}}), IsEmpty());
  EXPECT_THAT(roles.stop(worker_role({1}), first, protocol::stop_how::kill, now), IsEmpty());
}

TEST_F(hosted_roles_test, calls_all_but_one_of_the_roles_that_are_lost_with_a_host_one_of_several) {
  std::size_t there = 0;
  for (std::uint32_t index = 0; index < 9; ++index)
    for (const auto& order : sent<protocol::start_order>(roles.start(worker_role({index}), first, now)))
      there += order.boot == 7 ? 1 : 0;
  ASSERT_GE(there, 2U);
  std::size_t counted = 0;
  const auto told = all_of<tell_launch>(pass(3s, {{"gamma", 8}}));
  for (const auto& one : told) counted += std::get<role_end>(one.what).is_one_of_several ? 0 : 1;
  EXPECT_EQ(told.size(), there);
  EXPECT_EQ(counted, 1U);
}

TEST_F(hosted_roles_test, believes_no_report_of_another_boot_or_fence) {
  run_worker_on_beta();
  EXPECT_THAT(all_of<tell_launch>(
                  roles.on_report(report("beta", 6, worker_role({1}), first, start_state::ended), now)),
              IsEmpty());
  EXPECT_THAT(all_of<tell_launch>(
                  roles.on_report(report("beta", 7, worker_role({1}), {{1}, 99}, start_state::ended), now)),
              IsEmpty());
  EXPECT_NE(roles.starts().find(worker_role({1}), first), nullptr);
}

TEST_F(hosted_roles_test, tells_the_end_of_all_that_a_lost_host_ran_and_starts_it_elsewhere) {
  run_worker_on_beta();
  const auto lost = pass(3s, {{"gamma", 8}});
  const auto told = all_of<tell_launch>(lost);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told.at(0).role, worker_role({1}));
  EXPECT_THAT(std::get<role_end>(told.at(0).what).cause, HasSubstr("lost with host beta"));
  EXPECT_EQ(sent<protocol::dismissal>(lost).at(0).boot, 7U); // in case it hears
  EXPECT_EQ(all_of<job_event>(lost).at(0).event, "host-lost");
  const auto next = sent<protocol::start_order>(roles.start(worker_role({1}), second, now));
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next.at(0).boot, 8U);
}

TEST_F(hosted_roles_test, says_of_each_start_that_has_a_new_place_whose_it_is_where_and_why) {
  const auto placed = test::the_only<job_event>(roles.start(worker_role({0}), first, now));
  EXPECT_EQ(placed.event, "role-placed");
  EXPECT_EQ(placed.role, worker_role({0}));
  EXPECT_EQ(placed.incarnation, first.incarnation);
  EXPECT_EQ(placed.place.host, "alpha");
  EXPECT_THAT(placed.place.reason, HasSubstr("1 threads on 2 cores"));
  EXPECT_EQ(placed.text, "worker 0 runs on host alpha: " + placed.place.reason);
  EXPECT_THAT(all_of<job_event>(roles.start(worker_role({0}), second, now)), IsEmpty()) << "it is there";
}

TEST_F(hosted_roles_test, says_where_a_role_goes_whose_host_is_lost_and_why_that_is_lost) {
  run_worker_on_beta();
  const auto lost = all_of<job_event>(pass(3s, {{"gamma", 8}})).at(0);
  EXPECT_EQ(lost.role.kind, role_kind::agent);
  EXPECT_EQ(lost.place.host, "beta");
  EXPECT_EQ(lost.text, "host beta is given up: " + lost.place.reason);
  const auto moved = test::the_only<job_event>(roles.start(worker_role({1}), second, now));
  EXPECT_EQ(moved.place.host, "gamma");
  EXPECT_EQ(moved.incarnation, second.incarnation);
  EXPECT_THAT(moved.place.reason, HasSubstr("beta is lost"));
}

TEST_F(hosted_roles_test, exchanges_beats_with_each_start_of_a_host_that_is_let_in) {
  const auto came = all_of<watch_beats>(join("beta", 70)); // in place of 7
  ASSERT_EQ(came.size(), 1U);
  EXPECT_EQ(came.at(0).boot, 70U);
  EXPECT_THAT(all_of<watch_beats>(join("beta", 70)), IsEmpty()); // its link was lost
  const auto lost = roles.on_sighting("beta", 70, {sight::silent, 800ms}, now);
  EXPECT_EQ(test::the_only<forget_beats>(lost).host, "beta");
}

TEST_F(hosted_roles_test, says_to_which_port_no_beats_pass_and_what_that_means) {
  join("beta", 70);
  const auto told = test::the_only<job_event>(pass(2s, {{"beta", 70}, {"gamma", 8}}));
  EXPECT_EQ(told.event, "beats-blocked");
  for (const auto* part : {"host beta to 10.0.0.1:4000", "host alpha", "up to 3 s", "let UDP pass"})
    EXPECT_THAT(told.text, HasSubstr(part));
  const auto after = roles.on_sighting("beta", 70, {sight::there, 0ms}, now);
  EXPECT_EQ(test::the_only<job_event>(after).event, "beats-pass");
}

TEST_F(hosted_roles_test, lets_a_ps_shard_wait_for_the_host_of_its_store) {
  roles.start(ps_shard_role({0}), first, now); // alpha
  roles.start(ps_shard_role({1}), first, now); // beta
  roles.on_report(report("beta", 7, ps_shard_role({1}), first, start_state::running), now);
  pass(3s, {{"gamma", 8}});
  const auto waits = roles.start(ps_shard_role({1}), second, now);
  EXPECT_EQ(test::the_only<job_event>(waits).event, "role-waits");
  EXPECT_EQ(test::the_only<job_event>(waits).role, ps_shard_role({1}));
  EXPECT_EQ(test::the_only<job_event>(waits).place.host, "beta");
  pass(2s, {{"gamma", 8}});
  const auto back = sent<protocol::start_order>(join("beta", 70));
  ASSERT_EQ(back.size(), 1U);
  EXPECT_EQ(back.at(0).boot, 70U);
  EXPECT_EQ(back.at(0).self, second);
}

TEST_F(hosted_roles_test, starts_a_ps_shard_elsewhere_when_that_host_does_not_come_back) {
  roles.start(ps_shard_role({0}), first, now);
  roles.start(ps_shard_role({1}), first, now);
  pass(3s, {{"gamma", 8}});
  roles.start(ps_shard_role({1}), second, now);
  const auto moved = sent<protocol::start_order>(pass(10s, {{"gamma", 8}}));
  ASSERT_FALSE(moved.empty());
  EXPECT_EQ(moved.at(0).boot, 8U);
  EXPECT_EQ(roles.places().find(ps_shard_role({1}))->host, "gamma");
}

TEST_F(hosted_roles_test, starts_a_ps_shard_where_a_host_told_of_its_store_at_its_first_word_alone) {
  hosted_roles own{
      {.root = "alpha", .root_cpus = 2, .hosts = {{"beta", 0}}, .root_stores = {{{1}, {3}, {0}, {20}}}}};
  own.begin(now);
  own.on_joined({"beta", 7, 100, 1, {{{0}, {2}, {0}, {30}}, {{1}, {2}, {0}, {10}}}}, now, refused);
  own.on_joined({"beta", 7, 100, 1, {}}, now, refused); // its link was lost
  EXPECT_EQ(sent<protocol::start_order>(own.start(ps_shard_role({0}), first, now)).size(), 1U);
  EXPECT_EQ(all_of<start_here>(own.start(ps_shard_role({1}), first, now)).size(), 1U);
}

/// A run that is resumed: beta tells of a store of PS shard 1 when it joins.
class resumed_roles_test : public hosted_roles_test {
protected:
  resumed_roles_test() {
    resumed.begin(now);
    resumed.on_joined({"beta", 7, 100, 2, {{{1}, {2}, {0}, {30}}}}, now, refused);
    resumed.on_joined({"gamma", 8, 100, 2}, now, refused);
  }
  /// The agent of beta has ended, and so has the command that started it.
  hosted_actions lose_beta() {
    resumed.on_link_lost("beta", 7, now);
    return resumed.on_command_ended("beta", 1, "exited", now);
  }
  /// gamma is there; beta's agent is started again and again, and says nothing.
  hosted_actions wait(protocol::duration time) {
    hosted_actions all;
    for (; time > 0ms; time -= 100ms) {
      now += 100ms;
      resumed.on_work({"gamma", 8, {}}, now);
      for (auto& action : resumed.tick(now)) all.push_back(std::move(action));
    }
    return all;
  }

  hosted_roles resumed{{.root = "alpha",
                        .root_cpus = 2,
                        .hosts = {{"beta", 0}, {"gamma", 0}},
                        .hosts_before = "beta in /var/run7"}};
};

TEST_F(resumed_roles_test,
       a_ps_shard_whose_store_is_lost_with_its_host_before_it_began_waits_for_that_host_and_begins_empty) {
  lose_beta();
  ASSERT_TRUE(resumed.roster().is_expected("beta"));
  const auto waits = test::the_only<job_event>(resumed.start(ps_shard_role({1}), first, now));
  EXPECT_EQ(waits.event, "role-waits");
  EXPECT_EQ(waits.place.host, "beta");
  EXPECT_THAT(all_of<start_here>(wait(9900ms)), IsEmpty());
  const auto begins = wait(100ms);
  EXPECT_TRUE(std::ranges::any_of(all_of<job_event>(begins), [](const auto& event) {
    return event.event == "store-missing" && event.text.find("beta in /var/run7") != std::string::npos;
  }));
  ASSERT_EQ(all_of<start_here>(begins).size(), 1U) << "alpha has no PS shard yet";
  EXPECT_THAT(sent<protocol::start_order>(
                  resumed.on_joined({"beta", 70, 100, 2, {{{1}, {2}, {0}, {30}}}}, now, refused)),
              IsEmpty())
      << "it began elsewhere: its store there is the older one now";
}

TEST_F(resumed_roles_test, one_whose_host_comes_back_in_time_begins_with_its_store) {
  lose_beta();
  resumed.start(ps_shard_role({1}), first, now);
  wait(5s);
  const auto back = sent<protocol::start_order>(
      resumed.on_joined({"beta", 70, 100, 2, {{{1}, {2}, {0}, {30}}}}, now, refused));
  ASSERT_EQ(back.size(), 1U);
  EXPECT_EQ(back.at(0).boot, 70U);
}

TEST_F(resumed_roles_test, one_whose_start_was_ordered_there_waits_for_that_host_and_then_begins_empty) {
  ASSERT_EQ(sent<protocol::start_order>(resumed.start(ps_shard_role({1}), first, now)).at(0).boot, 7U);
  EXPECT_EQ(test::the_only<tell_launch>(lose_beta()).role, ps_shard_role({1}));
  EXPECT_EQ(test::the_only<job_event>(resumed.start(ps_shard_role({1}), second, now)).event, "role-waits");
  EXPECT_THAT(all_of<start_here>(wait(9900ms)), IsEmpty());
  const auto begun = wait(100ms);
  EXPECT_EQ(test::the_only<start_here>(begun).self, second);
  EXPECT_EQ(resumed.places().find(ps_shard_role({1}))->host, "alpha");
}

TEST_F(hosted_roles_test, ends_a_start_that_still_waits_for_a_host) {
  roles.start(ps_shard_role({0}), first, now);
  roles.start(ps_shard_role({1}), first, now);
  pass(3s, {{"gamma", 8}});
  roles.start(ps_shard_role({1}), second, now);
  const auto told =
      test::the_only<tell_launch>(roles.stop(ps_shard_role({1}), second, protocol::stop_how::end, now));
  EXPECT_TRUE(std::holds_alternative<role_end>(told.what));
}

TEST_F(hosted_roles_test, orders_again_what_a_host_may_not_have_heard_when_its_link_is_back) {
  roles.start(worker_role({0}), first, now);
  roles.start(worker_role({1}), first, now);
  roles.on_link_lost("beta", 7, now);
  EXPECT_EQ(sent<protocol::start_order>(join("beta", 7)).size(), 1U);
  EXPECT_EQ(refused, "");
}

TEST_F(hosted_roles_test, shows_what_workers_of_hosts_that_are_there_are_at) {
  run_worker_on_beta();
  roles.on_work({"beta", 7, {{worker_role({1}), first, 5, true, {}}}}, now);
  roles.on_work({"beta", 7, {{worker_role({1}), first, 5, true, {}}}, 30, 40}, now);
  roles.on_work({"beta", 6, {}}, now); // of another boot
  EXPECT_EQ(memory_of(roles.reports(), "beta"), (base::memory_use{30, 40}));
  EXPECT_EQ(memory_of(roles.reports(), "gamma"), base::memory_use{}) << "which has not told";
  ASSERT_EQ(work_in(roles.reports()).size(), 1U);
  EXPECT_EQ(work_in(roles.reports()).at(0).sequence, 5U);
  pass(3s, {{"gamma", 8}});
  EXPECT_THAT(work_in(roles.reports()), IsEmpty());
}

TEST_F(hosted_roles_test, takes_cores_from_the_list_before_those_that_a_host_tells) {
  hosted_roles own{{.root = "alpha", .root_cpus = 2, .hosts = {{"beta", 16}}}};
  own.begin(now);
  own.on_joined({"beta", 7, 100, 1}, now, refused);
  for (std::uint32_t i = 0; i < 7; ++i)
    EXPECT_THAT(all_of<start_here>(own.start(worker_role({i}), first, now)), IsEmpty());
}

TEST_F(hosted_roles_test, dismisses_all_hosts_at_the_end) {
  const auto over = sent<protocol::dismissal>(roles.dismiss("the job is over"));
  ASSERT_EQ(over.size(), 2U);
  EXPECT_EQ(over.at(0).boot, 7U);
  EXPECT_EQ(over.at(1).boot, 8U);
}

TEST_F(hosted_roles_test, what_a_host_was_given_of_the_data_is_told_once) {
  protocol::host_joined joined{.host = "beta", .boot = 70, .pid = 100};
  joined.intake = {3'500'000, 2'000'000, "3.5 MB by host alpha", "cannot open /data/images"};
  std::vector<job_event> told;
  for (int time = 0; time < 2; ++time) // its link was lost in between
    for (const auto& one : all_of<job_event>(roles.on_joined(joined, now, refused)))
      if (one.event == "data-fetched") told.push_back(one);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].text,
            "host beta was given 3.5 MB of the data in 2.0 s (3.5 MB by host alpha): cannot open "
            "/data/images");
  EXPECT_EQ(told[0].place, (protocol::event_place{"beta", "cannot open /data/images"}));
  EXPECT_EQ(told[0].numbers.values,
            (std::vector{protocol::named_number("bytes", 3.5e6), protocol::named_number("seconds", 2)}));
}

TEST_F(hosted_roles_test, a_host_that_had_the_data_says_nothing_of_it) {
  for (const auto& one : all_of<job_event>(roles.on_joined({"beta", 70, 100, 2}, now, refused)))
    EXPECT_NE(one.event, "data-fetched");
}

TEST_F(hosted_roles_test, a_gpu_that_a_host_avoids_is_one_of_that_host) {
  run_worker_on_beta();
  auto told = report("beta", 7, worker_role({1}), first, start_state::ended);
  told.has_avoided = true;
  told.avoided = 3;
  told.why_avoided = "it failed";
  const auto end = test::the_only<tell_launch>(roles.on_report(told, now));
  EXPECT_EQ(std::get<role_end>(end.what).avoided, (avoided_gpu{3, "beta", "it failed"}));
}

TEST_F(hosted_roles_test, a_host_that_is_to_leave_hands_its_workers_over_and_then_goes) {
  run_worker_on_beta();
  const auto asked = roles.on_joined({"beta", 7, 100, 0}, now, refused);
  EXPECT_EQ(all_of<job_event>(asked).at(0).event, "host-leaves");
  EXPECT_EQ(sent<protocol::stop_order>(asked).at(0).how, protocol::stop_how::leave);
  EXPECT_THAT(all_of<job_event>(roles.on_joined({"beta", 7, 100, 0}, now, refused)), IsEmpty()); // said once
  auto left = report("beta", 7, worker_role({1}), first, start_state::ended);
  left.left = true;
  const auto end = test::the_only<tell_launch>(roles.on_report(left, now));
  EXPECT_TRUE(std::get<role_end>(end.what).left);
  const auto next = roles.start(worker_role({1}), second, now); // as the agent does
  EXPECT_EQ(sent<protocol::start_order>(next).at(0).boot, 8U);
  EXPECT_THAT(all_of<job_event>(next).at(0).text, HasSubstr("; beta leaves"));
  const auto gone = roles.tick(now);
  EXPECT_EQ(all_of<job_event>(gone).at(0).event, "host-left");
  EXPECT_EQ(sent<protocol::dismissal>(gone).at(0).reason, "it was asked to leave");
  EXPECT_THAT(all_of<tell_launch>(gone), IsEmpty());
}

TEST_F(hosted_roles_test, what_else_runs_on_a_host_that_leaves_ends_with_it) {
  roles.start(ps_shard_role({0}), first, now);
  ASSERT_EQ(sent<protocol::start_order>(roles.start(ps_shard_role({1}), first, now)).at(0).boot, 7U);
  const auto gone = roles.on_joined({"beta", 7, 100, 0}, now, refused); // it has no worker
  EXPECT_EQ(test::the_only<tell_launch>(gone).role, ps_shard_role({1}));
  EXPECT_THAT(std::get<role_end>(test::the_only<tell_launch>(gone).what).cause, HasSubstr("asked to leave"));
}

/// The root's host has none.
TEST_F(hosted_roles_test, a_worker_that_needs_a_gpu_waits_for_a_host_that_has_one) {
  roles = hosted_roles{
      {.root = "alpha", .root_cpus = 2, .hosts = {{"beta", 0}, {"gamma", 0}}, .workers_need_gpus = true}};
  roles.begin(now);
  join("beta", 7);
  const auto waits = roles.start(worker_role({0}), first, now);
  EXPECT_THAT(test::the_only<job_event>(waits).text, HasSubstr("worker 0 waits for a host that has GPUs"));
  EXPECT_EQ(std::get<role_runs>(test::the_only<tell_launch>(waits).what).pid, 0) << "nobody waits for it";
  EXPECT_EQ(all_of<start_here>(roles.start(ps_shard_role({0}), first, now)).size(), 1U);
  const auto joined =
      roles.on_joined({.host = "gamma", .boot = 8, .pid = 100, .cpus = 2, .gpus = 4}, now, refused);
  EXPECT_EQ(sent<protocol::start_order>(joined).at(0).role, worker_role({0}));
  EXPECT_EQ(roles.places().host_of(worker_role({0})), "gamma");
  EXPECT_THAT(roles.places().find(worker_role({0}))->reason, HasSubstr("1 workers on 4 GPUs with it"));
}

TEST_F(hosted_roles_test, a_worker_that_waits_for_a_host_can_be_ended) {
  roles = hosted_roles{{.root = "alpha", .root_cpus = 2, .hosts = {{"beta", 0}}, .workers_need_gpus = true}};
  roles.begin(now);
  roles.start(worker_role({0}), first, now);
  const auto told =
      test::the_only<tell_launch>(roles.stop(worker_role({0}), first, protocol::stop_how::leave, now));
  EXPECT_THAT(std::get<role_end>(told.what).cause, HasSubstr("before it had a host"));
}

} // namespace
} // namespace dlrun::agent::test_hosts
