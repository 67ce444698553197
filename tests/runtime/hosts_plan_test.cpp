#include "runtime/hosts_plan.hpp"

#include "tests/data/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::runtime {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class hosts_plan_test : public testing::Test {
protected:
  result<hosts_plan> plan(const std::string& hosts, const std::string& more = "start: [sh]\n") {
    const auto text = "hosts: [" + hosts + "]\n" + more;
    return plan_hosts(folder.write("hosts.yaml", {text.begin(), text.end()}), self);
  }
  std::string self;
  test::temporary_folder folder;
};

// 192.0.2.0/24 is for documentation (RFC 5737): nobody has it.
TEST_F(hosts_plan_test, finds_the_host_that_it_is_on_by_its_address) {
  const auto found = plan("{name: beta, address: 192.0.2.7}, {name: alpha, address: 127.0.0.1}");
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ(found->here, 1);
  EXPECT_EQ(found->own().name(), "alpha");
}

TEST_F(hosts_plan_test, starts_agents_by_the_full_path_of_the_command) {
  const auto found = plan("{name: alpha, address: 127.0.0.1}, {name: beta, address: 192.0.2.7}",
                          "start: [sh, \"{host}\"]\nprogram: /opt/dlrun/bin/dlrun\n");
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_THAT(found->command_for(found->hosts.hosts(1)),
              ElementsAre(testing::EndsWith("/sh"), "beta", "/opt/dlrun/bin/dlrun", "agent"));
}

TEST_F(hosts_plan_test, refuses_a_list_without_this_machine_and_says_what_to_add) {
  const auto found = plan("{name: beta, address: 192.0.2.7}");
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, error_code::bad_usage);
  EXPECT_THAT(found.error().message, AllOf(HasSubstr("hosts.yaml"), HasSubstr("127.0.0.1")));
}

TEST_F(hosts_plan_test, refuses_one_machine_under_two_names) {
  const auto found = plan("{name: alpha, address: 127.0.0.1}, {name: beta, address: localhost}");
  ASSERT_FALSE(found.has_value());
  EXPECT_THAT(found.error().message, AllOf(HasSubstr("alpha"), HasSubstr("beta"), HasSubstr("once")));
}

TEST_F(hosts_plan_test, refuses_an_address_that_nobody_knows) {
  const auto found = plan("{name: alpha, address: 127.0.0.1}, {name: beta, address: no.such.host.invalid}");
  ASSERT_FALSE(found.has_value());
  EXPECT_THAT(found.error().message, AllOf(HasSubstr("host beta"), HasSubstr("no.such.host.invalid")));
}

TEST_F(hosts_plan_test, spares_its_own_host_alone_and_only_where_others_are) {
  const std::string spared = "{name: alpha, address: 127.0.0.1, cpus: 0}";
  EXPECT_TRUE(plan(spared + ", {name: beta, address: 192.0.2.7}").has_value());
  EXPECT_TRUE(plan(spared, "join: {listen: \"127.0.0.1:7700\", hosts_min: 2}\n").has_value());
  for (const auto* alone : {"start: [sh]\n", "join: {listen: \"127.0.0.1:7700\"}\n"}) {
    const auto found = plan(spared, alone);
    ASSERT_FALSE(found.has_value()) << alone;
    EXPECT_EQ(found.error().code, error_code::bad_usage);
    EXPECT_THAT(found.error().message,
                AllOf(HasSubstr("host alpha: with cpus: 0"), HasSubstr("join.hosts_min: 2")));
  }
  const auto other = plan("{name: alpha, address: 127.0.0.1}, {name: beta, address: 192.0.2.7, cpus: 0}");
  ASSERT_FALSE(other.has_value());
  EXPECT_THAT(other.error().message,
              AllOf(HasSubstr("host beta: cpus: 0"), HasSubstr("alpha: give it 1 or more")));
}

TEST_F(hosts_plan_test, has_no_gpus_on_its_own_host_alone) {
  const auto found = plan("{name: alpha, address: 127.0.0.1, gpus: none}, {name: beta, address: 192.0.2.7}");
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_FALSE(has_gpus_here(*found));
  EXPECT_TRUE(has_gpus_here(*plan("{name: alpha, address: 127.0.0.1, gpus: any}")));
  EXPECT_TRUE(has_gpus_here(std::nullopt));
  const auto other = plan("{name: alpha, address: 127.0.0.1}, {name: beta, address: 192.0.2.7, gpus: none}");
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().code, error_code::bad_usage);
  EXPECT_THAT(other.error().message,
              AllOf(HasSubstr("host beta: gpus: none"), HasSubstr("alpha: leave the key out")));
}

TEST_F(hosts_plan_test, refuses_a_command_that_is_not_there) {
  const auto found = plan("{name: alpha, address: 127.0.0.1}", "start: [no-such-starter]\n");
  ASSERT_FALSE(found.has_value());
  EXPECT_THAT(found.error().message, AllOf(HasSubstr("no-such-starter"), HasSubstr("start:")));
}

TEST_F(hosts_plan_test, refuses_a_program_that_a_shell_would_take_for_more_than_one_word) {
  const auto found =
      plan("{name: alpha, address: 127.0.0.1}", "start: [sh]\nprogram: /opt/my programs/dlrun\n");
  ASSERT_FALSE(found.has_value());
  EXPECT_THAT(found.error().message, HasSubstr("/opt/my programs/dlrun"));
}

TEST_F(hosts_plan_test, puts_the_number_that_is_given_in_the_place_of_self) {
  self = "127.0.0.1";
  const auto found = plan("{name: beta, address: 192.0.2.7}, {name: alpha, address: self}",
                          "start: [sh]\njoin: {listen: \"self:0\"}\n");
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ(found->here, 1);
  EXPECT_EQ(found->own_number(), "127.0.0.1");
  EXPECT_EQ(found->hosts.join().listen(), "127.0.0.1:0");
}

TEST_F(hosts_plan_test, refuses_a_number_that_no_interface_has_and_names_those_that_there_are) {
  self = "192.0.2.7";
  const auto found = plan("{name: alpha, address: self}");
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, error_code::bad_usage);
  EXPECT_THAT(found.error().message, AllOf(HasSubstr("--address 192.0.2.7"), HasSubstr("127.0.0.1")));
}

TEST_F(hosts_plan_test, refuses_a_number_of_which_the_list_makes_no_use) {
  self = "127.0.0.1";
  const auto found = plan("{name: alpha, address: 127.0.0.1}");
  ASSERT_FALSE(found.has_value());
  EXPECT_THAT(found.error().message, HasSubstr("'address: self'"));
}

TEST_F(hosts_plan_test, finds_out_by_itself_what_self_is_where_this_machine_has_one_number) {
  auto numbers = own_numbers();
  std::erase_if(numbers, [](const auto& one) { return one.starts_with("127."); });
  const auto found = plan("{name: alpha, address: self}");
  EXPECT_EQ(found.has_value(), numbers.size() == 1);
  if (found)
    EXPECT_EQ(found->own_number(), *numbers.begin());
  else
    EXPECT_THAT(found.error().message, AllOf(HasSubstr("hosts.yaml"), HasSubstr("--address")));
}

TEST_F(hosts_plan_test, needs_no_command_where_all_other_hosts_join_by_themselves) {
  const auto found = plan("{name: alpha, address: 127.0.0.1}",
                          "start: [no-such-starter]\njoin: {listen: \"127.0.0.1:0\", hosts_min: 2}\n");
  ASSERT_TRUE(found.has_value()) << found.error().message;
}

} // namespace
} // namespace dlrun::runtime
