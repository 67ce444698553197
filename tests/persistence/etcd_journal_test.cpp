/// What only a journal elsewhere can meet: a real etcd whose members die, stand still and refuse.
#include "persistence/etcd_journal.hpp"
#include "persistence/etcd_json.hpp"
#include "tests/base/scripted_server.hpp"
#include "tests/persistence/etcd_servers.hpp"

#include <future>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dlrun::persistence {
namespace {

using std::chrono::milliseconds;
using entries = std::map<std::string, std::string>;

constexpr etcd_patience short_patience{milliseconds(100),
                                       milliseconds(300)}; // for an answer that cannot come
constexpr auto prefix = "dlrun/test";

result<void> put(journal& into, const std::string& key, const std::string& value) {
  const journal_write change{key, value};
  return into.write(std::span(&change, 1));
}

std::unique_ptr<journal> take(const test::etcd_servers& etcd, std::uint64_t term,
                              etcd_patience patience = {}) {
  return etcd_journal::take({etcd.place(), prefix, {term}, patience}).value();
}

/// A failure of each test at once, with the way out.
class etcd_is_there : public testing::Environment {
  void SetUp() override {
    if (!test::etcd_servers::are_installed())
      FAIL() << "no etcd is installed: it is in Debian's package etcd-server, which "
                "scripts/install_dependencies --with-check installs";
  }
};
const auto* const needed = testing::AddGlobalTestEnvironment(new etcd_is_there);

TEST(etcd_journal, an_owner_that_lives_is_deposed_and_what_it_writes_changes_nothing) {
  const test::etcd_servers etcd(1);
  const auto first = take(etcd, 1);
  ASSERT_TRUE(put(*first, "a", "1"));
  const auto second = take(etcd, 2);
  const auto late = put(*first, "a", "late");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, error_code::fenced);
  EXPECT_NE(late.error().message.find("was taken by incarnation 2"), std::string::npos)
      << late.error().message;
  EXPECT_FALSE(put(*first, "b", "later"));
  ASSERT_TRUE(put(*second, "c", "3"));
  EXPECT_EQ(take(etcd, 3)->contents(), (entries{{"a", "1"}, {"c", "3"}}));
}

TEST(etcd_journal, of_two_that_take_one_term_one_has_it) {
  const test::etcd_servers etcd(1);
  const auto first = take(etcd, 7);
  EXPECT_EQ(etcd_journal::take({etcd.place(), prefix, {7}}).error().code, error_code::fenced);
  EXPECT_TRUE(put(*first, "a", "1"));
}

TEST(etcd_journal, a_look_fences_nobody) {
  const test::etcd_servers etcd(1);
  EXPECT_EQ(etcd_journal::read(etcd.place(), prefix).value(), std::nullopt) << "there is none";
  const auto owner = take(etcd, 5);
  ASSERT_TRUE(put(*owner, "a", "1"));
  const auto seen = etcd_journal::read(etcd.place(), prefix).value().value();
  EXPECT_EQ(seen.owner, incarnation{5});
  EXPECT_EQ(seen.entries, (entries{{"a", "1"}}));
  EXPECT_TRUE(put(*owner, "a", "2"));
}

TEST(etcd_journal, without_an_answer_a_write_is_unknown_and_the_next_owner_finds_it_done_or_not) {
  const test::etcd_servers etcd(1);
  const auto owner = take(etcd, 1);
  ASSERT_TRUE(put(*owner, "a", "1"));
  etcd.stop(0);
  const auto unknown = put(*owner, "a", "2");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, error_code::timed_out);
  EXPECT_NE(unknown.error().message.find(etcd.endpoint(0)), std::string::npos) << unknown.error().message;
  EXPECT_NE(unknown.error().message.find("cluster.journal.etcd.endpoints"), std::string::npos);
  etcd.go_on(0);
  EXPECT_EQ(put(*owner, "a", "3").error().code, error_code::timed_out) << "it takes no more";
  const auto found = take(etcd, 2)->contents();
  EXPECT_TRUE(found == (entries{{"a", "1"}}) || found == (entries{{"a", "2"}})) << found.at("a");
}

/// Every write goes to a member that stands still first, and to the next one then; what the first
/// does when it goes on comes late, many times.
TEST(etcd_journal, what_is_asked_for_twice_is_done_once_however_late_the_first_one_arrives) {
  const test::etcd_servers etcd(3);
  const auto owner = take(etcd, 1, {milliseconds(200), milliseconds(20'000)});
  for (int write = 0; write < 6; ++write) {
    const auto stopped = static_cast<std::size_t>(write) % etcd.size();
    etcd.stop(stopped);
    ASSERT_TRUE(put(*owner, "number", std::to_string(write)));
    ASSERT_TRUE(put(*owner, std::to_string(write), "done"));
    etcd.go_on(stopped);
  }
  const auto found = take(etcd, 2)->contents();
  EXPECT_EQ(found.at("number"), "5");
  EXPECT_EQ(found.size(), 7U);
}

TEST(etcd_journal, goes_on_when_the_leader_is_killed_or_stopped) {
  test::etcd_servers etcd(3);
  const auto owner = take(etcd, 1, {milliseconds(400), milliseconds(20'000)});
  for (int round = 0; round < 4; ++round) {
    const auto lost = etcd.leader();
    if (round % 2 == 0)
      etcd.kill(lost);
    else
      etcd.stop(lost);
    for (int write = 0; write < 5; ++write)
      ASSERT_TRUE(put(*owner, std::to_string(round), std::to_string(write))) << "round " << round;
    if (round % 2 == 0)
      etcd.start(lost);
    else
      etcd.go_on(lost);
  }
  EXPECT_EQ(take(etcd, 2)->contents(), (entries{{"0", "4"}, {"1", "4"}, {"2", "4"}, {"3", "4"}}));
}

TEST(etcd_journal, without_a_quorum_nothing_is_read_or_written_and_all_members_are_named) {
  test::etcd_servers etcd(3);
  const auto owner = take(etcd, 1);
  etcd.kill(0);
  etcd.kill(1);
  EXPECT_EQ(put(*owner, "a", "1").error().code, error_code::timed_out);
  const auto refused = etcd_journal::read(etcd.place(), prefix, short_patience).error();
  EXPECT_EQ(refused.code, error_code::timed_out);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_NE(refused.message.find(etcd.endpoint(i)), std::string::npos) << refused.message;
  EXPECT_EQ(etcd_journal::probe(etcd.place(), prefix, 1, short_patience).error().code, error_code::timed_out);
}

/// Who refuses at once is asked again fifty times a second: however often that was, an attempt has
/// a limit.
TEST(etcd_journal, members_that_refuse_for_a_while_and_then_say_nothing_are_given_up_in_time) {
  const test::silent_member member;
  const auto begun = std::chrono::steady_clock::now();
  auto refused = std::async(std::launch::async, [&] {
    return etcd_journal::read({{member.endpoint()}}, prefix, {milliseconds(500), milliseconds(3000)});
  });
  EXPECT_EQ(refused.wait_for(milliseconds(2000)), std::future_status::timeout) << "nobody has answered";
  member.accept();
  ASSERT_EQ(refused.wait_for(milliseconds(6000)), std::future_status::ready);
  EXPECT_EQ(refused.get().error().code, error_code::timed_out);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, milliseconds(6000));
}

TEST(etcd_journal, another_cluster_is_refused) {
  const test::etcd_servers etcd(1);
  auto place = etcd.place();
  place.cluster_id = etcd_journal::probe(place, prefix, 100).value();
  EXPECT_TRUE(etcd_journal::take({place, prefix, {1}}));
  place.cluster_id = "12";
  const auto refused = etcd_journal::take({place, prefix, {2}}).error();
  EXPECT_EQ(refused.code, error_code::bad_usage);
  EXPECT_NE(refused.message.find("the journal of this run is in 12"), std::string::npos) << refused.message;
}

TEST(etcd_journal, more_changes_than_etcd_takes_are_refused_before_and_when_they_come) {
  const test::etcd_servers etcd(1);
  EXPECT_TRUE(etcd_journal::probe(etcd.place(), prefix, 127));
  const auto probed = etcd_journal::probe(etcd.place(), prefix, 128).error();
  EXPECT_EQ(probed.code, error_code::limit_exceeded);
  EXPECT_NE(probed.message.find("--max-txn-ops"), std::string::npos) << probed.message;
  const std::vector<journal_write> many(128, {"a", "1"});
  EXPECT_EQ(take(etcd, 1)->write(many).error().code, error_code::limit_exceeded);
  const auto large = put(*take(etcd, 2), "a", std::string(2'000'000, 'x')).error();
  EXPECT_EQ(large.code, error_code::limit_exceeded);
  EXPECT_NE(large.message.find("--max-request-bytes"), std::string::npos) << large.message;
  EXPECT_TRUE(take(etcd, 3)->contents().empty());
}

TEST(etcd_journal, keys_of_something_else_are_left_alone) {
  const test::etcd_servers etcd(1);
  ASSERT_NE(etcd.post(0, "/v3/kv/put", R"({"key":"ZGxydW4vdGVzdC9vd25lcg==","value":"eA=="})"), "");
  for (const auto& refused : {etcd_journal::take({etcd.place(), prefix, {1}}).error(),
                              etcd_journal::read(etcd.place(), prefix).error()}) {
    EXPECT_EQ(refused.code, error_code::bad_usage);
    EXPECT_NE(refused.message.find("name another cluster.journal.etcd.prefix"), std::string::npos)
        << refused.message;
  }
}

TEST(etcd_journal, another_one_below_its_prefix_is_left_alone_and_leaves_it_alone) {
  const test::etcd_servers etcd(1);
  const auto outer = etcd_journal::take({etcd.place(), "team", {1}}).value();
  ASSERT_TRUE(put(*outer, "a", "outer"));
  const auto inner = etcd_journal::take({etcd.place(), "team/job-3", {1}}).value();
  ASSERT_TRUE(put(*inner, "a", "inner"));
  const auto next = etcd_journal::take({etcd.place(), "team", {2}});
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_EQ((*next)->contents(), (entries{{"a", "outer"}}));
  EXPECT_EQ(etcd_journal::read(etcd.place(), "team/job-3")->value().entries, (entries{{"a", "inner"}}));
}

TEST(etcd_journal, a_prefix_is_free_where_nothing_is_under_it_and_no_other_journal_around_it) {
  const test::etcd_servers etcd(1);
  ASSERT_TRUE(put(*etcd_journal::take({etcd.place(), "team/job-3", {1}}).value(), "a", "1"));
  for (const auto* free : {"team/job-4", "team/job", "tea", "dlrun/x"})
    EXPECT_TRUE(etcd_journal::check_free(etcd.place(), free)) << free;
  const std::map<std::string, std::vector<std::string>> taken{
      {"team/job-3", {"the key team/job-3/entry/a", "--prefix team/job-3/'"}},
      {"team", {"the key team/job-3/entry/a", "--prefix team/'"}},
      {"team/job-3/retry/2", {"another run under team/job-3/", "--prefix team/job-3/'"}},
      {"team/job-3/entry", {"the key team/job-3/entry/a", "prefix than team/job-3/entry"}}};
  for (const auto& [prefix, told] : taken) {
    const auto refused = etcd_journal::check_free(etcd.place(), prefix);
    ASSERT_FALSE(refused) << prefix;
    EXPECT_EQ(refused.error().code, error_code::bad_usage);
    for (const auto& words : told)
      EXPECT_NE(refused.error().message.find(words), std::string::npos) << refused.error().message;
  }
}

/// Its quota is eight pages of a thousand bytes; compaction, defragmentation and the end of the
/// alarm make room again.
TEST(etcd_journal, without_space_it_is_a_full_disk_until_there_is_space) {
  const test::etcd_servers etcd(1, {"--quota-backend-bytes=1000000"});
  const auto owner = take(etcd, 1);
  result<void> written;
  for (int i = 0; written && i < 100; ++i) written = put(*owner, "a", std::string(100'000, 'x'));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, error_code::disk_full) << written.error().message;
  EXPECT_NE(written.error().message.find("etcdctl alarm disarm"), std::string::npos);
  EXPECT_EQ(put(*owner, "b", "small").error().code, error_code::disk_full);
  const auto seen = nlohmann::json::parse(etcd.post(0, "/v3/kv/range", R"({"key":"eA=="})"));
  const auto revision = seen["header"]["revision"].get<std::string>();
  ASSERT_NE(etcd.post(0, "/v3/kv/compaction", R"({"physical":true,"revision":")" + revision + "\"}"), "");
  ASSERT_NE(etcd.post(0, "/v3/maintenance/defragment", "{}"), "");
  const auto member = seen["header"]["member_id"].get<std::string>();
  const auto disarm = R"({"action":"DEACTIVATE","alarm":"NOSPACE","memberID":")" + member + "\"}";
  ASSERT_NE(etcd.post(0, "/v3/maintenance/alarm", disarm), "");
  EXPECT_TRUE(put(*owner, "a", "small"));
  const auto known = owner->contents();
  EXPECT_EQ(known.at("a"), "small") << "whichever of those before etcd had done";
  EXPECT_EQ(take(etcd, 2)->contents(), known);
}

/// The first write that is too much etcd does, and says that it has no space.
TEST(etcd_journal, a_term_that_etcd_took_without_having_space_is_had_by_who_asked_for_it) {
  const test::etcd_servers etcd(1);
  int refusals = 0;
  const test::scripted_server full([&](const base::http_request& asked) {
    auto answer = etcd.post(0, asked.url, asked.body);
    const bool writes = asked.body.find("request_put") != std::string::npos;
    if (!writes || ++refusals > 1) return base::http_answer{http_ok, std::move(answer)};
    return base::http_answer{429, R"({"error":"etcdserver: mvcc: database space exceeded","code":8})"};
  });
  std::vector<error> waited_for;
  const auto taken = etcd_journal::take(
      {.place = {{full.endpoint()}}, .prefix = prefix, .owner = {1}, .keep_trying = [&](const error& why) {
         waited_for.push_back(why);
         return true;
       }});
  ASSERT_TRUE(taken) << taken.error().message;
  ASSERT_EQ(waited_for.size(), 1U);
  EXPECT_EQ(waited_for.front().code, error_code::disk_full);
  EXPECT_TRUE(put(**taken, "a", "1"));
  EXPECT_EQ(etcd_journal::take({{{full.endpoint()}}, prefix, {1}}).error().code, error_code::fenced);
}

TEST(etcd_journal, a_user_of_etcd_is_asked_for_by_password_and_stays_when_the_token_expires) {
  const test::etcd_servers etcd(1, {"--auth-token-ttl=1"});
  ASSERT_NE(etcd.post(0, "/v3/auth/user/add", R"({"name":"root","password":"secret"})"), "");
  ASSERT_NE(etcd.post(0, "/v3/auth/role/add", R"({"name":"root"})"), "");
  ASSERT_NE(etcd.post(0, "/v3/auth/user/grant", R"({"user":"root","role":"root"})"), "");
  ASSERT_NE(etcd.post(0, "/v3/auth/enable", "{}"), "");
  EXPECT_EQ(etcd_journal::take({etcd.place(), prefix, {1}}).error().code, error_code::bad_usage);

  const test::temporary_folder folder;
  auto place = etcd.place();
  place.user_file = (folder.path() / "user").string();
  EXPECT_EQ(etcd_journal::take({place, prefix, {1}}).error().code, error_code::bad_usage) << "there is none";
  std::ofstream(place.user_file) << "root:wrong\n";
  const auto refused = etcd_journal::take({place, prefix, {1}}).error();
  EXPECT_EQ(refused.code, error_code::bad_usage);
  EXPECT_EQ(refused.message.find("wrong"), std::string::npos) << "passwords are told nobody";
  std::ofstream(place.user_file) << "root:\xe9t\xe9\n";
  const auto not_text = etcd_journal::take({place, prefix, {1}}).error();
  EXPECT_EQ(not_text.code, error_code::bad_usage);
  EXPECT_NE(not_text.message.find("is not UTF-8 from byte 5 on"), std::string::npos) << not_text.message;
  std::ofstream(place.user_file) << "root:secret\n";
  const auto owner = etcd_journal::take({place, prefix, {1}}).value();
  const auto until = std::chrono::steady_clock::now() + milliseconds(2500); // two tokens long
  for (int i = 0; std::chrono::steady_clock::now() < until; ++i)
    ASSERT_TRUE(put(*owner, "a", std::to_string(i)));
}

/// Each request takes two thirds of what an attempt may: the second one has a third left.
TEST(etcd_journal, to_authenticate_and_to_ask_are_one_attempt) {
  std::promise<void> hurry; // nobody does
  const auto hurried = hurry.get_future().share();
  const test::scripted_server slow([&hurried](const base::http_request&) {
    hurried.wait_for(milliseconds(400));
    return base::http_answer{http_ok, R"({"token":"t","header":{"cluster_id":"1"},"responses":[{},{}]})"};
  });
  const test::temporary_folder folder;
  const auto user_file = (folder.path() / "user").string();
  std::ofstream(user_file) << "root:secret\n";
  const auto refused = etcd_journal::read({.endpoints = {slow.endpoint()}, .user_file = user_file}, prefix,
                                          {milliseconds(600), milliseconds(600)});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::timed_out);
}

TEST(etcd_journal, where_no_etcd_is_the_address_is_named) {
  const auto refused = etcd_journal::probe({{"http://127.0.0.1:1"}}, prefix, 1, short_patience).error();
  EXPECT_EQ(refused.code, error_code::timed_out);
  EXPECT_NE(refused.message.find("http://127.0.0.1:1"), std::string::npos) << refused.message;
}

} // namespace
} // namespace dlrun::persistence
