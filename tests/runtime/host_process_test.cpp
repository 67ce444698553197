#include "runtime/host_process.hpp"

#include "base/unique_fd.hpp"
#include "runtime/host_bundle.hpp"
#include "security/certificate_authority.hpp"
#include "tests/data/files.hpp"
#include "tests/job/spec_text.hpp"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

namespace dlrun::runtime {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class host_process : public ::testing::Test {
protected:
  host_process() { pthread_sigmask(SIG_SETMASK, nullptr, &mask_before_); }
  ~host_process() override { pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr); }

  /// What a root tells host beta whose clock is so far ahead of the one here.
  bootstrap::HostBundle bundle(std::chrono::seconds ahead) const {
    const auto authority = security::certificate_authority::make("j1").value();
    const auto made =
        authority.issue({"j1", "host_agent", 1, "beta"}, {std::chrono::system_clock::now() + ahead}).value();
    bootstrap::HostBundle one;
    *one.mutable_spec() = test::parse(test::minimal_spec).value();
    one.set_host("beta");
    one.set_address("127.0.0.1");
    one.set_folder((folder_.path() / "beta").string());
    one.set_run_token(std::string(16, 'x'));
    one.set_beat_key(std::string(32, 'y'));
    one.mutable_credentials()->set_certificate(made.certificate_pem);
    one.mutable_credentials()->set_key(made.key_pem.reveal());
    one.mutable_credentials()->set_authority(made.authority_pem);
    return one;
  }

  static result<void> run(const bootstrap::HostBundle& told) {
    const auto bytes = written_bundle(told);
    const base::unique_fd input{::memfd_create("test", MFD_CLOEXEC)};
    EXPECT_EQ(::write(input.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    ::lseek(input.get(), 0, SEEK_SET);
    return run_host_agent(input.get());
  }

  test::temporary_folder folder_;
  sigset_t mask_before_{};
};

TEST_F(host_process,
       whose_clock_is_two_hours_behind_says_both_times_before_anything_else_and_leaves_nothing) {
  const auto ended = run(bundle(2h));
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, error_code::bad_usage);
  EXPECT_THAT(ended.error().message, HasSubstr("host beta: the clocks differ: here it is 2"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(host_process, whose_clock_is_right_gets_further) {
  const auto ended = run(bundle(0s));
  ASSERT_FALSE(ended) << "there is no job";
  EXPECT_THAT(ended.error().message, ::testing::Not(HasSubstr("clock")));
}

} // namespace
} // namespace dlrun::runtime
