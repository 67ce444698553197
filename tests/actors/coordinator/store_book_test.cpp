#include "actors/coordinator/store_book.hpp"

#include <gmock/gmock.h>

namespace dlrun::coordinator {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint64_t own = 0xaaaaaaaa00000001;
constexpr std::uint64_t other = 0xbbbbbbbb00000002;

class store_book_test : public testing::Test {
protected:
  static protocol::opened_store found(std::uint64_t identity, std::uint64_t opener, std::uint64_t newest,
                                      std::uint64_t timeline = 0) {
    return {{"alpha", identity, {0}}, {opener}, {timeline}, {newest}, ""};
  }
  static protocol::join join(std::uint64_t start, protocol::opened_store store) {
    protocol::join message;
    message.role = protocol::ps_shard_role({1});
    message.self = {{start}, 7};
    message.opened = std::move(store);
    return message;
  }
  void status(std::uint64_t start, std::uint64_t identity, std::uint64_t newest, std::uint64_t timeline = 0) {
    protocol::shard_status said;
    said.shard = {1};
    said.self = {{start}, 7};
    said.timeline = {timeline};
    said.durable.restorable = {{{0}, {0}}, {{4}, {newest}}};
    said.store = {"alpha", identity, {4}};
    book.on_status(said);
  }
  /// Start 3 made the store, and has told that it holds up to version 40.
  void SetUp() override {
    EXPECT_FALSE(book.on_joined(join(3, found(own, 0, 0))).news);
    status(3, own, 40);
  }
  const known_store& known() const { return book.known().at({1}); }

  store_book book;
};

TEST_F(store_book_test, a_store_that_holds_what_it_had_acknowledged_is_taken_without_a_word) {
  const auto verdict = book.on_joined(join(4, found(own, 3, 40)));
  EXPECT_FALSE(verdict.is_short);
  EXPECT_FALSE(verdict.news);
  EXPECT_EQ(known().opener, incarnation{4});
}

TEST_F(store_book_test, one_that_holds_less_is_short_and_told_once_with_store_host_and_versions) {
  const auto verdict = book.on_joined(join(4, found(own, 3, 12)));
  EXPECT_TRUE(verdict.is_short);
  ASSERT_TRUE(verdict.news);
  EXPECT_EQ(describe(*verdict.news),
            "ps_shard 1 comes back with less than its store had acknowledged: store aaaaaaaa on alpha had "
            "versions up to 40, store aaaaaaaa on alpha has them up to 12: it is an older copy of itself");
  const auto again = book.on_joined(join(4, found(own, 3, 12)));
  EXPECT_TRUE(again.is_short) << "the answer was lost, it asks again";
  EXPECT_FALSE(again.news);
  EXPECT_THAT(book.losses(), SizeIs(1));
}

TEST_F(store_book_test, an_older_copy_is_known_by_who_opened_it_whatever_was_told_of_its_versions) {
  book.on_joined(join(4, found(own, 3, 40)));
  EXPECT_TRUE(book.on_joined(join(5, found(own, 3, 40))).is_short);
}

TEST_F(store_book_test, one_that_is_short_stays_so_until_it_has_another_identity) {
  book.on_joined(join(4, found(own, 3, 12)));
  status(4, own, 12);
  EXPECT_TRUE(book.on_joined(join(5, found(own, 4, 12))).news) << "start 4 ended before it had another";
  status(5, other, 12);
  EXPECT_EQ(known().store.identity, other);
  EXPECT_FALSE(book.on_joined(join(6, found(other, 5, 12))).news);
}

TEST_F(store_book_test, another_store_that_holds_less_is_told_and_needs_no_other_identity) {
  auto empty = found(other, 0, 0);
  empty.why_new = "it is new";
  const auto verdict = book.on_joined(join(4, empty));
  EXPECT_FALSE(verdict.is_short);
  ASSERT_TRUE(verdict.news);
  EXPECT_THAT(describe(*verdict.news), HasSubstr("store bbbbbbbb on alpha has them up to 0: it is new"));
  auto moved = found(own, 3, 0);
  moved.store = {"beta", 0xcccccccc00000000, {0}};
  status(4, other, 9);
  EXPECT_THAT(book.on_joined(join(5, moved)).news->reason, "that of another host is used");
}

TEST_F(store_book_test, another_store_that_holds_as_much_is_no_loss) {
  EXPECT_FALSE(book.on_joined(join(4, found(other, 3, 40))).news);
}

TEST_F(store_book_test, who_has_gone_back_meanwhile_is_not_held_against_what_was_before) {
  EXPECT_FALSE(book.on_joined(join(4, found(own, 3, 12, 1))).news);
  status(4, own, 12, 1);
  EXPECT_TRUE(book.on_joined(join(5, found(own, 4, 40))).news) << "of a timeline that was left";
}

TEST_F(store_book_test, what_older_starts_say_changes_nothing) {
  book.on_joined(join(5, found(own, 3, 40)));
  EXPECT_FALSE(book.on_joined(join(4, found(own, 3, 12))).news);
  status(4, own, 12);
  EXPECT_EQ(newest_of(known()), version_id{40});
}

TEST_F(store_book_test, where_nothing_is_kept_there_is_nothing_to_know) {
  store_book empty;
  EXPECT_FALSE(empty.on_joined(join(1, {})).news);
  EXPECT_FALSE(empty.on_joined({}).news);
  EXPECT_THAT(empty.known(), IsEmpty());
}

TEST_F(store_book_test, is_journaled_at_once_when_it_is_another_and_each_second_as_it_grows) {
  protocol::time_point now{milliseconds(10'000)};
  EXPECT_THAT(book.to_journal(now), SizeIs(1));
  EXPECT_THAT(book.to_journal(now), IsEmpty());
  status(3, own, 41);
  EXPECT_THAT(book.to_journal(now + milliseconds(900)), IsEmpty());
  const auto grown = book.to_journal(now + milliseconds(1000));
  ASSERT_THAT(grown, SizeIs(1));
  EXPECT_EQ(newest_of(grown[0].second), version_id{41});
  book.on_joined(join(4, found(own, 3, 41)));
  EXPECT_THAT(book.to_journal(now + milliseconds(1001)), SizeIs(1));
  status(4, own, 42);
  EXPECT_THAT(book.to_journal(now + milliseconds(1002)), IsEmpty());
  EXPECT_THAT(book.to_journal(std::nullopt), SizeIs(1)) << "in the end";
}

TEST_F(store_book_test, a_coordinator_that_starts_anew_knows_what_was_journaled) {
  store_book next{book.known()};
  EXPECT_TRUE(next.on_joined(join(4, found(own, 3, 12))).is_short);
  store_book after{next.known()};
  EXPECT_TRUE(after.on_joined(join(4, found(own, 3, 12))).is_short);
  EXPECT_THAT(after.losses(), SizeIs(1));
}

TEST_F(store_book_test, of_many_losses_the_newest_are_kept) {
  for (std::uint64_t start = 4; start < 4 + store_book::losses_max + 3; ++start)
    book.on_joined(join(start, found(own, 2, 12)));
  ASSERT_THAT(book.losses(), SizeIs(store_book::losses_max));
  EXPECT_EQ(book.losses().front().start, incarnation{7});
}

} // namespace
} // namespace dlrun::coordinator
