#include "data/blob.hpp"

#include "tests/data/files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dlrun::data {
namespace {

using test::bytes;
using test::temporary_folder;

bytes copy_of(const blob& b) { return {b.bytes().begin(), b.bytes().end()}; }

int memory_file(const bytes& content, int seals) {
  const int fd = ::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  EXPECT_EQ(::write(fd, content.data(), content.size()), static_cast<ssize_t>(content.size()));
  EXPECT_EQ(::fcntl(fd, F_ADD_SEALS, seals), 0);
  return fd;
}

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(blob, maps_a_file) {
  const temporary_folder folder;
  const auto mapped = blob::map_file(folder.write("x", {1, 2, 3}));
  ASSERT_TRUE(mapped) << mapped.error().message;
  EXPECT_EQ(copy_of(*mapped), (bytes{1, 2, 3}));
  EXPECT_GE(mapped->fd(), 0);
  EXPECT_EQ(mapped->name(), (folder.path() / "x").string());
}

TEST(blob, maps_an_empty_file_as_no_bytes) {
  const temporary_folder folder;
  const auto mapped = blob::map_file(folder.write("x", {}));
  ASSERT_TRUE(mapped) << mapped.error().message;
  EXPECT_TRUE(mapped->bytes().empty());
}

TEST(blob, names_a_file_that_is_not_there) {
  const auto mapped = blob::map_file("/nowhere/train-images");
  ASSERT_FALSE(mapped);
  EXPECT_EQ(mapped.error().code, error_code::bad_data);
  EXPECT_EQ(mapped.error().message, "cannot open /nowhere/train-images: No such file or directory");
}

TEST(blob, refuses_a_folder_and_a_pipe_without_waiting_for_a_writer) {
  const temporary_folder folder;
  EXPECT_EQ(blob::map_file(folder.path()).error().code, error_code::bad_data);
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto mapped = blob::map_file(pipe);
  ASSERT_FALSE(mapped);
  EXPECT_NE(mapped.error().message.find("not a regular file"), std::string::npos);
}

TEST(blob, adopts_a_sealed_memory_file_and_closes_it) {
  const int fd = memory_file({7, 8}, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
  {
    const auto adopted = blob::from_fd(fd, "records");
    ASSERT_TRUE(adopted) << adopted.error().message;
    EXPECT_EQ(copy_of(*adopted), (bytes{7, 8}));
    EXPECT_EQ(adopted->fd(), fd);
  }
  EXPECT_FALSE(is_open(fd));
}

TEST(blob, refuses_a_memory_file_that_could_shrink_under_it) {
  for (const int seals : {0, F_SEAL_WRITE, F_SEAL_GROW | F_SEAL_SEAL}) {
    const int fd = memory_file({7, 8}, seals);
    const auto adopted = blob::from_fd(fd, "records");
    ASSERT_FALSE(adopted) << seals;
    EXPECT_NE(adopted.error().message.find("may shorten"), std::string::npos);
    EXPECT_FALSE(is_open(fd)) << "ownership passes also on failure";
  }
}

TEST(blob, maps_a_file_of_a_memory_file_system) {
  std::string name = "/dev/shm/dlrun-test-XXXXXX";
  const int fd = ::mkstemp(name.data());
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::write(fd, "abc", 3), 3);
  const auto mapped = blob::map_file(name);
  ::unlink(name.c_str());
  ::close(fd);
  ASSERT_TRUE(mapped) << mapped.error().message;
  EXPECT_EQ(copy_of(*mapped), (bytes{'a', 'b', 'c'}));
}

TEST(blob, refuses_a_descriptor_that_is_not_open) {
  EXPECT_FALSE(blob::from_fd(-1, "records"));
  EXPECT_EQ(blob::from_fd(-1, "records").error().code, error_code::system);
}

TEST(blob, moves_its_bytes_without_copying_them) {
  const temporary_folder folder;
  auto mapped = blob::map_file(folder.write("x", {1, 2, 3}));
  ASSERT_TRUE(mapped);
  const auto* const address = mapped->bytes().data();
  blob other = std::move(*mapped);
  EXPECT_EQ(other.bytes().data(), address);
  EXPECT_TRUE(mapped->bytes().empty());
  EXPECT_EQ(mapped->fd(), -1);
  auto held = blob::map_file(folder.write("y", {9, 9})).value();
  held = std::move(other);
  EXPECT_EQ(copy_of(held), (bytes{1, 2, 3}));
}

} // namespace
} // namespace dlrun::data
