// R24: under one identity a store never lacks what it has acknowledged.
#include "persistence/store_look.hpp"
#include "tests/persistence/damage.hpp"
#include "tests/persistence/store_fixture.hpp"

#include <gmock/gmock.h>

namespace dlrun::persistence {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class store_identity_test : public test::store_test {
protected:
  shard_store_options under(const std::string& boot, std::uint64_t opener,
                            sync_mode sync = sync_mode::process) const {
    auto made = options(opener);
    made.boot = boot;
    made.sync = sync;
    return made;
  }
  shard_store_options look(const std::string& boot = "first boot") const {
    auto made = under(boot, 0);
    made.read_only = true;
    return made;
  }
  std::uint64_t identity_after_opening(const shard_store_options& how) {
    const auto store = shard_store::open(how);
    EXPECT_TRUE(store) << store.error().message;
    return store ? (*store)->identity() : 0;
  }
  /// Steps 0 to 11, and a snapshot of version 4. @returns its identity.
  std::uint64_t make_store(sync_mode sync = sync_mode::process) {
    const auto store = shard_store::open(under("first boot", 1, sync)).value();
    EXPECT_TRUE(append_each(*store, 0, 12));
    EXPECT_TRUE(snapshot(*store, 4));
    return store->identity();
  }
  fs::path the_only(const std::string& part) const { return *fs::directory_iterator(directory() + part); }
  fs::path log_file() const {
    for (const auto& entry : fs::directory_iterator(directory() + "/log"))
      if (entry.path().extension() == ".log" && entry.file_size() > 0) return entry.path();
    return {};
  }
  std::string format_file() const { return directory() + "/FORMAT"; }
};

TEST_F(store_identity_test, stays_from_opening_to_opening_and_no_other_store_has_it) {
  auto store = shard_store::open(under("first boot", 1)).value();
  const auto made = store->identity();
  EXPECT_NE(made, 0U);
  EXPECT_EQ(store->found().identity, made);
  EXPECT_EQ(store->found().why_new_identity, "it is new");
  store.reset();
  const auto again = shard_store::open(under("first boot", 2)).value();
  EXPECT_EQ(again->identity(), made);
  EXPECT_EQ(again->found().why_new_identity, "");
  auto elsewhere = under("first boot", 1);
  elsewhere.directory += " of another host";
  EXPECT_NE(identity_after_opening(elsewhere), made);
}

TEST_F(store_identity_test, is_another_after_a_boot_where_steps_are_not_synced) {
  const auto made = make_store();
  {
    const auto store = shard_store::open(under("second boot", 2)).value();
    EXPECT_NE(store->identity(), made);
    EXPECT_EQ(store->found().why_new_identity, "its machine has booted since");
  }
  const auto second = identity_after_opening(under("second boot", 3));
  EXPECT_EQ(second, identity_after_opening(under("second boot", 4)));
}

TEST_F(store_identity_test, stays_over_boots_where_each_step_is_synced) {
  const auto made = make_store(sync_mode::power);
  EXPECT_EQ(identity_after_opening(under("second boot", 2, sync_mode::power)), made);
}

TEST_F(store_identity_test, follows_the_mode_that_what_it_holds_was_written_in) {
  const auto made = make_store();
  EXPECT_EQ(identity_after_opening(under("first boot", 2, sync_mode::power)), made); // which syncs all
  EXPECT_EQ(identity_after_opening(under("second boot", 3, sync_mode::process)), made);
  EXPECT_NE(identity_after_opening(under("third boot", 4, sync_mode::power)), made);
}

TEST_F(store_identity_test, stays_when_only_the_end_of_the_last_write_is_torn) {
  const auto made = make_store();
  const auto log = log_file();
  fs::resize_file(log, fs::file_size(log) - 1);
  const auto store = shard_store::open(under("first boot", 2)).value();
  EXPECT_FALSE(store->found().damaged.empty());
  EXPECT_EQ(store->identity(), made);
}

TEST_F(store_identity_test, is_another_when_the_log_is_damaged_in_the_middle) {
  const auto made = make_store();
  test::flip_byte(log_file(), fs::file_size(log_file()) / 2, 1);
  EXPECT_EQ(shard_store::open(look()).value()->identity(), 0U) << "a look gives none";
  const auto store = shard_store::open(under("first boot", 2)).value();
  EXPECT_NE(store->identity(), made);
  EXPECT_EQ(store->found().why_new_identity, "it was damaged");
}

TEST_F(store_identity_test, is_another_when_a_payload_is_damaged) {
  const auto made = make_store();
  test::flip_byte(the_only("/segments"), 200, 1);
  EXPECT_NE(identity_after_opening(under("first boot", 2)), made);
}

TEST_F(store_identity_test, is_another_when_a_snapshot_is_missing) {
  const auto made = make_store();
  fs::remove(the_only("/snapshots"));
  EXPECT_NE(identity_after_opening(under("first boot", 2)), made);
}

TEST_F(store_identity_test, is_another_when_a_damaged_snapshot_is_discarded) {
  const auto made = make_store();
  std::uint64_t renewed = 0;
  {
    const auto store = shard_store::open(under("first boot", 2)).value();
    ASSERT_TRUE(store->discard_snapshot({4}));
    renewed = store->identity();
    EXPECT_NE(renewed, made);
  }
  EXPECT_EQ(identity_after_opening(under("first boot", 3)), renewed);
}

TEST_F(store_identity_test, is_another_when_somebody_knows_that_it_is_short) {
  const auto made = make_store();
  std::uint64_t renewed = 0;
  {
    const auto store = shard_store::open(under("first boot", 2)).value();
    ASSERT_TRUE(store->renew_identity());
    renewed = store->identity();
    EXPECT_NE(renewed, made);
    EXPECT_TRUE(holds_all(*store, 0, 12));
  }
  EXPECT_EQ(identity_after_opening(under("first boot", 3)), renewed);
}

TEST_F(store_identity_test, stays_when_who_opens_it_is_too_old) {
  make_store();
  const auto before = test::content_of(format_file());
  ASSERT_TRUE(shard_store::open(under("first boot", 5)));
  EXPECT_EQ(shard_store::open(under("second boot", 4)).error().code, error_code::fenced);
  EXPECT_EQ(test::content_of(format_file()), before);
}

/// As dlrun 0.2 and before wrote it.
TEST_F(store_identity_test, is_given_to_a_store_of_format_1_when_it_is_opened_to_be_written) {
  make_store();
  std::ofstream(format_file()) << "dlrun-shard-store 1\n";
  {
    const auto store = shard_store::open(look()).value();
    EXPECT_EQ(store->identity(), 0U);
    EXPECT_TRUE(holds_all(*store, 0, 12));
  }
  EXPECT_EQ(look_at_store(directory()).value().identity, 0U);
  EXPECT_EQ(test::content_of(format_file()), "dlrun-shard-store 1\n") << "a look changes nothing";
  std::uint64_t given = 0;
  {
    const auto store = shard_store::open(under("first boot", 2)).value();
    given = store->identity();
    EXPECT_EQ(store->found().why_new_identity, "it had none");
    EXPECT_TRUE(holds_all(*store, 0, 12));
    EXPECT_TRUE(has_snapshot(*store, 4));
  }
  EXPECT_EQ(test::content_of(format_file()),
            fmt::format("dlrun-shard-store 2\nidentity {:016x}\nboot first boot\n", given));
  EXPECT_EQ(identity_after_opening(under("first boot", 3)), given);
}

TEST_F(store_identity_test, that_cannot_be_read_is_refused_naming_the_file_and_the_way_out) {
  make_store();
  const auto whole = test::content_of(format_file());
  for (const std::string more :
       {"", "identity 12\n", "identity 0000000000000000\n", "identity 123456789abcdefg\n",
        "identity 123456789abcdef0", "identity 123456789abcdef0\nboots 1\n",
        "identity 123456789abcdef0\nboot 1\nmore\n", "identity 123456789abcdef0\nrun 12\n",
        "identity 123456789abcdef0\nrun 0000000000000000\n"}) {
    std::ofstream(format_file()) << "dlrun-shard-store 2\n" << more;
    const auto opened = shard_store::open(under("first boot", 2));
    ASSERT_FALSE(opened) << more;
    EXPECT_EQ(opened.error().code, error_code::storage_damaged);
    EXPECT_THAT(opened.error().message, HasSubstr(format_file() + ": what it says of the store's identity"));
  }
  std::ofstream(format_file()) << whole;
  EXPECT_TRUE(shard_store::open(under("first boot", 2)));
}

TEST_F(store_identity_test, names_the_run_and_the_store_of_another_one_is_refused) {
  auto of_run = under("first boot", 1);
  of_run.run = 0xabc;
  const auto made = identity_after_opening(of_run);
  const auto written =
      fmt::format("dlrun-shard-store 2\nidentity {:016x}\nboot first boot\nrun {:016x}\n", made, 0xabc);
  EXPECT_EQ(test::content_of(format_file()), written);
  auto other = of_run;
  other.run = 0xdef;
  for (const bool is_a_look : {false, true}) {
    other.read_only = is_a_look;
    const auto opened = shard_store::open(other);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, error_code::bad_usage);
    EXPECT_THAT(opened.error().message, HasSubstr("0000000000000abc"));
    EXPECT_THAT(opened.error().message, HasSubstr("0000000000000def"));
  }
  EXPECT_EQ(look_at_store(directory(), other.run).error().code, error_code::bad_usage);
  EXPECT_TRUE(look_at_store(directory(), of_run.run));
  EXPECT_EQ(identity_after_opening(under("first boot", 2)), made) << "whoever knows no run opens it";
  EXPECT_EQ(test::content_of(format_file()), written);
  EXPECT_NE(identity_after_opening(under("second boot", 3)), made);
  EXPECT_EQ(shard_store::open(other).error().code, error_code::bad_usage)
      << "another identity is of the same run";
}

TEST_F(store_identity_test, of_a_store_that_was_written_before_runs_had_numbers_gets_one) {
  make_store();
  auto of_run = under("first boot", 2);
  of_run.run = 0xabc;
  const auto kept = identity_after_opening(of_run);
  EXPECT_EQ(
      test::content_of(format_file()),
      fmt::format("dlrun-shard-store 2\nidentity {:016x}\nboot first boot\nrun {:016x}\n", kept, 0xabc));
}

TEST_F(store_identity_test, and_floor_are_told_to_whoever_looks) {
  std::uint64_t made = 0;
  {
    const auto store = shard_store::open(options()).value(); // under the boot of this machine
    made = store->identity();
    ASSERT_TRUE(append(*store, 0, 12));
    ASSERT_TRUE(snapshot(*store, 4));
    ASSERT_TRUE(snapshot(*store, 8));
    ASSERT_TRUE(store->drop_below({5}));
    EXPECT_EQ(store->floor(), version_id{4});
  }
  const auto seen = look_at_store(directory()).value();
  EXPECT_EQ(seen.identity, made);
  EXPECT_EQ(seen.floor, version_id{4});
  EXPECT_EQ(shard_store::open(options(2)).value()->found().floor, version_id{4});
}

/// Whatever power takes with it while what is damaged is dropped: a later opening finds either the
/// damage, or a store under another identity.
TEST_F(store_identity_test, is_another_before_anything_is_dropped_wherever_power_is_cut) {
  const auto made = make_store(sync_mode::power);
  const auto whole = folder.path() / "whole";
  fs::copy(directory(), whole, fs::copy_options::recursive);
  const auto damages = {
      std::function<void()>([&] { fs::remove(the_only("/snapshots")); }),
      std::function<void()>([&] { test::flip_byte(the_only("/segments"), 200, 1); }),
      std::function<void()>([&] { test::flip_byte(log_file(), fs::file_size(log_file()) / 2, 1); })};
  int short_ones = 0;
  for (const auto& harm : damages)
    for (std::uint64_t moment = 1; moment <= 40; ++moment) {
      SCOPED_TRACE(testing::Message() << "change " << moment);
      fs::remove_all(directory());
      fs::copy(whole, directory(), fs::copy_options::recursive);
      files = std::make_shared<test::faulty_file_system>(moment);
      harm();
      files->cut_power_after(moment);
      (void)shard_store::open(under("second boot", 2, sync_mode::power));
      files->restore_power();
      const auto store = shard_store::open(under("third boot", 3, sync_mode::power));
      ASSERT_TRUE(store) << store.error().message;
      const bool is_short = (*store)->restorable() != ranges{{{0}, {12}}} || (*store)->snapshots().empty();
      EXPECT_TRUE(is_short);
      short_ones += is_short ? 1 : 0;
      EXPECT_NE((*store)->identity(), made);
    }
  EXPECT_EQ(short_ones, 120);
}

} // namespace
} // namespace dlrun::persistence
