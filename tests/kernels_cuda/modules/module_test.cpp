#include "tests/kernels_cuda/modules/fake_modules.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::kernels::cuda {
namespace {

using test::fake_module;
using test::named_module;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

std::string refusal_of(const std::filesystem::path& path) {
  const auto loaded = load_module(path);
  if (loaded) return "it was loaded";
  EXPECT_EQ(loaded.error().code, error_code::bad_usage);
  return loaded.error().message;
}

TEST(module, tells_of_its_devices) {
  const auto loaded = load_module(fake_module("two_gpus"));
  ASSERT_TRUE(loaded) << loaded.error().message;
  const auto devices = (*loaded)->devices();
  ASSERT_TRUE(devices);
  ASSERT_EQ(devices->size(), 2U);
  EXPECT_EQ(devices->front().name, "Fake GPU");
}

TEST(module, is_one_however_often_it_is_loaded) {
  const auto once = load_module(fake_module("two_gpus"));
  const auto again = load_module(fake_module("two_gpus"));
  ASSERT_TRUE(once && again);
  EXPECT_EQ(*once, *again);
}

TEST(module, that_is_not_there_is_named_with_the_way_out) {
  EXPECT_THAT(refusal_of("/nowhere/libdlrun_cuda.so"),
              AllOf(HasSubstr("there is no CUDA module: '/nowhere/libdlrun_cuda.so' is no file"),
                    HasSubstr("docs/gpu.md"), HasSubstr("DLRUN_CUDA_MODULE")));
  EXPECT_THAT(refusal_of("/tmp"), HasSubstr("'/tmp' is no file"));
}

TEST(module, that_is_a_mere_name_is_a_file_of_this_folder_and_not_searched_for) {
  EXPECT_THAT(refusal_of("libc.so.6"), HasSubstr("/libc.so.6' is no file"));
}

TEST(module, names_the_library_that_it_needs_and_does_not_find) {
  EXPECT_THAT(refusal_of(fake_module("needy")),
              AllOf(HasSubstr("libdlrun_fake_needy.so' cannot be loaded"),
                    HasSubstr("libdlrun_fake_absent.so: cannot open shared object file"),
                    HasSubstr("install what it needs")));
}

/// Whether this process has something of such a name in its memory.
bool is_mapped(const std::string& name) {
  std::ifstream maps{"/proc/self/maps"};
  for (std::string line; std::getline(maps, line);)
    if (line.find(name) != std::string::npos) return true;
  return false;
}

/// A module under the name of the one that is built with CUDA.
class module_of_cuda : public testing::Test {
protected:
  module_of_cuda() { std::filesystem::copy_file(fake_module("two_gpus"), file); }
  ~module_of_cuda() override { std::filesystem::remove_all(folder); }

  std::filesystem::path folder = [] {
    auto name = (std::filesystem::temp_directory_path() / "dlrun-module-XXXXXX").string();
    return std::filesystem::path{::mkdtemp(name.data())};
  }();
  std::filesystem::path file = folder / module_file;
};

TEST_F(module_of_cuda, is_not_loaded_where_there_is_no_driver) {
  const auto loaded = load_module(file, "libdlrun_no_driver.so.1");
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, error_code::bad_usage);
  EXPECT_THAT(loaded.error().message, HasSubstr("this host has no NVIDIA driver: libcuda.so.1 is not there"));
  EXPECT_FALSE(is_mapped(file.string()));
}

TEST_F(module_of_cuda, is_loaded_where_there_is_one_which_is_only_looked_for) {
  const auto driver = folder / "driver.so";
  std::filesystem::copy_file(fake_module("no_entry"), driver);
  const auto loaded = load_module(file, driver.c_str());
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_TRUE(is_mapped(file.string()));
  EXPECT_FALSE(is_mapped(driver.string()));
}

TEST(module, that_is_another_library_or_none_is_refused) {
  EXPECT_THAT(refusal_of(fake_module("no_entry")),
              AllOf(HasSubstr("libdlrun_fake_no_entry.so' is no CUDA module of dlrun"),
                    HasSubstr("it has no dlrun_device_module_1"), HasSubstr("DLRUN_CUDA_MODULE")));
  const auto text = std::filesystem::temp_directory_path() / "dlrun-module-test.so";
  std::ofstream{text} << "no library\n";
  EXPECT_THAT(refusal_of(text), HasSubstr("cannot be loaded"));
  std::filesystem::remove(text);
}

TEST(module, of_another_build_is_refused) {
  EXPECT_THAT(refusal_of(fake_module("other_build")),
              AllOf(HasSubstr("libdlrun_fake_other_build.so' is of another build"),
                    HasSubstr("build and install both together")));
}

TEST(module, is_what_the_environment_names) {
  const named_module named{"/somewhere/mine.so"};
  EXPECT_EQ(module_path(), "/somewhere/mine.so");
}

TEST(module, is_else_looked_for_beside_the_folder_of_the_program) {
  const named_module nothing{""};
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  EXPECT_THAT(module_path().string(), EndsWith("libdlrun_cuda.so"));
  EXPECT_EQ(module_path().string().find(program.parent_path().parent_path().string() + "/lib"), 0U);
}

TEST(module, is_named_by_nothing_where_the_variable_is_empty) {
  const named_module named{""};
  EXPECT_THAT(module_path().string(), EndsWith("libdlrun_cuda.so"));
}

} // namespace
} // namespace dlrun::kernels::cuda
