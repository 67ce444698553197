// The agent of the job and agents of other hosts, as scripts, in one actor system, in virtual time.
#include "actors/agent/log_collector.hpp"

#include "tests/actors/agent/collector_fixture.hpp"

namespace dlrun::agent {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using protocol::host_agent_actor;
using protocol::role_kind;
using testing::HasSubstr;

/// How a host with logs behaves.
struct log_script {
  fs::path folder;
  int silences = 0;       ///< so many questions get no answer but an error
  bool is_broken = false; ///< no log can be read
  bool is_mute = false;   ///< it answers nothing at all
};

bool answers(log_script& script) { return script.silences == 0 || script.silences-- == 0; }

host_agent_actor::behavior_type play_log_host(host_agent_actor::pointer self,
                                              const std::shared_ptr<log_script>& script) {
  return asked_host(
      [](const protocol::store_listing_wanted&) { return protocol::store_listing{}; },
      [](const protocol::store_part_wanted&) { return protocol::store_part{}; },
      [script, self](const protocol::log_listing_wanted&) -> caf::result<protocol::log_listing> {
        if (script->is_mute) return self->make_response_promise<protocol::log_listing>();
        if (!answers(*script)) return caf::make_error(caf::sec::request_receiver_down);
        return protocol::log_listing{{}, *list_logs(script->folder)};
      },
      [script](const protocol::log_part_wanted& wanted) -> caf::result<protocol::log_part> {
        if (!answers(*script)) return caf::make_error(caf::sec::request_receiver_down);
        if (script->is_broken) return protocol::log_part{"its disk is broken", {}};
        return protocol::log_part{{}, *read_log_part(script->folder, wanted)};
      });
}

class log_collector_test : public collector_test<log_collector, log_script> {
protected:
  static std::string long_log(const std::string& host) {
    std::string text;
    for (int i = 0; text.size() < 1'000'000; ++i) text += host + " line " + std::to_string(i) + "\n";
    return text;
  }
  logging_host host_with_logs(const std::string& name) {
    const auto script = std::make_shared<log_script>(log_script{folder.path() / name});
    fs::create_directories(script->folder / "logs");
    std::ofstream(script->folder / "logs" / "worker-0.log") << long_log(name);
    std::ofstream(script->folder / "logs" / "worker-1.log");
    std::ofstream(script->folder / "logs" / "ps_shard-0.log") << "a line\n";
    return {name, script->folder, add_host(name, script, play_log_host)};
  }
  std::vector<staying_logs> collect(std::vector<logging_host> wanted) {
    return collected<std::vector<staying_logs>>(std::move(wanted));
  }
  std::string copy(const std::string& host, const std::string& name) const {
    std::ifstream in(copied_logs(run_dir(), host) / name, std::ios::binary);
    return {std::istreambuf_iterator<char>{in}, {}};
  }
};

TEST_F(log_collector_test, copies_all_logs_of_all_hosts) {
  EXPECT_TRUE(collect({host_with_logs("beta"), host_with_logs("gamma")}).empty());
  for (const std::string host : {"beta", "gamma"}) {
    EXPECT_EQ(copy(host, "worker-0.log"), long_log(host));
    EXPECT_EQ(copy(host, "ps_shard-0.log"), "a line\n");
    EXPECT_TRUE(fs::exists(copied_logs(run_dir(), host) / "worker-1.log")) << "an empty one";
  }
}

TEST_F(log_collector_test, where_no_host_has_logs_nothing_is_copied) {
  EXPECT_TRUE(collect({}).empty());
  EXPECT_FALSE(fs::exists(run_dir() / "logs"));
}

TEST_F(log_collector_test, a_host_that_is_away_is_told_with_the_place_of_its_logs) {
  const auto staying = collect({{"beta", "/there/run", {}}, host_with_logs("gamma")});
  EXPECT_EQ(copy("gamma", "ps_shard-0.log"), "a line\n");
  const auto told = tell_staying(staying);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told.at(0).event, "logs-stay");
  EXPECT_EQ(told.at(0).place, (protocol::event_place{"beta", "that host is away"}));
  for (const auto* word : {"host beta", "/there/run/logs", "away"})
    EXPECT_THAT(told.at(0).text, HasSubstr(word));
}

TEST_F(log_collector_test, a_question_that_is_not_answered_is_asked_again) {
  const auto beta = host_with_logs("beta");
  scripts.at("beta")->silences = 2;
  EXPECT_TRUE(collect({beta}).empty());
  EXPECT_EQ(copy("beta", "worker-0.log"), long_log("beta"));
}

TEST_F(log_collector_test, a_host_that_fails_costs_its_own_logs_alone_and_leaves_no_part) {
  const auto beta = host_with_logs("beta");
  scripts.at("beta")->is_broken = true;
  const auto staying = collect({beta, host_with_logs("gamma")});
  ASSERT_EQ(staying.size(), 1U);
  EXPECT_EQ(staying.at(0).why, "its disk is broken");
  EXPECT_TRUE(fs::is_empty(copied_logs(run_dir(), "beta")));
  EXPECT_EQ(copy("gamma", "worker-0.log"), long_log("gamma"));
}

TEST_F(log_collector_test, hosts_that_never_answer_do_not_hold_up_the_end_for_longer_than_its_patience) {
  std::vector<logging_host> silent;
  for (const std::string name : {"beta", "delta", "epsilon", "gamma", "zeta"}) {
    silent.push_back(host_with_logs(name));
    scripts.at(name)->is_mute = true;
  }
  const auto staying = collect(silent);
  EXPECT_LE(took, log_collector::log_patience + 200ms);
  ASSERT_EQ(staying.size(), silent.size());
  EXPECT_THAT(staying.front().why, HasSubstr("does not answer"));
  EXPECT_EQ(staying.back().why, "it takes too long");
}

} // namespace
} // namespace dlrun::agent
