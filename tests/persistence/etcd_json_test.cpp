#include "persistence/etcd_json.hpp"
#include "persistence/etcd_owner.hpp"

#include <gtest/gtest.h>

namespace dlrun::persistence {
namespace {

error_code refused(const char* answer, long status = 400) { return refusal_of(status, answer, "m").code; }

TEST(etcd_json, another_member_is_asked_where_this_one_cannot_know) {
  EXPECT_EQ(refused(R"({"error":"etcdserver: request timed out","code":14})", 503), error_code::system);
  EXPECT_EQ(refused(R"({"error":"etcdserver: leader changed","code":14})", 503), error_code::system);
  EXPECT_EQ(refused(R"({"error":"etcdserver: too many requests","code":8})", 429), error_code::system);
  EXPECT_EQ(refused("bad gateway", 502), error_code::system);
}

TEST(etcd_json, what_no_member_would_do_is_said_with_the_way_out) {
  EXPECT_EQ(refused(R"({"error":"etcdserver: mvcc: database space exceeded","code":8})", 429),
            error_code::disk_full);
  EXPECT_EQ(refused(R"({"error":"etcdserver: too many operations in txn request","code":3})"),
            error_code::limit_exceeded);
  EXPECT_EQ(refused(R"({"error":"etcdserver: request is too large","code":3})"), error_code::limit_exceeded);
  EXPECT_EQ(refused(R"({"error":"etcdserver: permission denied","code":7})", 403), error_code::bad_usage);
  EXPECT_EQ(refused("404 page not found", 404), error_code::bad_usage);
}

TEST(etcd_json, a_token_that_has_expired_or_is_older_than_the_users_is_asked_for_again) {
  EXPECT_TRUE(is_token_refused(401, R"({"error":"etcdserver: invalid auth token","code":16})"));
  EXPECT_TRUE(is_token_refused(400, R"({"error":"etcdserver: revision of auth store is old","code":3})"));
  EXPECT_FALSE(is_token_refused(400, R"({"error":"etcdserver: request is too large","code":3})"));
  EXPECT_FALSE(is_token_refused(403, R"({"error":"etcdserver: permission denied","code":7})"));
  EXPECT_FALSE(is_token_refused(200, "{}"));
}

TEST(etcd_json, versions_are_compared_as_numbers) {
  for (const auto* fine : {"3.4.0", "3.4.23", "3.5.9", "3.10.0", "4.0.0-rc.1"})
    EXPECT_TRUE(check_version(std::string(R"({"version":")") + fine + "\"}", "3.4.0", "m")) << fine;
  for (const auto* old : {"3.3.27", "2.9.9", "3.4"})
    EXPECT_EQ(check_version(std::string(R"({"version":")") + old + "\"}", "3.4.0", "m").has_value(),
              std::string(old) == "3.4")
        << old;
}

TEST(etcd_json, a_member_that_is_too_old_is_named_with_the_way_out) {
  const auto old = check_version(R"({"version":"3.3.27"})", "3.4.0", "http://m1:2379");
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().code, error_code::bad_usage);
  EXPECT_EQ(old.error().message,
            "etcd at http://m1:2379 is of version 3.3.27, and must be of 3.4.0 or later: update it");
}

TEST(etcd_json, an_answer_that_is_none_of_etcd_is_no_answer) {
  for (const auto* wrong : {"", "{}", "[]", "<html>", R"({"header":1})", R"({"header":{"cluster_id":3}})"}) {
    EXPECT_FALSE(cluster_id_of(wrong)) << wrong;
    EXPECT_FALSE(token_of(wrong)) << wrong;
    EXPECT_FALSE(decision_of(wrong)) << wrong;
    EXPECT_FALSE(check_version(wrong, "3.4.0", "m")) << wrong;
  }
  EXPECT_FALSE(first_key_of("{}"));
  EXPECT_FALSE(first_key_of(R"({"header":{},"kvs":[3]})"));
  for (const auto* wrong : {R"({"key":"%%"})", R"({"key":"cS9h","value":""})", "3"}) {
    const auto range = std::string(R"({"response_range":{"kvs":[)") + wrong + "]}}";
    const std::string nothing = R"({"response_range":{}})";
    EXPECT_FALSE(look_of(R"({"responses":[)" + nothing + "," + range + "]}", "p/")) << wrong;
    EXPECT_FALSE(look_of(R"({"responses":[)" + nothing + "]}", "p/"));
  }
}

TEST(etcd_json, a_look_finds_one_key_and_all_below_a_prefix) {
  const auto found = look_of(R"({"responses":[{"response_range":{"kvs":[{"key":"YQ==","value":"eA=="}]}},)"
                             R"({"response_range":{"kvs":[{"key":"cC9h","value":"eQ=="}]}}]})",
                             "p/");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->single, "x");
  EXPECT_EQ(found->entries, (std::map<std::string, std::string>{{"a", "y"}}));
  EXPECT_EQ(first_key_of(R"({"header":{},"kvs":[{"key":"YQ=="}]})").value(), "a");
  EXPECT_EQ(first_key_of(R"({"header":{}})").value(), std::nullopt);
}

TEST(etcd_json, of_a_transaction_that_is_not_done_the_value_there_is_told) {
  EXPECT_TRUE(decision_of(R"({"succeeded":true,"responses":[{}]})")->succeeded);
  const auto found =
      decision_of(R"({"responses":[{"response_range":{"kvs":[{"key":"YQ==","value":"eA=="}]}}]})");
  EXPECT_FALSE(found->succeeded);
  EXPECT_EQ(found->found, "x");
  EXPECT_EQ(decision_of(R"({"responses":[{"response_range":{}}]})")->found, std::nullopt);
}

TEST(etcd_owner, comes_back_from_its_text_and_from_no_other) {
  const etcd_owner owner{{7}, 0x9f3c0a12b4d5e6f7U, 12};
  EXPECT_EQ(to_text(owner), "dlrun-journal 2 term 7 taker 9f3c0a12b4d5e6f7 write 12");
  EXPECT_EQ(etcd_owner_from(to_text(owner)), owner);
  const std::string earlier = "dlrun-journal 1 term 7 taker 9 write 12";
  ASSERT_NE(etcd_owner_from(earlier), std::nullopt);
  EXPECT_EQ(to_text(*etcd_owner_from(earlier)), earlier) << "what is compared is what is there";
  for (const auto* wrong :
       {"", "x", "dlrun-journal 3 term 7 taker 9 write 12", "dlrun-journal 2 term 7 taker 9",
        "dlrun-journal 2 term 07 taker 9 write 12", "dlrun-journal 2 term 7 taker 9 write 12 "})
    EXPECT_EQ(etcd_owner_from(wrong), std::nullopt) << wrong;
}

} // namespace
} // namespace dlrun::persistence
