#include "actors/coordinator/start_book.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <utility>

namespace dlrun::coordinator {
namespace {

using protocol::ps_shard_role;
using protocol::worker_role;
using testing::IsEmpty;
using testing::SizeIs;

const protocol::endpoint somewhere{"somewhere", 1, ""};

class start_book_test : public testing::Test {
protected:
  protocol::directory_entry entry(const protocol::role_name& role) const {
    for (const auto& one : book.directory({4}, {}).entries)
      if (one.role == role) return one;
    return {};
  }
  std::uint64_t sequence() const { return book.directory({4}, {}).sequence; }

  start_book book{{worker_role({0}), ps_shard_role({0})}};
};

TEST_F(start_book_test, a_role_that_has_not_started_is_in_the_directory_without_an_incarnation) {
  EXPECT_THAT(book.directory({4}, {}).entries, SizeIs(2));
  EXPECT_EQ(entry(worker_role({0})).incarnation, incarnation{});
  EXPECT_FALSE(entry(worker_role({0})).joined);
  EXPECT_FALSE(book.has(worker_role({1})));
  EXPECT_EQ(book.newest(worker_role({1})), incarnation{});
}

TEST_F(start_book_test, who_has_joined_is_available_until_it_is_over) {
  book.begin(worker_role({0}), {{3}, 77});
  EXPECT_THAT(book.available_workers(), IsEmpty());
  EXPECT_TRUE(book.join(worker_role({0}), somewhere));
  EXPECT_FALSE(book.join(worker_role({0}), somewhere)) << "told again";
  ASSERT_THAT(book.available_workers(), SizeIs(1));
  EXPECT_EQ(book.available_workers()[0].incarnation, incarnation{3});
  EXPECT_THAT(book.available_ps_shards(), IsEmpty());
  EXPECT_EQ(entry(worker_role({0})).at, somewhere);
  EXPECT_EQ(entry(worker_role({0})).token, 77U);
  book.end(worker_role({0}));
  EXPECT_THAT(book.available_workers(), IsEmpty());
  EXPECT_FALSE(entry(worker_role({0})).joined);
  EXPECT_EQ(entry(worker_role({0})).incarnation, incarnation{3}) << "nobody believes an older one";
}

TEST_F(start_book_test, a_newer_start_has_not_joined_where_the_older_had) {
  book.begin(ps_shard_role({0}), {{1}, 1});
  book.join(ps_shard_role({0}), somewhere);
  book.begin(ps_shard_role({0}), {{2}, 2});
  EXPECT_TRUE(book.of(ps_shard_role({0})).running);
  EXPECT_THAT(book.available_ps_shards(), IsEmpty());
  EXPECT_TRUE(book.join(ps_shard_role({0}), somewhere));
}

TEST_F(start_book_test, each_change_of_the_directory_gives_it_a_greater_number) {
  auto before = sequence();
  const auto grows = [&] {
    const auto last = std::exchange(before, sequence());
    return last < before;
  };
  book.begin(worker_role({0}), {{3}, 77});
  EXPECT_TRUE(grows());
  book.join(worker_role({0}), somewhere);
  EXPECT_TRUE(grows());
  book.join(worker_role({0}), somewhere);
  EXPECT_FALSE(grows());
  book.end(worker_role({0}));
  EXPECT_TRUE(grows());
  book.change_directory();
  EXPECT_TRUE(grows());
}

} // namespace
} // namespace dlrun::coordinator
