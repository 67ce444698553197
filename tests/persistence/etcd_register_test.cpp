/// What roots of a run keep in a real etcd, one after the other (R40).
#include "persistence/etcd_journal.hpp"
#include "persistence/etcd_register.hpp"
#include "tests/persistence/etcd_servers.hpp"

#include <gtest/gtest.h>

namespace dlrun::persistence {
namespace {

constexpr auto place_of_roots = "dlrun/test/root";

std::unique_ptr<etcd_register> open(const test::etcd_servers& etcd) {
  return etcd_register::make(etcd.place(), place_of_roots).value();
}

result<void> set(etcd_register& into, const std::string& key, const std::string& value) {
  const journal_write change{key, value};
  return into.write(std::span(&change, 1));
}

TEST(etcd_register, a_root_that_was_taken_over_writes_no_more_and_says_by_whom) {
  const test::etcd_servers etcd(1);
  const auto first = open(etcd);
  EXPECT_FALSE(first->look()->owner);
  ASSERT_TRUE(first->take(std::nullopt, {{1}, 11, 0}, {}));
  ASSERT_TRUE(set(*first, "record", "a"));
  const auto second = open(etcd);
  const auto seen = second->look();
  EXPECT_EQ(seen->entries, (std::map<std::string, std::string>{{"record", "a"}}));
  EXPECT_EQ(second->look("rec")->entries, seen->entries);
  EXPECT_EQ(second->look("b")->entries.size(), 0U);
  ASSERT_TRUE(second->take(seen->owner, {{2}, 22, 0}, {}));
  for (int times = 0; times < 2; ++times) {
    const auto late = set(*first, "record", "late");
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, error_code::fenced);
    EXPECT_NE(late.error().message.find("as root 2"), std::string::npos) << late.error().message;
  }
  EXPECT_TRUE(set(*second, "record", "b"));
}

TEST(etcd_register, is_not_taken_from_who_wrote_meanwhile) {
  const test::etcd_servers etcd(1);
  const auto first = open(etcd);
  ASSERT_TRUE(first->take(std::nullopt, {{1}, 11, 0}, {}));
  const auto second = open(etcd);
  const auto seen = second->look();
  ASSERT_TRUE(first->write({}));
  EXPECT_EQ(second->take(seen->owner, {{2}, 22, 0}, {}).error().code, error_code::fenced);
  EXPECT_TRUE(first->write({}));
}

TEST(etcd_register, a_root_goes_on_with_it_when_the_etcd_has_been_away) {
  test::etcd_servers etcd(1);
  const auto root = open(etcd);
  ASSERT_TRUE(root->take(std::nullopt, {{1}, 11, 0}, {}));
  etcd.kill(0);
  EXPECT_EQ(set(*root, "record", "unknown").error().code, error_code::timed_out);
  EXPECT_EQ(root->write({}).error().code, error_code::timed_out);
  etcd.start(0);
  etcd.wait_until_up();
  EXPECT_TRUE(set(*root, "record", "a"));
  EXPECT_EQ(root->look()->entries.at("record"), "a");
}

TEST(etcd_register, that_was_removed_is_no_more_anybodys_who_had_it) {
  const test::etcd_servers etcd(1);
  const auto root = open(etcd);
  ASSERT_TRUE(root->take(std::nullopt, {{1}, 11, 0}, {}));
  etcd.post(0, "/v3/kv/deleterange", R"({"key":"ZGxydW4=","range_end":"ZGxydW8="})"); // dlrun .. dlruo
  const auto late = root->write({});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, error_code::fenced);
  EXPECT_NE(late.error().message.find("was removed"), std::string::npos) << late.error().message;
}

TEST(etcd_register, is_not_the_journal_beside_it_and_keeps_its_prefix_from_other_runs) {
  const test::etcd_servers etcd(1);
  const auto root = open(etcd);
  ASSERT_TRUE(root->take(std::nullopt, {{3}, 11, 0}, {}));
  EXPECT_FALSE(etcd_journal::read(etcd.place(), "dlrun/test")->has_value());
  ASSERT_TRUE(etcd_journal::take({etcd.place(), "dlrun/test", incarnation{1}}));
  EXPECT_EQ(root->look()->owner->term, incarnation{3});
  EXPECT_FALSE(etcd_journal::check_free(etcd.place(), "dlrun/test"));
}

} // namespace
} // namespace dlrun::persistence
