// A PS shard whose store has a copy, and the keeper that holds it, as actors; the agent is played.
#include "actors/keeper/keeper.hpp"
#include "actors/ps_shard/ps_shard.hpp"
#include "persistence/store_look.hpp"
#include "tests/actors/played_roles.hpp"
#include "tests/actors/quiet_agent.hpp"
#include "tests/actors/small_job.hpp"
#include "transport/gradient_segment.hpp"

#include <algorithm>
#include <deque>
#include <gmock/gmock.h>
#include <mutex>
#include <span>

namespace dlrun::ps_shard {
namespace {

using testing::HasSubstr;

constexpr protocol::fence keeper_start{{7}, 70};

/// What is said of the first copy.
protocol::copy_word copy_in(const protocol::heartbeat& beat) {
  return beat.copies.all.empty() ? protocol::copy_word{} : beat.copies.all.front();
}

/// What the agent says of the keeper, and what it has heard.
struct agent_word {
  std::mutex mutex;
  std::condition_variable changed;
  protocol::keeper_places place{.is_known = true, .all = {{}}}; // guarded by mutex, as is the next
  std::vector<protocol::heartbeat> heard;

  void say(const protocol::keeper_places& next) {
    const std::scoped_lock lock{mutex};
    place = next;
  }
  template <class Wanted>
  bool has_heard(Wanted wanted) {
    const std::scoped_lock lock{mutex};
    return std::ranges::any_of(heard, wanted);
  }
  template <class Wanted>
  bool wait_for(Wanted wanted) {
    return wait_until([&](const auto& all) { return std::ranges::any_of(all, wanted); });
  }
  /// @param is_so of all that was heard
  template <class Condition>
  bool wait_until(Condition is_so) {
    std::unique_lock lock{mutex};
    return changed.wait_for(lock, std::chrono::seconds(20), [&] { return is_so(heard); });
  }
};

class copied_shard_test : public test::played_roles<protocol::ps_shard_actor> {
protected:
  explicit copied_shard_test(const std::string& log = "every_step") {
    job = test::small_job(folder.path() / "own",
                          {"durability.log=" + log, "durability.replicas=2", "cluster.placement=threads"});
    auto elsewhere = std::make_shared<common::job_context>(*job);
    elsewhere->run_dir = folder.path() / "elsewhere";
    keepers_job = std::move(elsewhere);
    local->remember({protocol::role_kind::coordinator, 0}, {1}, strong(*coordinator));
    the_agent = system.spawn([word = word, at = here()]() -> protocol::agent_actor::behavior_type {
      return test::quiet_agent(
          [word, at](const protocol::heartbeat& beat) {
            const std::scoped_lock lock{word->mutex};
            word->heard.push_back(beat);
            word->changed.notify_all();
            const bool is_shard = beat.role.kind == protocol::role_kind::ps_shard;
            return protocol::coordinator_location{
                {1}, at, is_shard ? word->place : protocol::keeper_places{}};
          },
          [](const protocol::credentials_wanted&) { return protocol::role_credentials{}; });
    });
  }
  common::role_context context_of(const protocol::role_name& role, const protocol::fence& start) const {
    return {.role = role,
            .self = start,
            .job = role.kind == protocol::role_kind::keeper ? keepers_job : job,
            .local = local,
            .agent = the_agent,
            .coordinator = here(),
            .coordinator_incarnation = {1},
            .log = std::make_shared<spdlog::logger>("test")};
  }
  void start_keeper() {
    keeper = system.spawn(keeper::keeper_state::start, context_of(protocol::keeper_role({0}), keeper_start));
    say_where(false);
  }
  void say_where(bool counts) {
    word->say({.is_known = true, .all = {{keeper_start.incarnation, here(), counts}}});
  }
  void start_shard() {
    at_work = system.spawn(ps_shard_state::start, context_of(protocol::ps_shard_role({0}), self));
    (*observer)->monitor(at_work);
  }
  /// It has entered the job; worker 0 is the test.
  void let_it_in() {
    answer_join(protocol::ps_shard_role({0}), {true, ""});
    name({{protocol::worker_role({0}), {1}, true, {}, 11}});
    tell(protocol::pull{{0}, {0}, {{1}, 11}}, as<protocol::worker_actor>(*peer));
  }
  bool wait_until_it_counts() {
    return word->wait_for([](const protocol::heartbeat& beat) {
      return beat.role.kind == protocol::role_kind::ps_shard &&
             copy_in(beat).counted == keeper_start.incarnation;
    });
  }
  /// Each is committed before the next.
  void train(std::uint64_t first, std::uint64_t end) {
    for (auto step = first; step < end; ++step) {
      tell(push(step));
      ASSERT_TRUE(await_committed(step + 1));
    }
  }
  protocol::push push(std::uint64_t step) {
    const auto floats = job->model->layout().flat_size();
    auto& writer = buffers.emplace_back(transport::gradient_writer::create(floats).value());
    std::ranges::fill(writer.begin_write(), 0.25F);
    const auto slots = job->sampler.slots({step});
    std::uint64_t records = 0;
    for (std::uint32_t slot = 0; slot < slots; ++slot)
      records += job->sampler.records_in_slot({step}, {slot});
    const auto header = writer.seal_as({{0}, {0}, {1}, {step}, {0}, {slots}, records, floats, 0});
    if (!offers) offers = transport::open_offers(job->channel()).value();
    const auto segment = offers->offer(writer.shared()).value();
    protocol::push made;
    made.self = {{1}, 11};
    made.step = {step};
    made.slots = protocol::make_slot_range(0, slots);
    made.records = records;
    made.tensor_sequence = header.sequence;
    made.where = {offers->address(), segment.value, writer.shared().size()};
    return made;
  }
  std::optional<protocol::shard_state> await_committed(std::uint64_t version) {
    return await<protocol::shard_state>(
        *peer, [&](const protocol::shard_state& state) { return state.committed.value >= version; });
  }
  std::optional<protocol::shard_state> await_applied(std::uint64_t version) {
    return await<protocol::shard_state>(
        *peer, [&](const protocol::shard_state& state) { return state.applied.value >= version; });
  }
  void end_keeper() {
    (*observer)->monitor(keeper);
    caf::anon_send_exit(keeper, caf::exit_reason::user_shutdown);
    EXPECT_THAT(end(), HasSubstr("user_shutdown"));
    keeper = nullptr;
  }
  /// What is in the copy, which nobody has open.
  result<persistence::store_summary> look_at_copy() const {
    return persistence::look_at_store((folder.path() / "elsewhere" / "ps_shard-0").string());
  }
  void TearDown() override {
    if (keeper) caf::anon_send_exit(keeper, caf::exit_reason::user_shutdown);
    keeper = nullptr;
    the_agent = nullptr;
    played_roles::TearDown();
  }

  std::shared_ptr<const common::job_context> keepers_job;
  std::shared_ptr<agent_word> word = std::make_shared<agent_word>();
  protocol::agent_actor the_agent;
  protocol::keeper_actor keeper;
  std::shared_ptr<transport::segment_offers> offers;
  std::deque<transport::gradient_writer> buffers;
};

TEST_F(copied_shard_test, what_it_commits_is_in_the_copy_too) {
  start_keeper();
  start_shard();
  let_it_in();
  ASSERT_TRUE(wait_until_it_counts());
  train(0, 2);
  end_keeper();
  const auto held = look_at_copy();
  ASSERT_TRUE(held) << held.error().message;
  EXPECT_EQ(held->end, step_id{2});
}

TEST_F(copied_shard_test, a_copy_is_filled_with_what_was_there_before) {
  start_shard();
  let_it_in();
  train(0, 2);
  start_keeper();
  ASSERT_TRUE(wait_until_it_counts());
  end_keeper();
  EXPECT_EQ(look_at_copy()->end, step_id{2});
}

/// R21, R25: until the agent says that the keeper is over, which it alone can know.
TEST_F(copied_shard_test, without_its_copy_it_commits_nothing_until_the_agent_says_that_the_keeper_is_over) {
  start_keeper();
  start_shard();
  let_it_in();
  ASSERT_TRUE(wait_until_it_counts());
  end_keeper();
  for (std::uint64_t step = 0; step < common::early_publish_bound; ++step) {
    tell(push(step));
    const auto ahead = await_applied(step + 1);
    ASSERT_TRUE(ahead);
    EXPECT_EQ(ahead->committed, version_id{0});
  }
  word->say({.is_known = true});
  ASSERT_TRUE(await_committed(common::early_publish_bound));
}

TEST_F(copied_shard_test, says_for_how_long_steps_have_waited_for_the_copy_and_how_far_behind_that_is) {
  start_keeper();
  start_shard();
  let_it_in();
  ASSERT_TRUE(wait_until_it_counts());
  train(0, 1);
  ASSERT_TRUE(word->wait_for([](const auto& beat) { return beat.copies.bytes_copied > 0; }));
  EXPECT_FALSE(word->has_heard([](const auto& beat) { return beat.copies.waited_us > 0; }));
  end_keeper();
  for (std::uint64_t step = 1; step <= common::early_publish_bound; ++step) tell(push(step));
  ASSERT_TRUE(await_applied(1 + common::early_publish_bound));
  ASSERT_TRUE(word->wait_for([](const auto& beat) {
    return copy_in(beat).end == version_id{1} && copy_in(beat).behind == common::early_publish_bound;
  }));
  EXPECT_FALSE(word->has_heard([](const auto& beat) { return beat.copies.waited_us > 0; }))
      << "nobody has pushed what follows";
  tell(push(1 + common::early_publish_bound));
  ASSERT_TRUE(word->wait_for([](const auto& beat) { return beat.copies.waited_us > 0; }));
}

/// R22: its predecessor may have told of what the copy has.
TEST_F(copied_shard_test, a_start_enters_once_the_copy_that_its_predecessor_counted_is_whole_or_over) {
  word->say({.is_known = true, .all = {{keeper_start.incarnation, {}, true}}}); // nowhere yet
  start_shard();
  ASSERT_TRUE(
      word->wait_for([](const auto& beat) { return copy_in(beat).counted == keeper_start.incarnation; }));
  EXPECT_FALSE(word->has_heard([](const auto& beat) { return copy_in(beat).is_known; }));
  word->say({.is_known = true});
  let_it_in();
  train(0, 1);
}

TEST_F(copied_shard_test, a_start_enters_with_a_copy_that_has_all_that_it_begins_with) {
  start_keeper();
  start_shard();
  let_it_in();
  ASSERT_TRUE(wait_until_it_counts());
  train(0, 1);
  caf::anon_send_exit(at_work, caf::exit_reason::user_shutdown);
  EXPECT_THAT(end(), HasSubstr("user_shutdown"));
  say_where(true);
  start_shard();
  let_it_in();
  EXPECT_EQ(await_applied(0)->applied, version_id{1});
  train(1, 2);
  end_keeper();
  EXPECT_EQ(look_at_copy()->end, step_id{2});
}

TEST_F(copied_shard_test, a_copy_goes_back_with_it) {
  start_keeper();
  start_shard();
  let_it_in();
  ASSERT_TRUE(wait_until_it_counts());
  train(0, 2);
  tell(protocol::rewind{{1}, {1}, {{{0}, {0}, 0, {}}, {{1}, {1}, 0, {}}}});
  ASSERT_TRUE(
      await<protocol::shard_state>(*peer, [](const auto& one) { return one.timeline == timeline_id{1}; }));
  ASSERT_TRUE(word->wait_for([](const protocol::heartbeat& beat) {
    return copy_in(beat).timeline == timeline_id{1} && copy_in(beat).end == version_id{1};
  }));
  end_keeper();
  EXPECT_EQ(look_at_copy()->timeline, timeline_id{1});
}

// ---- without a log

class copied_snapshots_test : public copied_shard_test {
protected:
  copied_snapshots_test()
      : copied_shard_test("snapshots") {}

  /// Makes that version, of which there is to be a snapshot.
  void make_for_snapshot(std::uint64_t version) {
    tell(protocol::name_snapshot{{0}, {version}});
    tell(push(version - 1));
    ASSERT_TRUE(await_applied(version));
  }
};

TEST_F(copied_snapshots_test, a_snapshot_that_it_commits_is_in_the_copy_too) {
  start_keeper();
  start_shard();
  let_it_in();
  ASSERT_TRUE(wait_until_it_counts());
  make_for_snapshot(1);
  ASSERT_TRUE(await_committed(1));
  tell(push(1));
  ASSERT_TRUE(await_applied(2));
  end_keeper();
  const auto held = look_at_copy();
  ASSERT_TRUE(held) << held.error().message;
  EXPECT_EQ(held->end, step_id{1}) << "of the step since then nothing is kept";
}

TEST_F(copied_snapshots_test, a_copy_is_filled_with_the_snapshots_that_were_there_before) {
  start_shard();
  let_it_in();
  make_for_snapshot(1);
  make_for_snapshot(2);
  ASSERT_TRUE(await_committed(2));
  start_keeper();
  ASSERT_TRUE(wait_until_it_counts());
  end_keeper();
  EXPECT_EQ(look_at_copy()->end, step_id{2});
}

/// R21, R25. Steps do not wait for it.
TEST_F(copied_snapshots_test, without_its_copy_it_commits_none_until_the_agent_says_that_the_keeper_is_over) {
  start_keeper();
  start_shard();
  let_it_in();
  ASSERT_TRUE(wait_until_it_counts());
  end_keeper();
  make_for_snapshot(1);
  for (std::uint64_t step = 1; step < 6; ++step) {
    tell(push(step));
    const auto ahead = await_applied(step + 1);
    ASSERT_TRUE(ahead);
    EXPECT_EQ(ahead->committed, version_id{0});
  }
  word->say({.is_known = true});
  ASSERT_TRUE(await_committed(1));
}

// ---- it is to move (R37)

class moving_snapshots_test : public copied_snapshots_test {
protected:
  /// It stands at version 1, of which there is no snapshot.
  void begin() {
    start_keeper();
    start_shard();
    let_it_in();
    ASSERT_TRUE(wait_until_it_counts());
    tell(push(0));
    ASSERT_TRUE(await_applied(1));
  }
  void say_that_it_moves(bool moves) {
    word->say({.is_known = true, .moves = moves, .all = {{keeper_start.incarnation, here(), true}}});
  }
  static bool is_moving(const protocol::heartbeat& beat) { return beat.copies.is_moving; }
  /// It says so in three heartbeats, one after the other, and in each another progress, or none.
  bool wait_for_three_beats(bool gets_on) {
    return word->wait_until([gets_on](std::vector<protocol::heartbeat> all) {
      std::erase_if(all, [](const auto& beat) { return beat.role.kind != protocol::role_kind::ps_shard; });
      if (all.size() < 3) return false;
      const auto last = std::span(all).last(3);
      return std::ranges::all_of(last, is_moving) &&
             std::ranges::adjacent_find(last, [gets_on](const auto& one, const auto& next) {
               return (one.copies.progress != next.copies.progress) != gets_on;
             }) == last.end();
    });
  }
};

/// Its next start, on the host of the copy, begins where it ended.
TEST_F(moving_snapshots_test, it_ends_when_the_copy_has_its_version) {
  begin();
  say_that_it_moves(true);
  ASSERT_TRUE(await_committed(1));
  EXPECT_TRUE(word->wait_for([](const auto& beat) { return beat.state == "moving"; }));
  tell(push(1));
  EXPECT_THAT(end(), HasSubstr("user_shutdown"));
  end_keeper();
  EXPECT_EQ(look_at_copy()->end, step_id{1});
}

TEST_F(moving_snapshots_test,
       while_its_copy_gets_no_further_it_says_so_and_that_it_does_while_it_waits_for_gradients) {
  begin();
  end_keeper(); // which the agent has not noticed
  say_that_it_moves(true);
  EXPECT_TRUE(wait_for_three_beats(false));
  start_keeper();
  say_that_it_moves(true);
  ASSERT_TRUE(await_committed(1));
  EXPECT_TRUE(wait_for_three_beats(true));
}

TEST_F(moving_snapshots_test, it_goes_on_at_once_when_it_is_told_so_no_more) {
  begin();
  end_keeper();
  say_that_it_moves(true);
  ASSERT_TRUE(wait_for_three_beats(false)) << "it stands still";
  tell(push(1));
  say_that_it_moves(false);
  ASSERT_TRUE(await_applied(2));
  EXPECT_TRUE(word->wait_for([](const auto& beat) { return beat.step == 2 && beat.state == "training"; }));
}

/// As by the end of the root.
TEST_F(moving_snapshots_test, it_goes_on_when_nobody_answers_any_more) {
  begin();
  end_keeper();
  say_that_it_moves(true);
  ASSERT_TRUE(wait_for_three_beats(false)) << "it stands still";
  tell(push(1));
  caf::anon_send_exit(the_agent, caf::exit_reason::user_shutdown);
  ASSERT_TRUE(await_applied(2));
}

} // namespace
} // namespace dlrun::ps_shard
