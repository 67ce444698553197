#include "actors/coordinator/arithmetic_book.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::coordinator {
namespace {

using protocol::role_kind;
using testing::AllOf;
using testing::HasSubstr;

protocol::join joining(role_kind kind, std::uint32_t index, std::string fingerprint,
                       std::string device = "") {
  return {.role = {kind, index},
          .self = {},
          .pid = 1,
          .at = {},
          .fingerprint = std::move(fingerprint),
          .device = std::move(device)};
}

TEST(arithmetic_book, lets_everybody_in_who_is_like_the_first) {
  arithmetic_book book;
  for (std::uint32_t i = 0; i < 2; ++i)
    for (const auto& one :
         {joining(role_kind::ps_shard, i, "avx2"), joining(role_kind::worker, i, "avx2", "H100")}) {
      EXPECT_EQ(book.why_refused(one), "");
      book.note(one);
    }
}

TEST(arithmetic_book, refuses_another_fingerprint_naming_both) {
  arithmetic_book book;
  book.note(joining(role_kind::ps_shard, 0, "avx2"));
  EXPECT_THAT(
      book.why_refused(joining(role_kind::worker, 1, "avx512", "cpu")),
      AllOf(HasSubstr("worker 1 has the fingerprint 'avx512'"), HasSubstr("ps_shard 0 joined with 'avx2'")));
}

TEST(arithmetic_book, lets_everybody_in_where_the_bits_need_not_be_the_same) {
  arithmetic_book book{true};
  book.note(joining(role_kind::worker, 0, "avx2", "H100"));
  EXPECT_EQ(book.why_refused(joining(role_kind::worker, 1, "avx512", "A100")), "");
  EXPECT_EQ(book.why_refused(joining(role_kind::ps_shard, 0, "avx512")), "");
}

TEST(arithmetic_book, refuses_a_worker_on_another_device_naming_both_and_the_way_out) {
  arithmetic_book book;
  book.note(joining(role_kind::ps_shard, 0, "avx2"));
  EXPECT_EQ(book.device(), "") << "a PS shard has none";
  book.note(joining(role_kind::worker, 0, "avx2", "H100"));
  EXPECT_EQ(book.device(), "H100");
  EXPECT_THAT(book.why_refused(joining(role_kind::worker, 1, "avx2", "A100")),
              AllOf(HasSubstr("worker 1 computes on 'A100', but worker 0 joined with 'H100'"),
                    HasSubstr("cluster.gpus")));
  EXPECT_NE(book.why_refused(joining(role_kind::worker, 1, "avx2", "cpu")), "");
  EXPECT_EQ(book.why_refused(joining(role_kind::ps_shard, 1, "avx2")), "");
}

} // namespace
} // namespace dlrun::coordinator
