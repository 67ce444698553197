#include "actors/data_dispatcher/lease_book.hpp"

#include "tests/actors/data_dispatcher/dispatcher_orders.hpp"

#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::data_dispatcher {
namespace {

using protocol::make_slot_range;
using std::chrono::milliseconds;
using testing::IsEmpty;
using testing::SizeIs;

/// Leases of a job with four slots.
class lease_book_test : public testing::Test {
protected:
  data_dispatcher_actions join(std::uint32_t worker) {
    data_dispatcher_actions out;
    book.join({worker}, {1}, now, out);
    return out;
  }
  protocol::worker_status status(std::uint32_t worker, std::uint64_t acknowledged, bool leaving) const {
    protocol::worker_status said;
    said.worker = {worker};
    said.self = {{1}, 0};
    said.lease_of = {6};
    said.lease_sequence = acknowledged;
    said.leaving = leaving;
    return said;
  }
  /// It has computed slots.
  protocol::worker_status works(std::uint32_t worker) const {
    auto said = status(worker, 1, false);
    said.slots_computed = 8;
    said.compute_us = 8000;
    return said;
  }
  data_dispatcher_actions repeat(milliseconds after) {
    now += after;
    data_dispatcher_actions out;
    book.repeat(now, out);
    return out;
  }

  lease_book book{{.dispatcher = {6}, .slots = 4}};
  protocol::time_point now{std::chrono::hours(1)};
};

TEST_F(lease_book_test, a_lease_that_is_withheld_is_sent_as_soon_as_it_may_be) {
  book.withhold(true);
  EXPECT_THAT(join(0), IsEmpty());
  EXPECT_THAT(repeat(milliseconds(500)), IsEmpty());
  book.withhold(false);
  const auto actions = repeat(milliseconds(1));
  ASSERT_THAT(sent<protocol::lease>(actions), SizeIs(1));
  EXPECT_EQ(sent<protocol::lease>(actions)[0].message.slots, make_slot_range(0, 4));
  EXPECT_EQ(only<decision_made>(actions).at(0).reason,
            "worker 0 incarnation 1 slots [0, 4): worker 0 takes part");
  EXPECT_THAT(repeat(milliseconds(100)), IsEmpty());
  EXPECT_THAT(repeat(milliseconds(100)), SizeIs(1)) << "again, without the reason";
}

TEST_F(lease_book_test, of_leases_that_were_withheld_only_the_newest_is_sent) {
  book.withhold(true);
  join(0);
  join(1);
  book.withhold(false);
  const auto leases = sent<protocol::lease>(repeat(milliseconds(1)));
  ASSERT_THAT(leases, SizeIs(2));
  EXPECT_EQ(leases[0].message.slots, make_slot_range(0, 2));
  EXPECT_EQ(leases[1].message.slots, make_slot_range(2, 4));
}

TEST_F(lease_book_test, the_slots_of_who_leaves_go_to_the_others_at_once) {
  join(0);
  join(1);
  data_dispatcher_actions out;
  EXPECT_TRUE(book.on_status(status(1, 0, true), now, out));
  const auto leases = sent<protocol::lease>(out);
  ASSERT_THAT(leases, SizeIs(1)) << "who leaves has handed its own back";
  EXPECT_EQ(leases[0].to, protocol::worker_role({0}));
  EXPECT_EQ(leases[0].message.slots, make_slot_range(0, 4));
  EXPECT_FALSE(book.on_status(status(1, 0, true), now, out)) << "it says so again and again";
  EXPECT_THAT(book.working(), SizeIs(1));
  EXPECT_THAT(book.heard(), SizeIs(2)) << "what it keeps may be needed";
}

TEST_F(lease_book_test, the_end_of_who_has_left_is_no_loss) {
  join(0);
  join(1);
  data_dispatcher_actions out;
  book.on_status(status(1, 0, true), now, out);
  book.on_status(status(0, 4, false), now, out);
  out.clear();
  EXPECT_TRUE(book.lose({1}, {1}, now, out));
  EXPECT_THAT(only<to_coordinator>(out), IsEmpty());
  EXPECT_THAT(sent<protocol::lease>(out), IsEmpty()) << "nobody's slots change";
}

TEST_F(lease_book_test, the_only_worker_goes_on_with_its_share_when_it_leaves) {
  join(0);
  data_dispatcher_actions out;
  book.on_status(status(0, 1, true), now, out);
  EXPECT_THAT(out, IsEmpty());
  EXPECT_EQ(sent<protocol::lease>(join(1)).at(0).message.slots, make_slot_range(0, 4));
}

TEST_F(lease_book_test, whoever_is_new_tries_a_slot_beside_those_who_work) {
  join(0);
  data_dispatcher_actions out;
  book.on_status(works(0), now, out);
  const auto first = sent<protocol::lease>(join(1));
  ASSERT_THAT(first, SizeIs(1)) << "worker 0 keeps all slots";
  EXPECT_EQ(first[0].message.slots, make_slot_range(0, 1));

  auto has_tried = status(1, 2, false);
  has_tried.slots_computed = 1;
  has_tried.compute_us = 900'000; // its first run of each kernel
  book.on_status(has_tried, now, out);
  const auto shares = sent<protocol::lease>(out);
  ASSERT_THAT(shares, SizeIs(2));
  EXPECT_EQ(shares[0].message.slots, make_slot_range(0, 2));
  EXPECT_EQ(shares[1].message.slots, make_slot_range(2, 4)) << "that it was slow at first does not count";
}

TEST_F(lease_book_test, whoever_is_new_gets_everything_when_nobody_works_any_more) {
  join(0);
  data_dispatcher_actions out;
  book.on_status(works(0), now, out);
  join(1);
  out.clear();
  book.lose({0}, {1}, now, out);
  EXPECT_EQ(sent<protocol::lease>(out).at(0).message.slots, make_slot_range(0, 4));
}

/// Two workers, of which the second becomes slow.
class slow_worker_test : public lease_book_test {
protected:
  slow_worker_test() {
    join(0);
    join(1);
  }
  /// Both have computed so many slots more, in so much time of computing, in the last 100 ms.
  data_dispatcher_actions worked(std::uint64_t slots, milliseconds took, std::uint64_t slots_of_slow,
                                 milliseconds slow_took) {
    now += milliseconds(100);
    data_dispatcher_actions out;
    book.on_status(add(0, slots, took), now, out);
    book.on_status(add(1, slots_of_slow, slow_took), now, out);
    book.renew(now, out);
    note(out);
    return out;
  }
  /// A tick in which the first works, and the second is at two slots for so long now.
  void second_is_stuck_for(milliseconds time) {
    now += milliseconds(100);
    data_dispatcher_actions out;
    book.on_status(add(0, 20, milliseconds(100)), now, out);
    auto stuck = add(1, 0, milliseconds(0));
    stuck.computing = 2;
    stuck.computing_us = static_cast<std::uint64_t>(std::chrono::microseconds(time).count());
    book.on_status(stuck, now, out);
    book.renew(now, out);
    note(out);
  }
  protocol::worker_status add(std::uint32_t worker, std::uint64_t slots, milliseconds took) {
    auto& sum = sums.at(worker);
    sum.slots_computed += slots;
    sum.compute_us += static_cast<std::uint64_t>(std::chrono::microseconds(took).count());
    auto said = status(worker, 0, false);
    said.slots_computed = sum.slots_computed;
    said.compute_us = sum.compute_us;
    return said;
  }
  void note(const data_dispatcher_actions& actions) {
    for (const auto& one : sent<protocol::lease>(actions)) slots_of[one.to.index] = one.message.slots;
  }
  /// The second takes ten times as long, until it has no slots.
  void becomes_slow() {
    for (int i = 0; i < 50 && slots_of[1] != make_slot_range(4, 4); ++i)
      worked(20, milliseconds(100), 2, milliseconds(100));
  }

  std::vector<protocol::worker_status> sums{2};
  std::map<std::uint32_t, protocol::slot_range> slots_of;
};

TEST_F(slow_worker_test, one_hiccup_takes_no_slots_from_a_worker) {
  for (int i = 0; i < 20; ++i) worked(20, milliseconds(100), 20, milliseconds(100));
  EXPECT_THAT(sent<protocol::lease>(worked(20, milliseconds(100), 5, milliseconds(100))), IsEmpty());
}

TEST_F(slow_worker_test, who_stays_slow_has_no_slots_within_seconds) {
  for (int i = 0; i < 20; ++i) worked(20, milliseconds(100), 20, milliseconds(100));
  const auto before = now;
  becomes_slow();
  EXPECT_EQ(slots_of[0], make_slot_range(0, 4));
  EXPECT_EQ(slots_of[1], make_slot_range(4, 4));
  EXPECT_LE(now - before, std::chrono::seconds(3));
}

TEST_F(slow_worker_test, what_comes_to_nothing_counts_as_time) {
  for (int i = 0; i < 5; ++i) worked(20, milliseconds(100), 20, milliseconds(100));
  for (int i = 0; i < 20; ++i) worked(20, milliseconds(100), 0, milliseconds(100));
  EXPECT_EQ(slots_of[1], make_slot_range(4, 4));
}

TEST_F(slow_worker_test, who_is_at_a_slot_for_long_is_as_slow_as_that) {
  for (int i = 0; i < 5; ++i) worked(20, milliseconds(100), 20, milliseconds(100));
  for (int i = 1; i <= 60; ++i) second_is_stuck_for(milliseconds(100) * i);
  EXPECT_EQ(slots_of[0], make_slot_range(0, 4));
  EXPECT_EQ(slots_of[1], make_slot_range(4, 4));
}

TEST_F(slow_worker_test, a_pause_amid_a_computation_counts_once) {
  for (int i = 0; i < 20; ++i) worked(20, milliseconds(100), 20, milliseconds(100));
  data_dispatcher_actions out;
  for (int i = 0; i < 9; ++i) {
    now += milliseconds(100);
    book.on_status(add(0, 20, milliseconds(100)), now, out);
    book.renew(now, out);
  }
  auto amid = add(1, 0, milliseconds(0));
  amid.computing = 2;
  amid.computing_us = 905'000;
  book.on_status(amid, now, out);
  book.renew(now, out);
  note(out);
  note(worked(20, milliseconds(100), 2, milliseconds(910)));
  EXPECT_EQ(slots_of[1], make_slot_range(3, 4)) << "a third as fast, not a sixth";
}

/// Two workers that had computed for so long before this dispatcher was there.
class taken_over_test : public slow_worker_test {
protected:
  /// @returns how long it takes until the second, which is stuck, has no slots.
  milliseconds noticed_after(int tenths, const std::function<void()>& between) {
    for (auto& sum : sums) {
      sum.slots_computed = static_cast<std::uint64_t>(20 * tenths);
      sum.compute_us = static_cast<std::uint64_t>(100'000 * tenths);
    }
    for (int i = 0; i < 5; ++i) worked(20, milliseconds(100), 20, milliseconds(100));
    between();
    const auto before = now;
    for (int i = 1; i <= 300 && slots_of[1] != make_slot_range(4, 4); ++i)
      second_is_stuck_for(milliseconds(100) * i);
    return std::chrono::duration_cast<milliseconds>(now - before);
  }
};

TEST_F(taken_over_test, who_gets_stuck_after_a_long_life_is_seen_as_soon_as_who_was_measured_from_the_start) {
  EXPECT_LE(noticed_after(3000, [] {}), milliseconds(5000)); // of 300 s
}

TEST_F(taken_over_test, who_gets_stuck_after_it_was_cut_off_is_seen_as_soon_too) {
  const auto is_cut_off = [&] { // its link, for five minutes in which it computes
    now += std::chrono::minutes(5);
    sums[1].slots_computed += 60'000;
    sums[1].compute_us += 300'000'000;
    worked(0, milliseconds(0), 0, milliseconds(0));
    worked(20, milliseconds(100), 20, milliseconds(100));
  };
  EXPECT_LE(noticed_after(1, is_cut_off), milliseconds(5000));
}

TEST_F(slow_worker_test, who_was_not_heard_came_to_nothing_meanwhile) {
  for (int i = 0; i < 5; ++i) worked(20, milliseconds(100), 20, milliseconds(100));
  for (int i = 1; i <= 60; ++i) { // stopped for 900 ms of each second, at full speed between
    now += milliseconds(100);
    data_dispatcher_actions out;
    book.on_status(add(0, 20, milliseconds(100)), now, out);
    if (i % 10 == 0) book.on_status(add(1, 4, milliseconds(20)), now, out);
    book.renew(now, out);
    note(out);
  }
  EXPECT_EQ(slots_of[0], make_slot_range(0, 4));
  EXPECT_EQ(slots_of[1], make_slot_range(4, 4));
}

TEST_F(slow_worker_test, who_has_no_slots_tries_one_that_another_has_and_gets_its_share_back) {
  for (int i = 0; i < 5; ++i) worked(20, milliseconds(100), 20, milliseconds(100));
  becomes_slow();
  for (int i = 0; i < 21; ++i) worked(20, milliseconds(100), 0, milliseconds(0));
  EXPECT_EQ(slots_of[0], make_slot_range(0, 4)) << "no step waits for it";
  EXPECT_EQ(slots_of[1], make_slot_range(0, 1));
  for (int i = 0; i < 18; ++i) worked(20, milliseconds(100), 20, milliseconds(100));
  EXPECT_EQ(slots_of[1], make_slot_range(0, 1)) << "it may be slow now and then";
  for (int i = 0; i < 3; ++i) worked(20, milliseconds(100), 20, milliseconds(100));
  EXPECT_EQ(slots_of[0], make_slot_range(0, 2));
  EXPECT_EQ(slots_of[1], make_slot_range(2, 4));
}

TEST_F(slow_worker_test, who_is_slow_still_gets_no_share_for_its_trial) {
  for (int i = 0; i < 5; ++i) worked(20, milliseconds(100), 20, milliseconds(100));
  becomes_slow();
  for (int i = 0; i < 100; ++i) {
    worked(20, milliseconds(100), 2, milliseconds(100));
    ASSERT_EQ(slots_of[0], make_slot_range(0, 4));
  }
}

TEST_F(lease_book_test, who_is_one_too_many_tries_nothing) {
  for (std::uint32_t worker = 0; worker < 5; ++worker) join(worker);
  for (int i = 0; i < 100; ++i) {
    now += milliseconds(100);
    data_dispatcher_actions out;
    for (std::uint32_t worker = 0; worker < 5; ++worker) book.on_status(works(worker), now, out);
    book.renew(now, out);
    ASSERT_THAT(sent<protocol::lease>(out), IsEmpty());
  }
}

TEST_F(lease_book_test, heard_are_those_who_are_not_silent) {
  join(0);
  join(1);
  now += milliseconds(1001);
  data_dispatcher_actions out;
  protocol::worker_status status;
  status.worker = {1};
  status.self = {{1}, 0};
  book.on_status(status, now, out);
  book.renew(now, out);
  EXPECT_EQ(book.size(), 2U);
  EXPECT_EQ(book.heard(), (std::map<worker_id, incarnation>{{{1}, {1}}}));
}

TEST_F(lease_book_test, silence_that_is_excused_counts_from_then) {
  join(0);
  now += milliseconds(1001);
  book.excuse_silence(now);
  data_dispatcher_actions out;
  book.renew(now, out);
  EXPECT_THAT(book.heard(), SizeIs(1));
}

} // namespace
} // namespace dlrun::data_dispatcher
