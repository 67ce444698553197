#include "kubernetes/pod_watch.hpp"

#include "tests/kubernetes/played_api.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dlrun::kubernetes {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using namespace std::chrono_literals;

json pod(int slot, const std::string& version = "") {
  json made{{"metadata",
             {{"name", fmt::format("job-hosts-{}-1", slot)},
              {"uid", fmt::format("u{}", slot)},
              {"labels", {{slot_label, std::to_string(slot)}, {incarnation_label, "1"}}}}}};
  if (!version.empty()) made["metadata"]["resourceVersion"] = version;
  return made;
}

std::string event(const std::string& type, const json& object) {
  return json{{"type", type}, {"object", object}}.dump() + "\n";
}

std::string bookmark(const std::string& version) {
  return event("BOOKMARK", {{"kind", "Pod"}, {"metadata", {{"resourceVersion", version}}}});
}

/// One watch after another, each with what the server sends then; behind the last nobody goes on.
class pod_watch_test : public testing::Test {
protected:
  struct sent {
    std::string parts{};
    result<base::http_answer> end = base::http_answer{200, ""};
    std::chrono::milliseconds lasts{60'000};
  };

  pod_watch_test() {
    api.answer = [this](const base::http_request& asked) {
      lists.push_back(line_of(asked));
      return base::http_answer{200, listed.dump()};
    };
    api.streams = [this](const base::http_request& asked, const base::http_stream& how) {
      watches.push_back(line_of(asked));
      if (next == streams.size()) {
        is_over = true;
        return result<base::http_answer>{base::http_answer{200, ""}};
      }
      auto& now = streams[next++];
      api.now += now.lasts;
      if (!now.parts.empty()) how.take(now.end ? now.end->status : 200, now.parts);
      return now.end;
    };
  }

  void run() {
    auto client = api.make_client();
    pod_watch watch{client,
                    {.selector = "a=b,c=d",
                     .tell =
                         [&](pod_news news) {
                           told.push_back(text_of(news));
                           if (told.back() == doubtful) watch.list_anew();
                         },
                     .complain = [this](const api_refusal& why) { complaints.push_back(why.message); },
                     .works = [this] { ++worked; },
                     .goes_on = [this] { return !is_over; }}};
    watch.run();
  }

  static std::string text_of(const pod_news& news) {
    if (const auto* gone = std::get_if<pod_gone>(&news)) return "gone " + gone->uid;
    if (const auto* one = std::get_if<pod_record>(&news)) return "pod " + one->uid;
    std::string all = "all";
    for (const auto& one : std::get<pod_listing>(news).pods) all += " " + one.uid;
    return all;
  }

  played_api api;
  json listed{{"metadata", {{"resourceVersion", "10"}}}, {"items", json::array({pod(0), pod(1)})}};
  std::vector<sent> streams;
  std::size_t next = 0;
  bool is_over = false;
  std::string doubtful{}; ///< news, upon which it is asked for a list
  int worked = 0;         ///< times that it said so
  std::vector<std::string> lists{}, watches{}, told{}, complaints{};
};

TEST_F(pod_watch_test, lists_pods_and_tells_what_becomes_of_them) {
  streams = {
      {event("ADDED", pod(2, "11")) + event("MODIFIED", pod(0, "12")) + event("DELETED", pod(1, "13"))}};
  run();
  EXPECT_THAT(told, ElementsAre("all u0 u1", "pod u2", "pod u0", "gone u1"));
  EXPECT_THAT(lists, ElementsAre("GET /api/v1/namespaces/team-a/pods?labelSelector=a%3Db%2Cc%3Dd&limit=100"));
  EXPECT_EQ(watches.front(), "GET /api/v1/namespaces/team-a/pods?labelSelector=a%3Db%2Cc%3Dd&watch=true&"
                             "allowWatchBookmarks=true&timeoutSeconds=270&resourceVersion=10");
}

TEST_F(pod_watch_test, lists_anew_when_it_is_asked_to_and_once) {
  streams = {{event("ADDED", pod(2, "11"))}, {event("ADDED", pod(3, "14"))}};
  doubtful = "pod u2";
  run();
  EXPECT_THAT(told, ElementsAre("all u0 u1", "pod u2", "all u0 u1", "pod u3"));
  EXPECT_THAT(lists, SizeIs(2));
  EXPECT_THAT(watches[1], HasSubstr("resourceVersion=10")) << "as the list says";
  EXPECT_THAT(complaints, IsEmpty());
}

TEST_F(pod_watch_test, asks_for_another_time_each_time) {
  for (const auto& [chance, seconds] : {std::pair{0.0, "240&"}, {0.999, "299&"}}) {
    api.chance = chance;
    is_over = false;
    run();
    EXPECT_THAT(watches.back(), HasSubstr(std::string{"timeoutSeconds="} + seconds));
  }
}

TEST_F(pod_watch_test, lists_page_after_page) {
  api.answer = [this](const base::http_request& asked) {
    lists.push_back(line_of(asked));
    const bool is_first = lists.size() == 1;
    auto page =
        json{{"metadata", {{"resourceVersion", "10"}}}, {"items", json::array({pod(is_first ? 0 : 1)})}};
    if (is_first) page["metadata"]["continue"] = "next/=";
    return base::http_answer{200, page.dump()};
  };
  run();
  EXPECT_THAT(told, ElementsAre("all u0 u1"));
  ASSERT_THAT(lists, SizeIs(2));
  EXPECT_THAT(lists[1], HasSubstr("&continue=next%2F%3D"));
}

TEST_F(pod_watch_test, goes_on_at_once_where_it_was_when_the_server_ends_it) {
  streams = {{event("ADDED", pod(2, "11"))}, {bookmark("40")}, {}};
  run();
  EXPECT_THAT(lists, SizeIs(1));
  EXPECT_THAT(api.waits, IsEmpty());
  ASSERT_THAT(watches, SizeIs(4));
  EXPECT_THAT(watches[1], HasSubstr("resourceVersion=11"));
  EXPECT_THAT(watches[2], HasSubstr("resourceVersion=40"));
  EXPECT_THAT(watches[3], HasSubstr("resourceVersion=40"));
}

TEST_F(pod_watch_test, does_not_ask_without_pause_a_server_that_ends_each_watch_at_once) {
  streams.assign(5, {.parts = "", .end = base::http_answer{200, ""}, .lasts = 0ms});
  run();
  EXPECT_THAT(api.waits, SizeIs(5));
  EXPECT_THAT(complaints, SizeIs(5));
  EXPECT_THAT(complaints, Each(HasSubstr("ends each watch at once")));
  EXPECT_EQ(worked, 1) << "the list";
}

TEST_F(pod_watch_test, lists_again_when_it_is_told_that_it_is_too_old_either_way) {
  const auto expired = event("ERROR", {{"kind", "Status"}, {"code", 410}, {"message", "too old"}});
  for (const auto& how : {sent{.parts = expired}, sent{.parts = "{}", .end = base::http_answer{410, ""}}}) {
    is_over = false;
    lists.clear();
    next = 0;
    streams = {{event("ADDED", pod(2, "11"))}, how};
    run();
    EXPECT_THAT(lists, SizeIs(2));
    EXPECT_THAT(watches.back(), HasSubstr("resourceVersion=10"));
  }
  EXPECT_THAT(api.waits, IsEmpty());
  EXPECT_THAT(complaints, IsEmpty());
}

/// An etcd was restored: one pod is gone, another one came, and the watch from before hears of
/// none.
TEST_F(pod_watch_test, lists_again_every_few_minutes_for_what_a_server_that_was_restored_does_not_tell) {
  const auto restored =
      json{{"metadata", {{"resourceVersion", "7"}}}, {"items", json::array({pod(0), pod(2)})}};
  for (const auto& [chance, period] : {std::pair{0.0, 240s}, {0.5, 300s}, {0.999, 359s}}) {
    told.clear();
    watches.clear();
    is_over = false;
    api.chance = chance;
    const auto began = api.now;
    std::vector<std::chrono::milliseconds> listed_at;
    api.answer = [&](const auto&) {
      listed_at.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(api.now - began));
      is_over = listed_at.size() == 3;
      return base::http_answer{200, (listed_at.size() == 1 ? listed : restored).dump()};
    };
    api.streams = [&](const auto& asked, const auto& how) -> result<base::http_answer> {
      watches.push_back(line_of(asked));
      for (auto left = 270s; left > 0s; left -= 1s) {
        api.now += 1s;
        if (!how.goes_on()) return fail(error_code::system, "nobody wants it any more");
        if (left == 60s) how.take(200, bookmark("90"));
      }
      return base::http_answer{200, ""};
    };
    run();
    EXPECT_THAT(listed_at, ElementsAre(0s, period, 2 * period));
    EXPECT_THAT(told, ElementsAre("all u0 u1", "all u0 u2", "all u0 u2"));
    EXPECT_THAT(watches.front(), HasSubstr("resourceVersion=10"));
    EXPECT_THAT(watches, Contains(HasSubstr("resourceVersion=7")));
  }
  EXPECT_THAT(complaints, IsEmpty());
  EXPECT_THAT(api.waits, IsEmpty());
}

TEST_F(pod_watch_test, pauses_where_what_it_has_just_listed_is_too_old) {
  streams.assign(4, {.parts = "{}", .end = base::http_answer{410, ""}});
  run();
  EXPECT_THAT(lists, SizeIs(5));
  EXPECT_THAT(api.waits, SizeIs(4));
}

TEST_F(pod_watch_test, pauses_after_an_error_and_goes_on_where_it_was) {
  const sent broken{.parts = "", .end = fail(error_code::system, "Connection refused"), .lasts = 1s};
  streams = {broken, broken, broken, {bookmark("20")}, broken};
  run();
  EXPECT_THAT(lists, SizeIs(1));
  EXPECT_THAT(api.waits, ElementsAre(50ms, 100ms, 200ms, 50ms));
  EXPECT_THAT(complaints, SizeIs(4));
  EXPECT_THAT(complaints, Each(HasSubstr("Connection refused")));
  EXPECT_EQ(worked, 2) << "the list, and the bookmark";
  EXPECT_THAT(watches.back(), HasSubstr("resourceVersion=20"));
}

TEST_F(pod_watch_test, does_not_ask_a_busy_server_before_it_wants) {
  streams = {{.parts = "{}", .end = base::http_answer{429, "", 20s}, .lasts = 0ms}, {bookmark("20")}};
  std::vector<time_point> asked;
  const auto answered = api.streams;
  api.streams = [&](const base::http_request& request, const base::http_stream& how) {
    asked.push_back(api.now);
    return answered(request, how);
  };
  run();
  ASSERT_THAT(asked, SizeIs(3));
  EXPECT_GE(asked[1] - asked[0], 20s);
  EXPECT_THAT(lists, SizeIs(1));
}

TEST_F(pod_watch_test, an_error_in_the_stream_that_is_another_one_is_told) {
  streams = {{event("ERROR", {{"kind", "Status"}, {"code", 500}, {"message", "etcd is away"}})}};
  run();
  EXPECT_THAT(lists, SizeIs(1));
  EXPECT_THAT(complaints, ElementsAre(HasSubstr("etcd is away")));
}

TEST_F(pod_watch_test, what_is_no_event_changes_nothing) {
  streams = {{"\n{}\nnonsense\n5\n[]\n" + event("ADDED", 5) + event("ADDED", {{"metadata", 5}}) +
              event("ADDED", {{"metadata", {{"resourceVersion", "12"}}}}) +
              R"({"type":"ADDED","object":{"metadata":{"name":"cut)"}};
  run();
  EXPECT_THAT(told, ElementsAre("all u0 u1"));
  EXPECT_THAT(watches.back(), HasSubstr("resourceVersion=12"));
}

TEST_F(pod_watch_test, a_list_that_is_refused_is_asked_for_again_and_told) {
  int left = 2;
  api.answer = [&](const base::http_request&) {
    return left-- > 0 ? refused(422, "no such label") : base::http_answer{200, listed.dump()};
  };
  run();
  EXPECT_THAT(told, ElementsAre("all u0 u1"));
  EXPECT_THAT(complaints, ElementsAre(HasSubstr("no such label"), HasSubstr("no such label")));
  api.answer = [&](const base::http_request&) {
    is_over = true;
    return base::http_answer{200, "{}"};
  };
  is_over = false;
  run();
  EXPECT_THAT(told, SizeIs(1)) << "a list without a version is none";
}

} // namespace
} // namespace dlrun::kubernetes
