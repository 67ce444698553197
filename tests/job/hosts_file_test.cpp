#include "job/hosts_file.hpp"

#include "base/job_hosts.hpp"
#include "job/field_rules.hpp"
#include "tests/data/files.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::job {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string two_hosts = R"(hosts:
  - name: alpha
    address: 10.0.0.1
  - {name: beta, address: 10.0.0.2, cpus: 2, folder: /var/tmp/job}
)";

std::string problems_in(const std::string& text) {
  const auto file = parse_hosts(text, "hosts.yaml");
  return file ? "" : file.error().message;
}

TEST(hosts_file, has_its_hosts_in_the_order_of_the_file) {
  const auto file = parse_hosts(two_hosts, "hosts.yaml");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  ASSERT_EQ(file->hosts_size(), 2);
  EXPECT_EQ(file->hosts(0).name(), "alpha");
  EXPECT_FALSE(file->hosts(0).has_cpus());
  EXPECT_EQ(file->hosts(1).cpus(), 2);
  EXPECT_EQ(file->hosts(1).folder(), "/var/tmp/job");
}

TEST(hosts_file, starts_programs_by_ssh_without_questions_where_it_says_nothing) {
  const auto file = parse_hosts(two_hosts, "hosts.yaml");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_THAT(start_command(*file, file->hosts(1), {"/opt/dlrun", "agent"}),
              ElementsAre("ssh", "-o", "BatchMode=yes", "--", "10.0.0.2", "/opt/dlrun", "agent"));
}

TEST(hosts_file, puts_host_and_address_into_the_words_of_its_own_command) {
  const auto file = parse_hosts(two_hosts + "start: [ip, netns, exec, \"ns-{host}-{host}\", \"{address}\"]\n",
                                "hosts.yaml");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_THAT(start_command(*file, file->hosts(0), {"dlrun"}),
              ElementsAre("ip", "netns", "exec", "ns-alpha-alpha", "10.0.0.1", "dlrun"));
}

TEST(hosts_file, refuses_a_host_that_is_listed_twice_and_names_both_lines) {
  EXPECT_THAT(problems_in(two_hosts + "  - {name: alpha, address: 10.0.0.3}\n"),
              testing::AllOf(HasSubstr("hosts.yaml:5: hosts[2].name"), HasSubstr("on line 2"),
                             HasSubstr("list each host once")));
}

TEST(hosts_file, refuses_an_address_that_two_hosts_share) {
  EXPECT_THAT(problems_in(two_hosts + "  - {name: gamma, address: 10.0.0.2}\n"),
              HasSubstr("hosts.yaml:5: hosts[2].address: \"10.0.0.2\" is a host's already, on line 4"));
}

TEST(hosts_file, refuses_a_host_without_a_name_or_an_address) {
  EXPECT_THAT(problems_in("hosts: [{name: alpha}]"), HasSubstr("hosts[0].address: is missing"));
  EXPECT_THAT(problems_in("hosts: [{address: 10.0.0.1}]"), HasSubstr("hosts[0].name: is missing"));
}

TEST(hosts_file, refuses_a_key_that_it_does_not_know_and_says_which_was_meant) {
  EXPECT_THAT(problems_in("hosts:\n  - {name: alpha, adress: 10.0.0.1}\n"),
              testing::AllOf(HasSubstr("hosts.yaml:2:"), HasSubstr("unknown key \"adress\""),
                             HasSubstr("did you mean \"address\"?")));
}

TEST(hosts_file, says_of_which_host_workers_use_no_gpus) {
  const auto hosts = parse_hosts("hosts: [{name: a, address: 10.0.0.1, gpus: none}]\n", "hosts.yaml");
  ASSERT_TRUE(hosts) << hosts.error().message;
  EXPECT_EQ(hosts->hosts(0).gpus(), "none");
  EXPECT_THAT(problems_in("hosts: [{name: a, address: 10.0.0.1, gpus: 2}]\n"),
              HasSubstr("expected one of any, none"));
}

TEST(hosts_file, lets_the_coordinator_run_anywhere_where_it_says_nothing) {
  EXPECT_EQ(parse_hosts(two_hosts, "hosts.yaml")->coordinator(), "any");
  EXPECT_EQ(parse_hosts(two_hosts + "coordinator: root\n", "hosts.yaml")->coordinator(), "root");
  EXPECT_THAT(problems_in(two_hosts + "coordinator: alpha\n"),
              HasSubstr("coordinator: expected one of any, root"));
}

TEST(hosts_file, has_certificates_for_a_day_where_it_says_nothing) {
  const auto file = parse_hosts(two_hosts, "hosts.yaml");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->certificate_lifetime_s(), 86400);
  EXPECT_EQ(problems_in(two_hosts + "certificate_lifetime_s: 5\n"), "");
  EXPECT_THAT(problems_in(two_hosts + "certificate_lifetime_s: 4\n"),
              HasSubstr("hosts.yaml:5: certificate_lifetime_s"));
}

TEST(hosts_file, refuses_an_ipv6_address_and_says_what_to_write) {
  for (const auto* wrong : {"fd00::7", "::ffff:10.0.0.7", "[fd00::7]", "fe80::7%eth0"})
    EXPECT_THAT(problems_in(two_hosts + "  - {name: gamma, address: \"" + wrong + "\"}\n"),
                testing::AllOf(HasSubstr("hosts.yaml:5: hosts[2].address"), HasSubstr(wrong),
                               HasSubstr("write the IPv4 address of gamma")))
        << wrong;
}

TEST(hosts_file, refuses_an_address_that_would_be_an_option_or_a_url_or_has_a_port) {
  for (const auto* wrong : {"-oProxyCommand=x", "http://alpha", "\"two words\"", "\"\"", "\"10.0.0.1:22\""})
    EXPECT_THAT(problems_in(std::string{"hosts: [{name: alpha, address: "} + wrong + "}]"),
                HasSubstr("hosts[0].address"))
        << wrong;
}

TEST(hosts_file, refuses_a_file_without_hosts) {
  EXPECT_THAT(problems_in("hosts: []"), HasSubstr("hosts: is missing or empty"));
  EXPECT_THAT(problems_in("start: [ssh]"), HasSubstr("hosts: is missing or empty"));
}

TEST(hosts_file, refuses_a_command_without_words) {
  EXPECT_THAT(problems_in(two_hosts + "start: []\n"), HasSubstr("start: has no word"));
}

TEST(hosts_file, refuses_what_is_no_text_and_what_is_not_there) {
  EXPECT_THAT(problems_in(std::string{"hosts:\0", 7}), HasSubstr("control character"));
  EXPECT_THAT(problems_in("- alpha"), HasSubstr("hosts.yaml:1"));
  EXPECT_THAT(read_hosts("/nowhere/hosts.yaml").error().message, HasSubstr("no such file"));
}

TEST(hosts_file, lets_nobody_join_unless_it_says_where) {
  EXPECT_FALSE(parse_hosts(two_hosts, "hosts.yaml")->has_join());
  const auto file = parse_hosts(two_hosts + "join: {listen: \"10.0.0.1:7700\"}\n", "hosts.yaml");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->join().listen(), "10.0.0.1:7700");
  EXPECT_EQ(file->join().hosts_min(), 2); // those of the list
  EXPECT_EQ(file->join().hosts_max(), 1000);
}

TEST(hosts_file, may_say_self_for_the_number_of_the_host_that_it_is_used_on) {
  auto file = parse_hosts("hosts: [{name: alpha, address: self}, {name: beta, address: 10.0.0.2}]\n"
                          "join: {listen: \"self:7700\"}\n",
                          "hosts.yaml");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_TRUE(names_self(*file));
  name_self(*file, "10.0.0.1");
  EXPECT_EQ(file->hosts(0).address(), "10.0.0.1");
  EXPECT_EQ(file->hosts(1).address(), "10.0.0.2");
  EXPECT_EQ(file->join().listen(), "10.0.0.1:7700");
  EXPECT_FALSE(names_self(*file));
  const std::string only_joins = two_hosts + "join: {listen: \"self:0\"}\n";
  EXPECT_TRUE(names_self(*parse_hosts(only_joins, "hosts.yaml")));
  EXPECT_FALSE(names_self(*parse_hosts(two_hosts, "hosts.yaml")));
  EXPECT_THAT(problems_in("hosts: [{name: a, address: self}, {name: b, address: self}]"),
              HasSubstr("list each host once"));
  for (const auto* wrong : {"self", "self:", "self:70000", "selfish:7700", "10.self:7700"})
    EXPECT_THAT(problems_in(two_hosts + "join: {listen: \"" + wrong + "\"}\n"), HasSubstr("or self:7700"))
        << wrong;
}

TEST(hosts_file, finds_its_key_beside_itself) {
  test::temporary_folder folder;
  const auto key_of = [&](const std::string& key) {
    const auto text = two_hosts + "join: {listen: \"10.0.0.1:0\", key_file: " + key + "}\n";
    return read_hosts(folder.write("hosts.yaml", {text.begin(), text.end()}))->join().key_file();
  };
  EXPECT_EQ(key_of("/run/key"), "/run/key");
  EXPECT_EQ(key_of("keys/key"), (folder.path() / "keys/key").string());
  EXPECT_EQ(key_of("../key"), (folder.path().parent_path() / "key").string());
}

TEST(hosts_file, refuses_numbers_of_hosts_that_cannot_be_and_places_to_listen_that_are_none) {
  const auto problems = [](const std::string& join) {
    return problems_in(two_hosts + "join: {" + join + "}\n");
  };
  EXPECT_THAT(problems("hosts_min: 3"), HasSubstr("join.listen: is missing"));
  for (const auto* listen : {"7700", "alpha:7700", "10.0.0.1", "10.0.0.1:70000", "[::1]:7700", ""})
    EXPECT_THAT(problems(fmt::format("listen: \"{}\"", listen)),
                HasSubstr("hosts.yaml:5: join.listen: expected a number of this host's address and a port"));
  EXPECT_THAT(problems("listen: \"10.0.0.1:0\", hosts_min: 4, hosts_max: 3"),
              HasSubstr("join.hosts_min: 4 hosts are waited for, and join.hosts_max lets 3 be there"));
  EXPECT_THAT(problems("listen: \"10.0.0.1:0\", hosts_max: 1"),
              HasSubstr("join.hosts_max: 2 hosts are in the list already"));
  EXPECT_THAT(problems("listen: \"10.0.0.1:0\", hosts_min: 0"), HasSubstr("join.hosts_min"));
  EXPECT_EQ(problems("listen: \"10.0.0.1:0\", hosts_min_staying: 2"), ""); // all of the list
  EXPECT_THAT(
      problems("listen: \"10.0.0.1:0\", hosts_min: 3, hosts_min_staying: 4"),
      HasSubstr("join.hosts_min_staying: 4 hosts that stay are waited for, and the job begins with 3: "
                "let join.hosts_min be as many"));
  EXPECT_THAT(problems("listen: \"10.0.0.1:0\", hosts_max: 1001"), HasSubstr("join.hosts_max"));
}

TEST(hosts_file, has_a_host_for_workers) {
  const std::string apart = "hosts: [{name: a, address: 10.0.0.1, takes: ps_shards}, "
                            "{name: b, address: 10.0.0.2, takes: ps_shards}]\n";
  EXPECT_THAT(problems_in(apart),
              HasSubstr("hosts.yaml:1: hosts[0].takes: no host takes workers, and none may join"));
  EXPECT_EQ(problems_in(apart + "join: {listen: \"10.0.0.1:0\"}\n"), "") << "one may come";
  EXPECT_EQ(problems_in("hosts: [{name: a, address: 10.0.0.1, takes: ps_shards}, "
                        "{name: b, address: 10.0.0.2, takes: workers}]\n"),
            "");
  EXPECT_THAT(problems_in("hosts: [{name: a, address: 10.0.0.1, takes: keepers}]\n"),
              HasSubstr("hosts[0].takes: "));
}

TEST(hosts_file, lets_as_many_hosts_join_as_a_job_may_have) {
  for (const auto* key : {"hosts_min", "hosts_min_staying", "hosts_max"})
    EXPECT_EQ(rule_of(*spec::JoinSpec::descriptor()->FindFieldByName(key)).max(), base::job_hosts_max) << key;
}

} // namespace
} // namespace dlrun::job
