#include "base/small_file.hpp"

#include "tests/data/files.hpp"

#include <gmock/gmock.h>

namespace dlrun::base {
namespace {

using testing::HasSubstr;

class small_file : public testing::Test {
protected:
  result<std::optional<std::string>> read(const std::filesystem::path& name, std::size_t most = 1000) const {
    return read_small_file(folder.path() / name, most);
  }
  void write(const std::string& name, const std::string& text) const {
    static_cast<void>(folder.write(name, {text.begin(), text.end()}));
  }
  test::temporary_folder folder;
};

TEST_F(small_file, is_read_whole) {
  for (const std::size_t size : {0, 1, 999, 1000}) {
    const std::string text(size, 'x');
    write("file", text);
    EXPECT_EQ(read("file").value(), text);
  }
}

TEST_F(small_file, is_told_from_one_that_is_not_there) {
  EXPECT_EQ(read("file").value(), std::nullopt);
  write("file", "x");
  EXPECT_EQ(read("file/below").value(), std::nullopt);
}

TEST_F(small_file, is_not_taken_for_a_shorter_one) {
  write("file", std::string(1001, 'x'));
  EXPECT_EQ(read("file").error().code, error_code::limit_exceeded);
}

TEST_F(small_file, is_an_error_where_it_cannot_be_read) {
  std::filesystem::create_symlink("file", folder.path() / "file");
  const auto itself = read("file");
  ASSERT_FALSE(itself);
  EXPECT_EQ(itself.error().code, error_code::system);
  EXPECT_THAT(itself.error().message, HasSubstr("file': Too many levels of symbolic links"));
  EXPECT_EQ(read("").error().code, error_code::system) << "a folder";
  EXPECT_EQ(read("/proc/self/mem").error().code, error_code::system) << "opened, and not read";
  EXPECT_TRUE(read("/proc/self/status", 100'000).value()->starts_with("Name:")) << "its size is told as 0";
}

} // namespace
} // namespace dlrun::base
