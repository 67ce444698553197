#include "kubernetes/pod_memory.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dlrun::kubernetes {
namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

TEST(pod_memory, is_read_as_kubernetes_writes_it) {
  EXPECT_EQ(memory_bytes("1000"), 1000U);
  EXPECT_EQ(memory_bytes("512Mi"), gib / 2);
  EXPECT_EQ(memory_bytes("4Gi"), 4 * gib);
  EXPECT_EQ(memory_bytes("2Ti"), 2048 * gib);
  for (const auto* none : {"", "Gi", "-1Gi", "4G", "4GiB", "4 Gi", "4gi", "1.5Gi", "4Ei", "9999999999Ti"})
    EXPECT_EQ(memory_bytes(none), std::nullopt) << none;
}

TEST(pod_memory, is_written_in_whole_mebibytes) {
  EXPECT_EQ(memory_text(6 * gib), "6144Mi");
  EXPECT_EQ(memory_text(gib + 1), "1025Mi");
  EXPECT_EQ(memory_bytes(memory_text(3 * gib / 2)), 3 * gib / 2);
}

TEST(pod_memory, grows_by_half_up_to_what_is_allowed) {
  EXPECT_EQ(grown_memory(4 * gib, 100 * gib), 6 * gib);
  EXPECT_EQ(grown_memory(4 * gib, 5 * gib), 5 * gib);
  EXPECT_EQ(grown_memory(4 * gib, 4 * gib), 4 * gib);
  EXPECT_EQ(grown_memory(4 * gib, 0), 4 * gib);
}

TEST(pod_memory, is_allowed_by_the_template) {
  EXPECT_EQ(
      memory_max_of(nlohmann::json::parse(R"({"metadata": {"annotations": {"dlrun/memory-max": "8Gi"}}})")),
      8 * gib);
  for (const auto* text : {"null", "{}", R"({"metadata": {"annotations": {"dlrun/memory-max": 8}}})",
                           R"({"metadata": {"annotations": {"dlrun/memory-max": "much"}}})"})
    EXPECT_EQ(memory_max_of(nlohmann::json::parse(text)), 0U) << text;
}

} // namespace
} // namespace dlrun::kubernetes
