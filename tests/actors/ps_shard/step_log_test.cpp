#include "actors/ps_shard/step_log.hpp"

#include "tests/actors/told.hpp"
#include "tests/persistence/store_fixture.hpp"

#include <future>
#include <gmock/gmock.h>

namespace dlrun::ps_shard {
namespace {

using operation = test::faulty_file_system::operation;
using std::chrono::hours;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

class step_log_test : public test::store_test {
protected:
  void open(std::uint64_t opener = 1, milliseconds retry_after = milliseconds(1)) {
    log.reset();
    store.reset();
    store = persistence::shard_store::open(options(opener)).value();
    log = std::make_unique<step_log>(*store, events(), retry_after);
  }
  step_log_events events() {
    return {.committed =
                [this](timeline_id timeline, version_id version) {
                  told.add(fmt::format("committed {} on {}", version, timeline));
                },
            .stalled = [this](const auto& why) { told.add(why ? "stalled: " + why->message : "goes on"); },
            .broken = [this](const error& why) { told.add("broken: " + why.message); }};
  }
  static std::vector<float> root_of(std::uint64_t step) {
    return std::vector<float>(step % 2 == 0 ? 100 : 2000, static_cast<float>(step) + 0.5F);
  }
  void append(std::uint64_t step, std::uint64_t timeline = 0, std::function<bool()> intact = {}) {
    const auto root = std::make_shared<const std::vector<float>>(root_of(step));
    log->append({{step}, {timeline}, "extra", *root, root, std::move(intact)});
  }
  void append_all(std::uint64_t first, std::uint64_t end, std::uint64_t timeline = 0) {
    for (auto step = first; step < end; ++step) append(step, timeline);
  }
  bool holds(std::uint64_t step) const {
    const auto record = store->read(step_id{step});
    const auto root = root_of(step);
    return record && record->head.extra == "extra" &&
           std::ranges::equal(record->payload, std::as_bytes(std::span{root}));
  }
  /// Waits until the log's thread has come to where it works between two writes.
  void wait_for_thread(std::function<void()> work = [] {}) {
    const auto done = std::make_shared<std::promise<void>>();
    log->between_writes([work = std::move(work), done] {
      work();
      done->set_value();
    });
    done->get_future().get();
  }
  std::future<bool> wait_elsewhere(std::uint64_t version) {
    return std::async(std::launch::async, [this, version] { return log->wait_for({0}, {version}); });
  }

  test::told told;
  std::unique_ptr<persistence::shard_store> store;
  std::unique_ptr<step_log> log; ///< ends before the store
};

TEST_F(step_log_test, a_step_is_committed_when_it_is_in_the_log) {
  open();
  append(0);
  EXPECT_TRUE(log->wait_for({0}, {1}));
  told.wait_for("committed 1 on 0");
  EXPECT_TRUE(holds(0));
}

TEST_F(step_log_test, steps_are_written_in_their_order_whatever_comes_together) {
  open();
  append_all(0, 60);
  EXPECT_TRUE(log->wait_for({0}, {60}));
  told.wait_for("committed 60 on 0");
  for (std::uint64_t step = 0; step < 60; ++step) EXPECT_TRUE(holds(step)) << step;
  EXPECT_EQ(store->next_step(), step_id{60});
}

TEST_F(step_log_test, what_a_store_holds_already_is_not_waited_for) {
  open();
  append_all(0, 3);
  ASSERT_TRUE(log->wait_for({0}, {3}));
  open(2);
  EXPECT_TRUE(log->wait_for({0}, {3}));
  append(3);
  EXPECT_TRUE(log->wait_for({0}, {4}));
}

TEST_F(step_log_test, whoever_waits_for_a_step_that_never_comes_is_told_at_the_end) {
  open();
  auto waiting = wait_elsewhere(1);
  log->stop();
  EXPECT_FALSE(waiting.get());
}

TEST_F(step_log_test, a_full_disk_is_told_once_and_waited_out) {
  open();
  append(0);
  ASSERT_TRUE(log->wait_for({0}, {1}));
  files->set_free_bytes(0);
  append_all(1, 4);
  EXPECT_THAT(told.wait_for("stalled"), HasSubstr(directory()));
  for (int again = 0; again < 3; ++again) wait_for_thread(); // each is followed by another try
  files->set_free_bytes(std::nullopt);
  EXPECT_TRUE(log->wait_for({0}, {4}));
  told.wait_for("goes on");
  for (std::uint64_t step = 0; step < 4; ++step) EXPECT_TRUE(holds(step)) << step;
  EXPECT_EQ(told.count("stalled"), 1);
  EXPECT_EQ(told.count("goes on"), 1);
  EXPECT_EQ(told.count("broken"), 0);
}

/// What is dropped in the meantime may be the room that is missing.
TEST_F(step_log_test, while_the_disk_is_full_other_work_is_done_and_followed_by_another_try) {
  open(1, hours(1));
  files->set_free_bytes(0);
  append(0);
  told.wait_for("stalled");
  log->between_writes([&] { files->set_free_bytes(std::nullopt); });
  EXPECT_TRUE(log->wait_for({0}, {1}));
}

TEST_F(step_log_test, ends_at_once_while_the_disk_is_full) {
  open(1, hours(1));
  files->set_free_bytes(0);
  append(0);
  told.wait_for("stalled");
  auto waiting = wait_elsewhere(1);
  log->stop();
  EXPECT_FALSE(waiting.get());
  log.reset();
  EXPECT_EQ(told.count("committed"), 0);
}

TEST_F(step_log_test, another_error_of_the_disk_is_the_end_and_nothing_is_committed_after_it) {
  open();
  files->fail(operation::write, "/log/");
  append(0);
  EXPECT_THAT(told.wait_for("broken"), HasSubstr("Input/output error"));
  files->fail(operation::write, "");
  append(1);
  EXPECT_FALSE(log->wait_for({0}, {1}));
  log.reset();
  EXPECT_EQ(told.lines().size(), 1U);
  EXPECT_EQ(store->next_step(), step_id{0});
}

TEST_F(step_log_test, a_gradient_that_changed_while_it_was_written_is_never_committed) {
  open();
  append(0, 0, [] { return true; });
  ASSERT_TRUE(log->wait_for({0}, {1}));
  append(1, 0, [] { return false; });
  EXPECT_EQ(told.wait_for("broken"), "broken: the gradient of step 1 changed while it was logged");
  EXPECT_FALSE(log->wait_for({0}, {2}));
  log.reset();
  EXPECT_THAT(told.lines(), ElementsAre("committed 1 on 0", testing::_));
}

TEST_F(step_log_test, an_interruption_drops_what_waits_and_sends_those_away_who_wait_for_it) {
  open(1, hours(1));
  files->set_free_bytes(0);
  append_all(0, 3);
  told.wait_for("stalled");
  log->between_writes([&] {
    files->set_free_bytes(std::nullopt);
    log->interrupt({1}, [] {}); // comes before the next try
  });
  wait_for_thread();
  EXPECT_EQ(store->next_step(), step_id{0});
  EXPECT_EQ(told.count("committed"), 0);
}

TEST_F(step_log_test, whoever_waits_on_a_timeline_that_was_left_is_sent_away) {
  open();
  auto waiting = wait_elsewhere(1);
  log->interrupt({1}, [] {});
  EXPECT_FALSE(waiting.get());
  EXPECT_FALSE(log->wait_for({0}, {1})) << "nor does anyone begin to wait";
}

TEST_F(step_log_test, goes_on_after_a_rewind_from_where_it_led) {
  open();
  append_all(0, 5);
  ASSERT_TRUE(log->wait_for({0}, {5}));
  const std::vector<persistence::history_entry> history{{{0}, {0}, 0, {}}, {{1}, {2}, 0, {}}};
  log->interrupt({1}, [&] { ASSERT_TRUE(store->rewind(history, {2})); });
  append(2, 1);
  told.wait_for("committed 3 on 1");
  EXPECT_TRUE(log->wait_for({1}, {3}));
  EXPECT_EQ(store->next_step(), step_id{3});
  open(2);
  EXPECT_FALSE(log->wait_for({0}, {3})) << "another start knows that it was left";
}

/// It was on its way, from another thread, while the rewind was ordered.
TEST_F(step_log_test, a_step_of_a_timeline_that_was_left_is_dropped_also_when_it_comes_late) {
  open();
  const std::vector<persistence::history_entry> history{{{0}, {0}, 0, {}}, {{1}, {0}, 0, {}}};
  log->interrupt({1}, [&] { ASSERT_TRUE(store->rewind(history, {0})); });
  append(0);
  append(0, 1);
  told.wait_for("committed 1 on 1");
  EXPECT_TRUE(log->wait_for({1}, {1}));
  EXPECT_EQ(told.count("committed"), 1);
  EXPECT_EQ(told.count("broken"), 0);
}

TEST_F(step_log_test, other_work_belongs_to_the_thread_that_appends) {
  open();
  std::vector<std::thread::id> threads;
  for (int i = 0; i < 2; ++i) wait_for_thread([&] { threads.push_back(std::this_thread::get_id()); });
  append(0, 0, [&threads] {
    threads.push_back(std::this_thread::get_id());
    return true;
  });
  ASSERT_TRUE(log->wait_for({0}, {1}));
  EXPECT_THAT(threads, ElementsAre(threads[0], threads[0], threads[0]));
  EXPECT_NE(threads[0], std::this_thread::get_id());
}

} // namespace
} // namespace dlrun::ps_shard
