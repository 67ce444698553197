#include "runtime/host_bundle.hpp"

#include "actors/common/fingerprint.hpp"
#include "base/unique_fd.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace dlrun::runtime {
namespace {

using testing::HasSubstr;

base::unique_fd input_of(const std::string& bytes) {
  base::unique_fd fd{::memfd_create("test", MFD_CLOEXEC)};
  EXPECT_EQ(::write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  ::lseek(fd.get(), 0, SEEK_SET);
  return fd;
}

bootstrap::HostBundle small_bundle() {
  bootstrap::HostBundle bundle;
  bundle.set_host("beta");
  bundle.set_run_token(std::string(16, 'x'));
  bundle.set_beat_key(std::string(32, 'y'));
  bundle.mutable_spec()->set_name("job");
  return bundle;
}

TEST(host_bundle, is_read_as_it_was_written_and_nothing_behind_it) {
  const auto bytes = written_bundle(small_bundle());
  const auto input = input_of(bytes + "more");
  const auto read = read_bundle(input.get());
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->SerializeAsString(), small_bundle().SerializeAsString());
  EXPECT_EQ(::lseek(input.get(), 0, SEEK_CUR), static_cast<off_t>(bytes.size()));
}

TEST(host_bundle, of_another_version_is_refused_and_both_are_named) {
  auto bytes = written_bundle(small_bundle());
  const auto version = common::dlrun_build();
  bytes.replace(bytes.find(version), version.size(), "0.0.1");
  const auto read = read_bundle(input_of(bytes).get());
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code, error_code::bad_usage);
  EXPECT_THAT(read.error().message,
              testing::AllOf(HasSubstr("0.0.1"), HasSubstr(version), HasSubstr("program:")));
}

TEST(host_bundle, that_is_none_says_who_starts_agents) {
  for (const auto* other : {"", "\n", "hello\n", "dlrun-host-bundle\n", "dlrun-host-bundle 0.2.0 many\n",
                            "dlrun-host-bundle 0.2.0 99999999999999\n", "dlrun-host-bundle 0.2.0 -1\n"})
    EXPECT_THAT(read_bundle(input_of(other).get()).error().message, HasSubstr("dlrun train --hosts"))
        << other;
  EXPECT_FALSE(read_bundle(input_of(std::string(100'000, 'x')).get()).has_value());
}

TEST(host_bundle, that_is_cut_off_is_refused) {
  const auto bytes = written_bundle(small_bundle());
  for (std::size_t size = bytes.find('\n') + 1; size < bytes.size(); ++size)
    EXPECT_FALSE(read_bundle(input_of(bytes.substr(0, size)).get()).has_value()) << size;
}

} // namespace
} // namespace dlrun::runtime
