#include "actors/common/fingerprint.hpp"

#include "engine/fingerprint.hpp"

#include <gmock/gmock.h>

namespace dlrun::common {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(fingerprint, names_the_compiler_that_built_it) {
#ifdef __clang__
  EXPECT_THAT(engine::compiler_version(), StartsWith("clang " + std::to_string(__clang_major__) + "."));
#else
  EXPECT_EQ(engine::compiler_version(), "gcc " __VERSION__);
#endif
}

TEST(fingerprint, has_all_that_the_bits_depend_on) {
  const auto all = host_fingerprint(3);
  for (const auto& part : {dlrun_version(), engine::compiler_version(), engine::onednn_version(),
                           engine::cpu_model(), engine::instruction_set()}) {
    EXPECT_FALSE(part.empty());
    EXPECT_THAT(all, HasSubstr(part));
  }
  EXPECT_THAT(all, HasSubstr("3 threads"));
}

} // namespace
} // namespace dlrun::common
