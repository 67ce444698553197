#include "kubernetes/api_client.hpp"

#include "tests/kubernetes/played_api.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dlrun::kubernetes {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using testing::Not;
using testing::SizeIs;
using namespace std::chrono_literals;

const api_request get_job{
    .verb = "get", .group = "batch", .version = "v1", .resource = "jobs", .name = "job"};
constexpr auto patience = 10s;

class api_client_test : public testing::Test {
protected:
  answer<nlohmann::json> ask(const api_request& request = get_job) {
    return api.make_client().ask(request, api.in(patience));
  }
  played_api api;
};

TEST_F(api_client_test, hands_over_the_object_that_it_was_given) {
  api.answer = [](const auto&) { return base::http_answer{200, R"({"kind":"Job"})"}; };
  EXPECT_EQ(ask().value().at("kind"), "Job");
  EXPECT_THAT(api.asked(), ElementsAre("GET /apis/batch/v1/namespaces/team-a/jobs/job"));
  EXPECT_THAT(api.requests.front().headers, Contains("Authorization: Bearer first"));
}

TEST_F(api_client_test, reads_its_token_anew_for_each_request) {
  auto client = api.make_client();
  ASSERT_TRUE(client.ask(get_job, api.in(patience)));
  api.write_token("second");
  ASSERT_TRUE(client.ask(get_job, api.in(patience)));
  EXPECT_THAT(api.requests.back().headers, Contains("Authorization: Bearer second"));
}

TEST_F(api_client_test, a_token_that_is_refused_is_read_once_more_and_no_third_time) {
  api.answer = [&](const base::http_request& asked) {
    api.write_token("second");
    const bool is_new = asked.headers.at(1) == "Authorization: Bearer second";
    return is_new ? base::http_answer{200, "{}"} : refused(401, "Unauthorized");
  };
  EXPECT_TRUE(ask());
  EXPECT_THAT(api.requests, SizeIs(2));
  api.answer = [](const auto&) { return refused(401, "Unauthorized"); };
  EXPECT_EQ(ask().error().kind, refusal_kind::unauthorized);
  EXPECT_THAT(api.requests, SizeIs(4));
  EXPECT_THAT(api.waits, SizeIs(0));
}

TEST_F(api_client_test, a_pod_without_a_token_is_told) {
  api_client client{{.url = "https://x", .name_space = "n", .ca_file = "", .token_file = "/nowhere"},
                    api,
                    {[&] { return api.now; }, [](auto) {}, [] { return 0.0; }}};
  const auto asked = client.ask(get_job, api.in(patience));
  EXPECT_THAT(asked.error().message, HasSubstr("automountServiceAccountToken"));
  EXPECT_THAT(api.requests, SizeIs(0));
}

TEST_F(api_client_test, asks_again_what_may_pass) {
  for (const auto status : {429, 500, 502, 503, 504}) {
    int left = 3;
    api.answer = [&](const auto&) {
      return left-- > 0 ? refused(status, "later") : base::http_answer{200, "{}"};
    };
    EXPECT_TRUE(ask()) << status;
  }
  int left = 3;
  api.answer = [&](const auto&) -> result<base::http_answer> {
    if (left-- > 0) return fail(error_code::system, "Connection refused");
    return base::http_answer{200, "{}"};
  };
  EXPECT_TRUE(ask());
}

TEST_F(api_client_test, waits_as_long_as_the_server_wants) {
  int left = 1;
  api.answer = [&](const auto&) {
    return left-- > 0 ? base::http_answer{429, "{}", 4s} : base::http_answer{200, "{}"};
  };
  EXPECT_TRUE(ask());
  EXPECT_THAT(api.waits, ElementsAre(Ge(4000ms)));
}

TEST_F(api_client_test, does_not_wait_for_what_comes_too_late) {
  api.answer = [](const auto&) { return base::http_answer{503, "{}", 60s}; };
  const auto begun = api.now;
  EXPECT_EQ(ask().error().kind, refusal_kind::busy);
  EXPECT_EQ(api.now, begun);
}

/// Who asks again and again, as the control pod does, does not ask a busy server each time.
TEST_F(api_client_test, asks_nothing_while_the_server_wants_patience) {
  api.answer = [](const auto&) { return base::http_answer{429, "{}", 30s}; };
  auto client = api.make_client();
  EXPECT_FALSE(client.ask(get_job, api.in(patience)));
  api.answer = [](const auto&) { return base::http_answer{200, "{}"}; };
  const auto early = client.ask(get_job, api.in(patience));
  EXPECT_EQ(early.error().kind, refusal_kind::busy);
  EXPECT_THAT(early.error().message, HasSubstr("has asked for patience"));
  EXPECT_THAT(api.requests, SizeIs(1));
  EXPECT_TRUE(client.ask(get_job, api.in(40s)));
  EXPECT_THAT(api.waits, ElementsAre(30s));
}

TEST_F(api_client_test, takes_no_patience_for_more_than_a_minute) {
  api.answer = [](const auto&) { return base::http_answer{503, "{}", 24h}; };
  auto client = api.make_client();
  EXPECT_FALSE(client.ask(get_job, api.in(patience)));
  api.answer = [](const auto&) { return base::http_answer{200, "{}"}; };
  EXPECT_TRUE(client.ask(get_job, api.in(61s)));
}

TEST_F(api_client_test, an_api_that_is_away_is_given_up_in_time_and_says_why) {
  api.takes = 700ms;
  api.answer = [](const auto&) -> result<base::http_answer> {
    return fail(error_code::system, "Connection refused");
  };
  const auto begun = api.now;
  const auto asked = ask();
  EXPECT_EQ(asked.error().kind, refusal_kind::no_answer);
  EXPECT_THAT(asked.error().message, HasSubstr("Connection refused"));
  EXPECT_LE(api.now - begun, patience);
  EXPECT_GE(api.requests.size(), 4U);
  EXPECT_THAT(api.deadlines, Each(Le(3s)));
}

/// An attempt has what is left, so that the last one ends in time too.
TEST_F(api_client_test, no_attempt_goes_on_beyond_the_deadline) {
  api.answer = [&](const auto&) -> result<base::http_answer> {
    api.now += api.deadlines.back();
    return fail(error_code::timed_out, "no answer");
  };
  const auto begun = api.now;
  EXPECT_FALSE(ask());
  EXPECT_LE(api.now - begun, patience);
}

TEST_F(api_client_test, what_asking_again_does_not_help_is_told_at_once) {
  for (const auto& [status, kind] :
       {std::pair{404, refusal_kind::not_there}, std::pair{409, refusal_kind::conflict},
        std::pair{422, refusal_kind::wrong}}) {
    api.requests.clear();
    api.answer = [code = status](const auto&) { return refused(code, "no"); };
    EXPECT_EQ(ask().error().kind, kind);
    EXPECT_THAT(api.requests, SizeIs(1));
  }
}

class following : public api_client_test {
protected:
  answer<void> follow() {
    return api.make_client().follow(
        {.verb = "watch", .version = "v1", .resource = "pods", .query = "watch=true"},
        {.take = [this](std::string_view line) { lines.emplace_back(line); }});
  }
  std::vector<std::string> lines;
};

TEST_F(following, hands_on_whole_lines_however_they_come) {
  api.streams = [](const auto&, const base::http_stream& how) {
    for (const auto* part : {"on", "e\ntwo\nth", "ree\n", "\n", "rest"}) EXPECT_TRUE(how.take(200, part));
    return base::http_answer{200, ""};
  };
  EXPECT_TRUE(follow());
  EXPECT_THAT(lines, ElementsAre("one", "two", "three", ""));
  EXPECT_THAT(api.asked(), ElementsAre("GET /api/v1/namespaces/team-a/pods?watch=true"));
}

TEST_F(following, ends_where_a_line_has_no_end) {
  api.streams = [](const auto&, const base::http_stream& how) -> result<base::http_answer> {
    const std::string much(std::size_t{1} << 20, 'x');
    for (int i = 0; i < 100; ++i)
      if (!how.take(200, much)) return fail(error_code::system, "broken off");
    return base::http_answer{200, ""};
  };
  EXPECT_EQ(follow().error().kind, refusal_kind::no_answer);
}

TEST_F(following, tells_a_refusal_as_such_and_no_line) {
  api.streams = [](const auto&, const base::http_stream& how) {
    how.take(410, R"({"message":"too old)");
    how.take(410, " resource version\"}\n");
    return base::http_answer{410, ""};
  };
  const auto refused = follow().error();
  EXPECT_EQ(refused.kind, refusal_kind::gone);
  EXPECT_THAT(refused.message, HasSubstr("too old resource version"));
  EXPECT_THAT(lines, SizeIs(0));
}

TEST_F(following, reads_a_token_that_is_refused_once_more) {
  api.streams = [&](const base::http_request& asked, const base::http_stream&) {
    api.write_token("second");
    return base::http_answer{asked.headers.at(1) == "Authorization: Bearer second" ? 200 : 401, ""};
  };
  EXPECT_TRUE(follow());
  api.streams = [](const auto&, const auto&) { return base::http_answer{401, ""}; };
  EXPECT_EQ(follow().error().kind, refusal_kind::unauthorized);
  EXPECT_THAT(api.requests, SizeIs(4));
}

class missing_right : public api_client_test {
protected:
  std::string told(bool is_allowed) {
    api.answer = [is_allowed](const base::http_request& asked) {
      if (line_of(asked).starts_with("POST /apis/authorization.k8s.io/"))
        return base::http_answer{201, nlohmann::json{{"status", {{"allowed", is_allowed}}}}.dump()};
      return refused(403, "jobs.batch \"job\" is forbidden");
    };
    return ask().error().message;
  }
};

TEST_F(missing_right, is_asked_for_and_named) {
  EXPECT_THAT(told(false), HasSubstr("lacks the right to get jobs.batch 'job': add the rule {apiGroups: "
                                     "[\"batch\"], resources: [\"jobs\"], resourceNames: [\"job\"], verbs: "
                                     "[\"get\"]} to its Role"));
  EXPECT_EQ(ask().error().missing_right, "get jobs.batch 'job'");
  const auto review = nlohmann::json::parse(api.requests.back().body);
  EXPECT_EQ(review["spec"]["resourceAttributes"]["verb"], "get");
  EXPECT_EQ(review["spec"]["resourceAttributes"]["namespace"], "team-a");
}

TEST_F(missing_right, is_not_named_where_it_is_there) {
  const auto words = told(true);
  EXPECT_THAT(words, HasSubstr("jobs.batch \"job\" is forbidden"));
  EXPECT_THAT(words, Not(HasSubstr("lacks the right")));
  EXPECT_EQ(ask().error().missing_right, "");
}

TEST_F(missing_right, a_review_that_says_nothing_is_none) {
  for (const auto* body : {"{}", R"({"status":5})", R"({"status":{"allowed":"no"}})"}) {
    api.answer = [body](const base::http_request& asked) {
      return asked.method == "POST" ? base::http_answer{201, body} : refused(403, "no");
    };
    EXPECT_THAT(ask().error().message, Not(HasSubstr("lacks the right"))) << body;
  }
}

TEST_F(missing_right, is_not_asked_for_where_a_quota_or_the_end_of_the_namespace_is_the_reason) {
  api.answer = [](const auto&) { return refused(403, "exceeded quota: compute"); };
  EXPECT_EQ(ask().error().kind, refusal_kind::no_room);
  api.answer = [](const auto&) { return refused(403, "it ends", "NamespaceTerminating"); };
  EXPECT_EQ(ask().error().kind, refusal_kind::namespace_ends);
  EXPECT_THAT(api.requests, SizeIs(2));
}

TEST_F(api_client_test, what_answers_and_is_no_kubernetes_is_told) {
  api.answer = [](const auto&) { return base::http_answer{200, "<html>login</html>"}; };
  EXPECT_THAT(ask().error().message, HasSubstr("does not answer as Kubernetes does"));
}

} // namespace
} // namespace dlrun::kubernetes
