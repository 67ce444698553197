#include "runtime/enrolment_desk.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::runtime {
namespace {

using testing::HasSubstr;

bootstrap::JoinRequest sound() {
  bootstrap::JoinRequest who;
  who.set_name("beta");
  who.set_address("10.0.0.2");
  who.set_folder("/var/lib/dlrun");
  who.set_cpus(8);
  return who;
}

std::string problem(const std::function<void(bootstrap::JoinRequest&)>& change) {
  auto who = sound();
  change(who);
  const auto checked = check_request(who);
  EXPECT_TRUE(checked || checked.error().code == error_code::bad_usage);
  return checked ? "" : checked.error().message;
}

TEST(check_request, takes_what_a_host_says_of_itself) {
  EXPECT_EQ(problem([](auto&) {}), "");
  EXPECT_EQ(problem([](auto& who) { who.clear_folder(); }), "");
  EXPECT_EQ(problem([](auto& who) { who.set_name("node-7.rack_2.lan"); }), "");
}

// The name becomes part of file names and certificates.
TEST(check_request, refuses_names_that_are_no_hosts) {
  for (const auto* name : {"", "../../etc", "a b", "-beta", ".beta", "b\nc", "h\xc3\xb6st"})
    EXPECT_THAT(problem([&](auto& who) { who.set_name(name); }), HasSubstr("--name")) << name;
  EXPECT_THAT(problem([](auto& who) { who.set_name(std::string(101, 'a')); }), HasSubstr("--name"));
}

TEST(check_request, refuses_addresses_that_are_no_numbers) {
  for (const auto* address : {"", "beta.lan", "10.0.0.2:7", "10.0.0", "::1", "010.0.0.2"})
    EXPECT_THAT(problem([&](auto& who) { who.set_address(address); }), HasSubstr("--address")) << address;
}

TEST(check_request, refuses_folders_without_a_full_path_and_cores_that_nobody_has) {
  EXPECT_THAT(problem([](auto& who) { who.set_folder("run"); }), HasSubstr("no full path"));
  EXPECT_THAT(problem([](auto& who) { who.set_folder(std::string("/run\0x", 6)); }),
              HasSubstr("no full path"));
  EXPECT_THAT(problem([](auto& who) { who.set_folder("/" + std::string(4096, 'a')); }),
              HasSubstr("no full path"));
  EXPECT_THAT(problem([](auto& who) { who.set_cpus(4097); }), HasSubstr("4097 cores"));
}

} // namespace
} // namespace dlrun::runtime
