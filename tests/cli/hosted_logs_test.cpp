#include "cli/hosted_logs.hpp"

#include "actors/agent/control_socket.hpp"
#include "actors/agent/event_json.hpp"
#include "actors/agent/log_files.hpp"
#include "cli/log_lines.hpp"
#include "job/run_layout.hpp"
#include "tests/data/files.hpp"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

namespace dlrun::cli {
namespace {

namespace fs = std::filesystem;
using protocol::role_kind;
using protocol::role_name;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr role_name worker_1{role_kind::worker, 1};

/// A root and the logs of the host beta, by name.
class played_root {
public:
  result<std::string> answer(const std::string& request) {
    if (!is_there) return fail(error_code::role_lost, "the root is gone");
    std::istringstream words{request};
    std::string verb, host, role, index;
    std::size_t offset = 0;
    words >> verb >> host;
    if (!beta.empty()) return beta;
    if (verb == "logs") return "+" + listing();
    words >> role >> index >> offset;
    ++parts;
    const auto& log = logs.at(role + "-" + index);
    return "+" + (offset < log.size() ? log.substr(offset, part_bytes) : "");
  }

  std::map<std::string, std::string> logs;
  std::string beta;     ///< what is answered in place of its logs
  bool is_there = true; ///< the root
  std::size_t part_bytes = 7;
  int parts = 0; ///< that were asked for

private:
  std::string listing() const {
    std::string all;
    for (const auto& [name, log] : logs)
      all += (all.empty() ? "" : ",") +
             ("[\"" + name.substr(0, name.rfind('-')) + "\"," + name.substr(name.rfind('-') + 1) + "," +
              std::to_string(log.size()) + "]");
    return "{\"logs\":[" + all + "]}";
  }
};

class hosted_logs_test : public testing::Test {
protected:
  hosted_logs_test() {
    fs::create_directories(copies());
    tell("role-placed", "a reason");
  }
  hosted_logs make() {
    return {folder.path(), {{"beta", "/there/run"}}, [this](const auto& request) {
              return root.answer(request);
            }};
  }
  log_merger merge(log_filter filter = {}) {
    return {folder.path(), std::move(filter), {{"beta", "/there/run"}}, [this](const auto& request) {
              return root.answer(request);
            }};
  }
  void tell(const std::string& event, const std::string& reason) const {
    protocol::job_event told{.event = event, .role = worker_1, .incarnation = {1}, .text = "text"};
    told.place = {"beta", reason};
    std::ofstream{folder.path() / "events.jsonl", std::ios::app} << agent::to_json_line(told);
  }
  fs::path copies() const { return agent::copied_logs(folder.path(), "beta"); }
  void copy(const std::string& content) const {
    std::ofstream{copies() / "worker-1.log", std::ios::binary} << content;
  }
  void root_is_killed() {
    root.is_there = false;
    std::ofstream{folder.path() / run_layout::agent};
  }
  static std::vector<std::string> all(host_log& log) {
    std::vector<std::string> lines;
    while (auto line = log.next()) lines.push_back(*line);
    return lines;
  }
  static std::vector<std::string> missing(hosted_logs& logs, bool is_over) {
    return logs.missing(is_over, [](const auto&) { return true; });
  }

  test::temporary_folder folder;
  played_root root;
};

TEST_F(hosted_logs_test, a_log_is_read_in_parts_as_far_as_it_is_written_and_on) {
  root.logs["worker-1"] = "one\ntwo two two two\nthr";
  auto logs = make();
  const auto found = logs.look();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0]->role(), worker_1);
  EXPECT_EQ(found[0]->host(), "beta");
  EXPECT_THAT(all(*found[0]), ElementsAre("one", "two two two two"));
  root.logs["worker-1"] += "ee\n";
  root.logs["ps_shard-0"] = "another\n";
  EXPECT_THAT(logs.look(), SizeIs(1));
  EXPECT_THAT(all(*found[0]), ElementsAre("three"));
  EXPECT_EQ(found[0]->rest(), std::nullopt);
  root.logs["worker-1"] += "last words";
  EXPECT_THAT(logs.look(), IsEmpty());
  EXPECT_THAT(all(*found[0]), IsEmpty());
  EXPECT_EQ(found[0]->rest(), "last words");
  EXPECT_THAT(missing(logs, true), IsEmpty());
}

TEST_F(hosted_logs_test, what_has_not_grown_is_not_asked_for) {
  root.logs["worker-1"] = "one\n";
  auto logs = make();
  const auto found = logs.look();
  EXPECT_THAT(all(*found[0]), ElementsAre("one"));
  const auto before = root.parts;
  logs.look();
  EXPECT_THAT(all(*found[0]), IsEmpty());
  EXPECT_EQ(root.parts, before);
}

TEST_F(hosted_logs_test, at_the_end_the_copy_goes_on_where_the_log_was_read) {
  root.logs["worker-1"] = "one\nt";
  auto logs = make();
  const auto found = logs.look();
  EXPECT_THAT(all(*found[0]), ElementsAre("one"));
  copy("one\ntwo\nthree\n");
  root.beta = ".";
  logs.look();
  EXPECT_THAT(all(*found[0]), ElementsAre("two", "three"));
  EXPECT_THAT(missing(logs, true), IsEmpty());
}

TEST_F(hosted_logs_test, a_copy_without_its_beginning_says_so_to_who_has_not_read_that) {
  const auto line = agent::left_out_line(10, "/there/run/logs/worker-1.log");
  const auto shown = line.substr(0, line.size() - 1);
  copy(line + "56\nseven\n"); // of "one\ntwo\n3456\nseven\n" the bytes from 10 on
  root.logs["worker-1"] = "one\ntwo\n34";
  auto follows = make();
  const auto followed = follows.look();
  EXPECT_THAT(all(*followed[0]), ElementsAre("one", "two"));
  root.is_there = false;
  follows.look();
  EXPECT_THAT(all(*followed[0]), ElementsAre("3456", "seven"));
  auto comes_later = make();
  EXPECT_THAT(all(*comes_later.look().at(0)), ElementsAre(shown, "56", "seven"));
}

TEST_F(hosted_logs_test, a_host_that_comes_back_with_an_empty_folder_is_read_anew) {
  root.logs["worker-1"] = "one\ntwo\n";
  auto logs = make();
  const auto found = logs.look();
  all(*found[0]);
  root.logs["worker-1"] = "new\n";
  logs.look();
  EXPECT_THAT(all(*found[0]), ElementsAre("new"));
}

TEST_F(hosted_logs_test, a_line_without_an_end_takes_no_memory_without_one) {
  root.part_bytes = 30'000;
  root.logs["worker-1"] = std::string(200'000, 'x');
  auto logs = make();
  const auto pieces = all(*logs.look().at(0));
  ASSERT_THAT(pieces, SizeIs(3));
  for (const auto& piece : pieces) EXPECT_EQ(piece.size(), 65'536U);
}

TEST_F(hosted_logs_test, a_host_that_is_away_is_told_once_with_its_roles_and_the_place_there) {
  root.beta = "-that host is away";
  auto logs = make();
  EXPECT_THAT(logs.look(), IsEmpty());
  EXPECT_THAT(missing(logs, false),
              ElementsAre(AllOf(HasSubstr("host beta"), HasSubstr("worker 1"), HasSubstr("that host is away"),
                                HasSubstr("'/there/run/logs'"))));
  logs.look();
  EXPECT_THAT(missing(logs, false), IsEmpty()) << "told already";
  root.beta.clear();
  logs.look();
  EXPECT_THAT(missing(logs, true), IsEmpty()) << "it is back";
  root.beta = "-that host is away";
  logs.look();
  EXPECT_THAT(missing(logs, true), SizeIs(1));
  EXPECT_THAT(logs.missing(true, [](const auto&) { return false; }), IsEmpty()) << "of no interest";
}

TEST_F(hosted_logs_test, what_was_not_copied_at_the_end_is_told_with_the_reason) {
  copy("of an earlier end\n");
  root.is_there = false;
  tell("logs-stay", "it does not answer");
  auto logs = make();
  EXPECT_THAT(logs.look(), SizeIs(1)) << "the older copy is shown";
  EXPECT_THAT(missing(logs, false), IsEmpty()) << "the end is not there yet";
  EXPECT_THAT(missing(logs, true), ElementsAre(HasSubstr("it does not answer")));
}

TEST_F(hosted_logs_test, of_a_run_that_has_ended_with_its_logs_copied_nothing_is_missing) {
  copy("all of it\n");
  root.is_there = false;
  tell("logs-stay", "of a start before");
  tell("role-placed", "again");
  auto logs = make();
  logs.look();
  EXPECT_THAT(missing(logs, true), IsEmpty());
  fs::remove_all(copies());
  EXPECT_THAT(missing(logs, true), ElementsAre(HasSubstr("not copied")));
}

TEST_F(hosted_logs_test, of_a_root_that_was_killed_all_other_hosts_are_told) {
  copy("of an earlier end\n");
  root_is_killed();
  auto logs = make();
  logs.look();
  EXPECT_THAT(missing(logs, true), ElementsAre(HasSubstr("the root of the run does not answer")));
}

TEST_F(hosted_logs_test, a_listing_that_no_root_sends_is_none) {
  for (const auto* listing :
       {"+", "+{", "+{\"logs\":3}", "+{\"logs\":[[1]]}", "+{\"logs\":[[\"worker\",-1,\"x\"]]}"}) {
    root.beta = listing;
    auto logs = make();
    EXPECT_THAT(logs.look(), IsEmpty()) << listing;
    EXPECT_THAT(missing(logs, true), SizeIs(1)) << listing;
  }
  root.beta = R"(+{"logs":[["../../etc/passwd",1,5],["worker",1,0]]})";
  auto logs = make();
  EXPECT_THAT(logs.look(), SizeIs(1)) << "worker 1 alone";
}

constexpr auto head_here = "2026-11-22T02:40:01.000 info worker-1 inc=1 ";
constexpr auto head_there = "2026-11-22T02:40:02.000 info worker-1 inc=2 ";

TEST_F(hosted_logs_test, a_role_that_ran_on_two_hosts_has_two_logs_and_lines_say_which) {
  std::ofstream{folder.path() / "logs" / "worker-1.log"} << head_here << "lease: here\n";
  root.logs["worker-1"] = std::string{head_there} + "lease: there\nterminate called\n";
  auto logs = merge({"worker-1", ""});
  EXPECT_EQ(logs.next()->whole, std::string{head_here} + "lease: here");
  const auto there = logs.next();
  ASSERT_TRUE(there);
  EXPECT_EQ(there->whole, "2026-11-22T02:40:02.000 info worker-1@beta inc=2 lease: there");
  EXPECT_THAT(to_json(*there), HasSubstr(R"("incarnation":2,"host":"beta","event":"lease")"));
  EXPECT_EQ(logs.next()->head.host, "beta");
  EXPECT_FALSE(logs.next());
}

TEST_F(hosted_logs_test, lines_in_json_of_another_host_say_so_too) {
  root.logs["worker-1"] =
      R"({"time":"2026-11-22T02:40:02.500+01:00","level":"info","role":"worker","index":1,)"
      R"("incarnation":3,"event":"lease","text":"slots"})"
      "\n";
  auto logs = merge();
  EXPECT_EQ(logs.next()->whole, "2026-11-22T02:40:02.500 info worker-1@beta inc=3 lease: slots");
}

} // namespace
} // namespace dlrun::cli
