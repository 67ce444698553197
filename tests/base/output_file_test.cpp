#include "base/output_file.hpp"

#include "tests/data/files.hpp"
#include "tests/persistence/damage.hpp"

#include <csignal>
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace dlrun::base {
namespace {

using testing::HasSubstr;

mode_t mode_of(const std::filesystem::path& file) {
  struct stat about {};
  EXPECT_EQ(::stat(file.c_str(), &about), 0);
  return about.st_mode & 07777;
}

class output_file_test : public testing::TestWithParam<output_file::unfinished> {
protected:
  output_file_test()
      : umask_(::umask(022)) {}
  ~output_file_test() override { ::umask(umask_); }

  static result<void> write(const std::filesystem::path& file, std::string_view content) {
    auto out = output_file::open(file, GetParam());
    if (!out) return tl::unexpected(out.error());
    if (auto written = out->write(content); !written) return written;
    return out->finish();
  }
  std::ptrdiff_t files() const {
    return std::distance(std::filesystem::directory_iterator(folder.path()), {});
  }

  test::temporary_folder folder;
  std::filesystem::path file = folder.path() / "out";

private:
  mode_t umask_;
};

/// A sync that was asked for: of what, and whether the file had its name by then.
struct noted_sync {
  std::filesystem::path what;
  bool was_named = false;
};
/// Where fsync() below notes them for a test; null for none.
struct noted_syncs {
  std::filesystem::path file;
  std::vector<noted_sync> all;
};
noted_syncs* noted_by_test = nullptr;

TEST_P(output_file_test, a_new_file_has_the_permissions_that_the_umask_leaves) {
  for (const auto& [mask, mode] : {std::pair<mode_t, mode_t>{022, 0644}, {077, 0600}, {002, 0664}}) {
    ::umask(mask);
    std::filesystem::remove(file);
    ASSERT_TRUE(write(file, "x"));
    EXPECT_EQ(mode_of(file), mode);
  }
}

TEST_P(output_file_test, a_file_that_is_replaced_keeps_its_permissions) {
  ASSERT_TRUE(write(file, "old"));
  ASSERT_EQ(::chmod(file.c_str(), 0640), 0);
  ASSERT_TRUE(write(file, "new"));
  EXPECT_EQ(test::content_of(file), "new");
  EXPECT_EQ(mode_of(file), 0640U);
}

TEST_P(output_file_test, a_link_stays_and_what_it_leads_to_is_written) {
  std::filesystem::create_directory(folder.path() / "elsewhere");
  std::filesystem::create_symlink("elsewhere/second", folder.path() / "first");
  std::filesystem::create_symlink("first", file);
  std::filesystem::create_symlink("target", folder.path() / "elsewhere" / "second");
  for (const auto* content : {"to a file that is not there", "to one that is"}) {
    ASSERT_TRUE(write(file, content));
    EXPECT_TRUE(std::filesystem::is_symlink(file));
    EXPECT_EQ(test::content_of(folder.path() / "elsewhere" / "target"), content);
  }
  EXPECT_EQ(files(), 3);
}

TEST_P(output_file_test, links_in_a_circle_are_an_error) {
  std::filesystem::create_symlink("out", folder.path() / "other");
  std::filesystem::create_symlink("other", file);
  EXPECT_FALSE(write(file, "x"));
  EXPECT_TRUE(std::filesystem::is_symlink(file));
}

TEST_P(output_file_test, a_fifo_is_written_to_and_stays_one) {
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  const int reader = ::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_TRUE(write(file, "through it"));
  std::string got(100, '\0');
  got.resize(static_cast<std::size_t>(::read(reader, got.data(), got.size())));
  ::close(reader);
  EXPECT_EQ(got, "through it");
  EXPECT_TRUE(std::filesystem::is_fifo(file));
  EXPECT_EQ(files(), 1);
}

TEST_P(output_file_test, an_open_descriptor_is_written_to_where_it_stands) {
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::write(fd, "before,", 7), 7);
  std::filesystem::create_symlink(fmt::format("/dev/fd/{}", fd), folder.path() / "link");
  ASSERT_TRUE(write(fmt::format("/proc/self/fd/{}", fd), "within,"));
  ASSERT_TRUE(write(folder.path() / "link", "by a link,"));
  ASSERT_EQ(::write(fd, "behind", 6), 6);
  EXPECT_EQ(test::content_of(file), "before,within,by a link,behind");
  ::close(fd);
  EXPECT_EQ(write(fmt::format("/dev/fd/{}", fd), "x").error().code, error_code::bad_usage);
}

TEST_P(output_file_test, a_device_is_written_to_and_a_full_one_says_so) {
  ASSERT_TRUE(write("/dev/null", "x"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  const auto full = write("/dev/full", "x");
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().message, "cannot write /dev/full: No space left on device");
  EXPECT_EQ(full.error().code, error_code::disk_full);
}

TEST_P(output_file_test, a_folder_is_refused_by_name) {
  const auto refused = write(folder.path(), "x");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::bad_usage);
  EXPECT_THAT(refused.error().message, HasSubstr("Is a directory"));
  EXPECT_EQ(files(), 0);
}

TEST_P(output_file_test, a_name_may_be_as_long_as_the_file_system_takes) {
  ASSERT_TRUE(write(folder.path() / std::string(255, 'x'), "whole"));
  EXPECT_EQ(write(folder.path() / std::string(256, 'x'), "x").error().code, error_code::bad_usage);
  EXPECT_EQ(files(), 1);
}

TEST_P(output_file_test, what_is_not_finished_leaves_nothing) {
  {
    auto out = output_file::open(file, GetParam()).value();
    ASSERT_TRUE(out.write("half"));
    auto moved = std::move(out);
    ASSERT_TRUE(moved.write("and more"));
  }
  EXPECT_EQ(files(), 0);
}

TEST(output_file, that_is_written_by_a_process_that_is_killed_leaves_nothing) {
  const test::temporary_folder folder;
  const auto file = folder.path() / "out";
  if (const int fd = ::open(folder.path().c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600); fd >= 0)
    ::close(fd);
  else
    return; // this file system must name them
  const auto child = ::fork();
  if (child == 0) {
    auto out = output_file::open(file);
    if (!out || !out->write("half")) ::_exit(1);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST_P(output_file_test, the_name_of_a_file_is_synced_too) {
  noted_syncs syncs{file, {}};
  noted_by_test = &syncs;
  const auto written = write(file, "x");
  noted_by_test = nullptr;
  ASSERT_TRUE(written);
  ASSERT_EQ(syncs.all.size(), 2U);
  EXPECT_FALSE(syncs.all.front().was_named) << "the bytes are on disk before they have the name";
  EXPECT_EQ(syncs.all.back().what, std::filesystem::canonical(folder.path()));
  EXPECT_TRUE(syncs.all.back().was_named);
}

INSTANTIATE_TEST_SUITE_P(unfinished, output_file_test,
                         testing::Values(output_file::unfinished::nameless_where_possible,
                                         output_file::unfinished::named));

} // namespace
} // namespace dlrun::base

/// In place of the C library's, for all of this program.
extern "C" int fsync(int fd) {
  if (auto* const into = dlrun::base::noted_by_test) {
    std::error_code ignored;
    into->all.push_back({std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), ignored),
                         std::filesystem::exists(into->file, ignored)});
  }
  return static_cast<int>(::syscall(SYS_fsync, fd));
}
