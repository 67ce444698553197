// The agent of the job and agents of other hosts, as scripts, in one actor system, in virtual time.
#include "actors/agent/store_collector.hpp"

#include "actors/common/history_conversion.hpp"
#include "tests/actors/agent/collector_fixture.hpp"
#include "tests/actors/agent/slow_file.hpp"

namespace dlrun::agent {
namespace {

namespace fs = std::filesystem;
using protocol::host_agent_actor;
using testing::HasSubstr;

/// How a host behaves.
struct host_script {
  fs::path folder;
  int silences = 0;                         ///< so many questions get no answer but an error
  std::string breaks_at{};                  ///< this file cannot be read
  std::function<void()> when_asked = [] {}; ///< for a part
};

bool is_silent(host_script& script) { return script.silences > 0 && script.silences-- > 0; }

host_agent_actor::behavior_type play_host(host_agent_actor::pointer,
                                          const std::shared_ptr<host_script>& script) {
  return asked_host(
      [script](const protocol::store_listing_wanted& wanted) -> caf::result<protocol::store_listing> {
        if (is_silent(*script)) return caf::make_error(caf::sec::request_receiver_down);
        auto files = list_store(common::store_directory(script->folder, wanted.shard));
        if (!files) return protocol::store_listing{files.error().message, {}};
        return protocol::store_listing{{}, std::move(*files)};
      },
      [script](const protocol::store_part_wanted& wanted) -> caf::result<protocol::store_part> {
        script->when_asked();
        if (is_silent(*script)) return caf::make_error(caf::sec::request_receiver_down);
        if (wanted.path == script->breaks_at) return protocol::store_part{"its disk is broken", {}};
        auto bytes = read_store_part(common::store_directory(script->folder, wanted.shard), wanted);
        if (!bytes) return protocol::store_part{bytes.error().message, {}};
        return protocol::store_part{{}, std::move(*bytes)};
      },
      [](const protocol::log_listing_wanted&) { return protocol::log_listing{}; },
      [](const protocol::log_part_wanted&) { return protocol::log_part{}; });
}

class store_collector_test : public collector_test<store_collector, host_script> {
protected:
  fs::path store_here(std::uint32_t shard) const { return common::store_directory(run_dir(), {shard}); }

  /// A host with the store of a PS shard: a large file and a small one.
  store_elsewhere host_with(std::uint32_t shard, const std::string& name) {
    const auto script = std::make_shared<host_script>(host_script{folder.path() / name});
    const auto store = common::store_directory(script->folder, {shard});
    fs::create_directories(store / "log");
    std::ofstream(store / "large") << std::string(bytes_of_large, static_cast<char>('a' + shard));
    std::ofstream(store / "log" / "small") << "small";
    return {{shard}, name, add_host(name, script, play_host)};
  }
  std::vector<collected_store> collect(std::vector<store_elsewhere> stores) {
    return collected<std::vector<collected_store>>(std::move(stores));
  }
  void expect_whole(std::uint32_t shard, const std::string& host) {
    EXPECT_EQ(*list_store(store_here(shard)),
              *list_store(common::store_directory(scripts.at(host)->folder, {shard})));
  }
  std::size_t things_in_run_dir() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(run_dir()), {}));
  }

  static constexpr std::size_t bytes_of_large = 1'000'000;
};

TEST_F(store_collector_test, brings_all_stores_and_says_how_much_that_was) {
  const auto collected = collect({host_with(1, "beta"), host_with(2, "gamma")});
  ASSERT_EQ(collected.size(), 2U);
  expect_whole(1, "beta");
  expect_whole(2, "gamma");
  EXPECT_EQ(collected.at(1).bytes, bytes_of_large + 5);
  const auto told = tell_collected(collected);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told.at(0).event, "stores-collected");
  EXPECT_THAT(told.at(0).text, HasSubstr("2.0 MB, ps_shard 1 from host beta, ps_shard 2 from host gamma"));
}

TEST_F(store_collector_test, where_nothing_is_elsewhere_nothing_is_said) {
  EXPECT_TRUE(tell_collected(collect({})).empty());
}

TEST_F(store_collector_test, a_host_that_is_away_costs_its_own_store_alone) {
  const auto collected = collect({store_elsewhere{{1}, "beta", {}}, host_with(2, "gamma")});
  ASSERT_EQ(collected.size(), 2U);
  EXPECT_FALSE(fs::exists(store_here(1)));
  expect_whole(2, "gamma");
  const auto told = tell_collected(collected);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told.at(0).event, "store-stays");
  for (const auto* word : {"ps_shard 1", "host beta", "away", "copy ps_shard-1"})
    EXPECT_THAT(told.at(0).text, HasSubstr(word));
}

TEST_F(store_collector_test, what_is_not_answered_is_asked_for_again) {
  const auto beta = host_with(1, "beta");
  scripts.at("beta")->silences = 2;
  EXPECT_EQ(collect({beta}).at(0).failure, "");
  expect_whole(1, "beta");
}

TEST_F(store_collector_test, a_host_that_answers_nothing_any_more_is_given_up_and_nothing_is_left) {
  const auto beta = host_with(1, "beta");
  scripts.at("beta")->silences = 1000;
  EXPECT_THAT(collect({beta}).at(0).failure, HasSubstr("does not answer"));
  EXPECT_EQ(things_in_run_dir(), 0U);
}

TEST_F(store_collector_test, a_store_that_cannot_be_read_leaves_the_one_that_was_there) {
  const auto beta = host_with(1, "beta");
  scripts.at("beta")->breaks_at = "log/small";
  fs::create_directories(store_here(1));
  std::ofstream(store_here(1) / "old") << "old";
  const auto collected = collect({beta, host_with(2, "gamma")});
  EXPECT_EQ(collected.at(0).failure, "its disk is broken");
  EXPECT_TRUE(fs::exists(store_here(1) / "old"));
  expect_whole(2, "gamma");
  EXPECT_EQ(things_in_run_dir(), 2U);
}

TEST_F(store_collector_test, a_disk_that_stands_still_holds_up_no_turn_of_the_agent) {
  const auto beta = host_with(1, "beta");
  std::ofstream(common::store_directory(scripts.at("beta")->folder, {1}) / "empty");
  std::optional<test::slow_file> slow;
  scripts.at("beta")->when_asked = [&] {
    if (!slow) slow.emplace(store_here(1).string() + ".part/empty");
  };
  std::optional<std::vector<collected_store>> said;
  begin(std::vector{beta}, said); // all of it comes
  bool has_had_turn = false;
  common::post(agent, [&] { has_had_turn = true; });
  dispatch();
  EXPECT_TRUE(has_had_turn);
  EXPECT_FALSE(said) << "it is made durable";
  slow->release();
  dispatch_until([&] { return said.has_value(); });
  EXPECT_THAT(said->at(0).failure, HasSubstr("make durable"));
  EXPECT_EQ(things_in_run_dir(), 0U);
}

} // namespace
} // namespace dlrun::agent
