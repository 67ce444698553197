// Names: what is accepted, and that nothing else is.
#include "security/certificate_name.hpp"

#include <gmock/gmock.h>

namespace dlrun::security {
namespace {

using ::testing::HasSubstr;

TEST(certificate_name, a_name_is_read_as_it_was_written) {
  for (const certificate_name& one :
       {certificate_name{"j1", "worker", 0, "a"},
        {"20261125-1.x", "ps_shard", 4'294'967'295, "host-7.example"},
        {std::string(64, 'j'), std::string(64, 'r'), 12, std::string(253, 'h')}})
    EXPECT_EQ(parse_uri(to_uri(one)).value(), one);
  EXPECT_EQ(to_uri({"j1", "worker", 3, "b"}), "dlrun:job/j1/role/worker/3/host/b");
  EXPECT_EQ(describe({"j1", "worker", 3, "b"}), "worker 3 on host b of job j1");
}

TEST(certificate_name, no_other_text_is_a_name) {
  const std::string_view none[] = {"",
                                   "dlrun:",
                                   "dlrun:job/j1/role/worker/3/host/",
                                   "dlrun:job//role/worker/3/host/b",
                                   "job/j1/role/worker/3/host/b",
                                   "Dlrun:job/j1/role/worker/3/host/b",
                                   "dlrun:job/j1/role/worker/3/host/b/",
                                   "dlrun:job/j1/role/worker/3/host/b/x",
                                   "dlrun:job/j1/role/worker/03/host/b",
                                   "dlrun:job/j1/role/worker/+3/host/b",
                                   "dlrun:job/j1/role/worker/-3/host/b",
                                   "dlrun:job/j1/role/worker/3x/host/b",
                                   "dlrun:job/j1/role/worker//host/b",
                                   "dlrun:job/j1/role/worker/4294967296/host/b",
                                   "dlrun:job/j1/role/worker/3/host/b c",
                                   "dlrun:job/j1/role/work%65r/3/host/b",
                                   "dlrun:job/j1/role/worker/3/hast/b",
                                   "dlrun:jab/j1/role/worker/3/host/b",
                                   "dlrun:job/j1/rale/worker/3/host/b",
                                   "dlrun:role/worker/3/job/j1/host/b",
                                   std::string_view("dlrun:job/j1/role/worker/3/host/b\0", 34)};
  for (const auto wrong : none) EXPECT_FALSE(parse_uri(wrong)) << wrong;
}

TEST(certificate_name, a_field_that_cannot_be_in_a_name_is_named) {
  EXPECT_THAT(check_name({"", "worker", 0, "a"}).error().message, HasSubstr("job"));
  EXPECT_THAT(check_name({"j", "a/b", 0, "a"}).error().message, HasSubstr("role"));
  EXPECT_THAT(check_name({"j", "worker", 0, std::string(254, 'h')}).error().message, HasSubstr("host"));
  EXPECT_THAT(check_name({"j", "worker", 0, "a,URI:b"}).error().message, HasSubstr("host"));
  EXPECT_TRUE(check_name({"j", "worker", 0, "a"}));
}

} // namespace
} // namespace dlrun::security
