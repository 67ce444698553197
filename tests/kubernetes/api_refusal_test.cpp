#include "kubernetes/api_refusal.hpp"

#include "tests/kubernetes/played_api.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::kubernetes {
namespace {

using testing::HasSubstr;

api_refusal of(const base::http_answer& answer) {
  return refusal_of({.verb = "create", .version = "v1", .resource = "events"}, answer.status, answer.body);
}

TEST(api_refusal, forbidden_is_three_things) {
  EXPECT_EQ(of(refused(403, "pods \"x\" is forbidden: exceeded quota: compute, requested: cpu=4")).kind,
            refusal_kind::no_room);
  EXPECT_EQ(of(refused(403, "pods \"x\" is forbidden: maximum memory usage per Container is 1Gi")).kind,
            refusal_kind::no_room);
  EXPECT_EQ(of(refused(403, "unable to create new content in namespace x because it is being terminated",
                       "NamespaceTerminating"))
                .kind,
            refusal_kind::namespace_ends);
  EXPECT_EQ(of(refused(403, "User \"x\" cannot create resource \"events\"")).kind, refusal_kind::no_right);
}

TEST(api_refusal, says_what_was_asked_and_what_the_server_says) {
  const auto told = of(refused(403, "not you")).message;
  EXPECT_THAT(told, HasSubstr("cannot create events: HTTP status 403: not you"));
  EXPECT_THAT(of({502, "<html>\nBad Gateway"}).message, HasSubstr("HTTP status 502: <html>"));
  EXPECT_LE(of({400, std::string(100'000, 'x')}).message.size(), 1000U);
}

TEST(api_refusal, takes_anything_for_an_answer) {
  for (const auto* body :
       {"", "null", "[]", "{", "1", R"({"message":1,"details":[]})", R"({"details":{"causes":{}}})",
        R"({"details":{"causes":[1,null,{"reason":[]}]}})"})
    EXPECT_EQ(of({403, body}).kind, refusal_kind::no_right) << body;
}

TEST(api_refusal, redirections_are_nobodys_answer) { EXPECT_TRUE(may_pass(of({302, ""}).kind)); }

TEST(api_refusal, what_is_wrong_does_not_pass) {
  for (const auto status : {400, 401, 403, 404, 405, 409, 410, 413, 415, 422})
    EXPECT_FALSE(may_pass(of({status, "{}"}).kind)) << status;
}

} // namespace
} // namespace dlrun::kubernetes
