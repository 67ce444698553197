#include "job/validate_journal.hpp"

#include "tests/job/spec_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::job {
namespace {

using test::minimal_spec, test::parse, test::problems_of;
using testing::HasSubstr;

std::string problems_of_etcd(const std::string& keys) {
  return problems_of(minimal_spec, {"cluster.journal={etcd: {" + keys + "}}"});
}

TEST(validate_journal, without_one_nothing_is_written_so_that_old_runs_are_the_same) {
  EXPECT_FALSE(parse(minimal_spec)->cluster().has_journal());
  EXPECT_TRUE(parse(minimal_spec, {"cluster.journal=folder"})->cluster().journal().has_folder());
}

TEST(validate_journal, an_etcd_takes_its_addresses_and_has_defaults_for_the_rest) {
  for (const auto* endpoints : {"http://10.0.0.1:2379", "[https://a.lan:2379, 'https://[::1]:2379']"}) {
    const auto spec =
        parse(minimal_spec, {std::string("cluster.journal={etcd: {endpoints: ") + endpoints + "}}"});
    ASSERT_TRUE(spec) << endpoints << spec.error().message;
    EXPECT_EQ(spec->cluster().journal().etcd().prefix(), "auto");
    EXPECT_EQ(spec->cluster().journal().etcd().cluster_id(), "auto");
  }
  EXPECT_THAT(problems_of_etcd(""), HasSubstr("cluster.journal.etcd.endpoints"));
}

TEST(validate_journal, an_address_has_a_scheme_a_host_and_a_port) {
  for (const auto* wrong : {"10.0.0.1:2379", "http://a", "http://:2379", "http://a:0", "http://a:70000",
                            "http://a:2379/", "ftp://a:2379", "http://user@a:2379", "http://a b:2379"})
    EXPECT_THAT(problems_of_etcd(std::string("endpoints: [\"") + wrong + "\"]"),
                HasSubstr("cluster.journal.etcd.endpoints[0]: expected http://HOST:PORT"))
        << wrong;
}

TEST(validate_journal, a_prefix_is_part_of_a_key_and_a_cluster_a_number) {
  const std::string endpoints = "endpoints: http://a:1, ";
  EXPECT_EQ(problems_of_etcd(endpoints + "prefix: team/job-3, cluster_id: '324952591200643719'"), "");
  for (const auto* wrong : {"''", "/a", "a/", "'a b'"})
    EXPECT_THAT(problems_of_etcd(endpoints + "prefix: " + wrong), HasSubstr("cluster.journal.etcd.prefix"))
        << wrong;
  EXPECT_THAT(problems_of_etcd(endpoints + "cluster_id: abc"), HasSubstr("cluster.journal.etcd.cluster_id"));
}

TEST(validate_journal, files_for_tls_go_together_and_with_https) {
  EXPECT_EQ(
      problems_of_etcd("endpoints: https://a:1, ca_file: c, certificate_file: b, key_file: k, user_file: u"),
      "");
  EXPECT_THAT(problems_of_etcd("endpoints: https://a:1, key_file: k"),
              HasSubstr("certificate_file and key_file"));
  EXPECT_THAT(problems_of_etcd("endpoints: [https://a:1, http://b:1], ca_file: c"), HasSubstr("https://"));
  EXPECT_EQ(problems_of_etcd("endpoints: http://127.0.0.1:1, user_file: u"), "") << "no file of TLS";
}

TEST(validate_journal, a_password_crosses_no_network_in_clear) {
  for (const auto* fine : {"http://127.0.0.1:1", "http://127.3.0.2:1", "http://localhost:1",
                           "'http://[::1]:1'", "https://a:1", "[https://a:1, http://localhost:2]"})
    EXPECT_EQ(problems_of_etcd(std::string("endpoints: ") + fine + ", user_file: u"), "") << fine;
  for (const auto* wrong :
       {"http://a:1", "[https://a:1, http://10.0.0.1:1]", "http://localhost.example:1", "'http://[::2]:1'"})
    EXPECT_THAT(problems_of_etcd(std::string("endpoints: ") + wrong + ", user_file: u"),
                HasSubstr("cluster.journal.etcd.user_file: its password would cross the network in clear"))
        << wrong;
  EXPECT_EQ(problems_of_etcd("endpoints: http://a:1"), "");
}

TEST(validate_journal, where_nothing_is_kept_there_is_none) {
  EXPECT_THAT(
      problems_of(minimal_spec, {"cluster.journal={etcd: {endpoints: http://a:1}}", "durability.log=off"}),
      HasSubstr("cluster.journal: with durability.log: off"));
}

TEST(validate_journal, a_word_that_durability_does_not_have_is_told_beside_one) {
  EXPECT_THAT(problems_of(minimal_spec,
                          {"cluster.journal={etcd: {endpoints: http://a:1}}", "durability.log=nowhere"}),
              HasSubstr("durability.log: expected one of"));
}

} // namespace
} // namespace dlrun::job
