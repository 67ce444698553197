#include "persistence/shard_store.hpp"

#include "base/crc32c.hpp"
#include "tests/persistence/damage.hpp"
#include "tests/persistence/store_fixture.hpp"

namespace dlrun::persistence {
namespace {

class shard_store_test : public test::store_test {};
using shard_store_death = shard_store_test;

TEST_F(shard_store_test, a_new_store_is_empty_and_can_restore_version_0) {
  const auto store = shard_store::open(options()).value();
  EXPECT_EQ(store->found().last_opener, incarnation{0});
  EXPECT_TRUE(store->found().damaged.empty());
  EXPECT_EQ(store->next_step(), step_id{0});
  EXPECT_EQ(store->restorable(), (ranges{{{0}, {0}}}));
  EXPECT_EQ(store->read(step_id{0}).error().code, error_code::bad_usage);
}

TEST_F(shard_store_test, what_is_appended_is_read_back_at_once_and_after_opening_again) {
  {
    const auto store = shard_store::open(options()).value();
    ASSERT_TRUE(append_each(*store, 0, 10));
    ASSERT_TRUE(append(*store, 10, 40));
    EXPECT_TRUE(holds_all(*store, 0, 40));
    EXPECT_EQ(store->read_head({7})->payload_bytes, test::size_of({7}));
    EXPECT_EQ(store->read_head({7})->extra, "extra of 7");
  }
  const auto store = shard_store::open(options(2)).value();
  EXPECT_EQ(store->found().last_opener, incarnation{1});
  EXPECT_EQ(store->found().log_first, step_id{0});
  EXPECT_EQ(store->found().log_end, step_id{40});
  EXPECT_TRUE(store->found().damaged.empty()) << store->found().damaged.front();
  EXPECT_TRUE(holds_all(*store, 0, 40));
  EXPECT_EQ(store->restorable(), (ranges{{{0}, {40}}}));
  ASSERT_TRUE(append(*store, 40, 41));
  EXPECT_TRUE(holds(*store, 40));
}

TEST_F(shard_store_test, sync_tells_up_to_where_it_synced) {
  const auto store = shard_store::open(options()).value();
  ASSERT_TRUE(append(*store, 0, 5));
  EXPECT_EQ(store->synced_end(), step_id{0});
  EXPECT_EQ(store->sync().value(), step_id{5});
  EXPECT_EQ(store->synced_end(), step_id{5});
  auto with_power = options(2);
  with_power.directory += "-power";
  with_power.sync = sync_mode::power;
  const auto other = shard_store::open(with_power).value();
  ASSERT_TRUE(append(*other, 0, 5));
  EXPECT_EQ(other->synced_end(), step_id{5});
}

TEST_F(shard_store_test,
       what_an_opening_finds_is_synced_at_once_in_mode_power_and_with_the_next_sync_otherwise) {
  for (const auto mode : {sync_mode::process, sync_mode::power}) {
    auto first = options(1);
    first.directory += mode == sync_mode::power ? "-power" : "-process";
    ASSERT_TRUE(append(*shard_store::open(first).value(), 0, 20)); // not synced
    auto second = first;
    second.opener = {2};
    second.sync = mode;
    auto store = shard_store::open(second).value();
    EXPECT_EQ(store->next_step(), step_id{20});
    EXPECT_EQ(store->synced_end(), step_id{mode == sync_mode::power ? 20U : 0U});
    EXPECT_EQ(store->sync().value(), step_id{20});
    files->cut_power_after(1);
    EXPECT_FALSE(append(*store, 20, 21));
    store.reset();
    files->restore_power();
    second.opener = {3};
    store = shard_store::open(second).value();
    EXPECT_EQ(store->next_step(), step_id{20});
    EXPECT_TRUE(holds_all(*store, 0, 20));
  }
}

TEST_F(shard_store_test, a_sync_does_not_miss_segments_that_were_found_and_dropped) {
  ASSERT_TRUE(append(*shard_store::open(options()).value(), 0, 60));
  const auto store = shard_store::open(options(2)).value();
  const history_entry entry{{1}, {0}, 0, {}};
  ASSERT_TRUE(store->rewind(std::span(&entry, 1), {0}));
  ASSERT_TRUE(append(*store, 0, 3, 1));
  EXPECT_EQ(store->sync().value(), step_id{3});
}

TEST_F(shard_store_test, a_large_record_gets_a_segment_of_its_own) {
  const auto store = shard_store::open(options()).value();
  const auto payload = test::payload_of({0}, {0}, 300'000);
  const log_record record{{0}, {0}, {}, payload};
  ASSERT_TRUE(store->append(std::span(&record, 1)));
  ASSERT_TRUE(append(*store, 1, 20));
  EXPECT_EQ(store->read(step_id{0})->payload, payload);
  EXPECT_TRUE(holds_all(*store, 1, 20));
}

TEST_F(shard_store_test, a_payload_is_read_in_parts_in_any_order_and_the_whole_is_checked) {
  const auto store = shard_store::open(options()).value();
  ASSERT_TRUE(append(*store, 0, 12));
  for (std::uint64_t step = 0; step < 12; ++step) {
    const auto reader = store->open_payload({step});
    ASSERT_TRUE(reader);
    const auto size = test::size_of({step});
    ASSERT_EQ(reader->head().payload_bytes, size);
    std::vector<std::byte> found(size);
    const auto behind = reader->read(size / 3, std::span(found).subspan(size / 3));
    const auto before = reader->read(0, std::span(found).first(size / 3));
    ASSERT_TRUE(behind && before);
    EXPECT_EQ(found, test::payload_of({step}, {0}, size));
    const auto whole = base::crc32c_combine(*before, *behind, size - size / 3);
    EXPECT_TRUE(reader->check(whole));
    const auto wrong = reader->check(whole + 1);
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().code, error_code::storage_damaged);
  }
  EXPECT_EQ(store->open_payload({12}).error().code, error_code::bad_usage);
}

/// So what is damaged between there and the disk is found when it is read.
TEST_F(shard_store_test, a_checksum_that_comes_with_a_record_is_the_one_that_is_kept) {
  auto store = shard_store::open(options()).value();
  const auto payload = test::payload_of({0}, {0}, 5000);
  const auto crc32c = base::crc32c(payload);
  const log_record right{{0}, {0}, "extra", payload, crc32c};
  const log_record wrong{{1}, {0}, "extra", payload, crc32c ^ 1U};
  ASSERT_TRUE(store->append(std::span(&right, 1)));
  ASSERT_TRUE(store->append(std::span(&wrong, 1)));
  EXPECT_EQ(store->read({0})->payload, payload);
  const auto read = store->read({1});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, error_code::storage_damaged);
}

TEST_F(shard_store_test, snapshots_are_read_back_and_are_bases_of_what_can_be_restored) {
  {
    const auto store = shard_store::open(options()).value();
    ASSERT_TRUE(append(*store, 0, 20));
    const auto info = snapshot(*store, 8, 0, 3'000'000).value();
    EXPECT_EQ(info.version, version_id{8});
    EXPECT_EQ(info.payload_bytes, 3'000'000U);
    ASSERT_TRUE(snapshot(*store, 15));
    EXPECT_EQ(store->synced_end(), step_id{20});
    EXPECT_TRUE(has_snapshot(*store, 8, 0, 3'000'000));
  }
  const auto store = shard_store::open(options(2)).value();
  ASSERT_EQ(store->found().snapshots.size(), 2U);
  EXPECT_TRUE(has_snapshot(*store, 8, 0, 3'000'000));
  EXPECT_TRUE(has_snapshot(*store, 15));
  EXPECT_EQ(store->restorable(), (ranges{{{0}, {20}}}));
  ASSERT_TRUE(store->drop_below({8}));
  EXPECT_EQ(store->restorable(), (ranges{{{0}, {0}}, {{8}, {20}}}));
  EXPECT_EQ(store->open_snapshot({9}).error().code, error_code::bad_usage);
}

TEST_F(shard_store_test, an_abandoned_snapshot_leaves_nothing) {
  const auto store = shard_store::open(options()).value();
  {
    auto writer = store->begin_snapshot({0}, {0}).value();
    ASSERT_TRUE(writer.write(test::payload_of({0}, {0}, 2'000'000)));
    EXPECT_GT(store->counters().bytes_on_disk, 1'000'000U);
  }
  EXPECT_TRUE(is_empty("/snapshots"));
  EXPECT_TRUE(store->snapshots().empty());
  EXPECT_LT(store->counters().bytes_on_disk, 1'000'000U);
  ASSERT_TRUE(snapshot(*store, 0));
}

TEST_F(shard_store_test, a_snapshot_can_be_empty) {
  const auto store = shard_store::open(options()).value();
  ASSERT_TRUE(snapshot(*store, 0, 0, 0));
  EXPECT_TRUE(has_snapshot(*store, 0, 0, 0));
}

TEST_F(shard_store_test, without_a_log_the_newest_snapshot_is_where_appending_goes_on) {
  const auto store = shard_store::open(options()).value();
  ASSERT_TRUE(snapshot(*store, 50));
  EXPECT_EQ(store->next_step(), step_id{50});
  ASSERT_TRUE(append(*store, 50, 53));
  EXPECT_EQ(store->restorable(), (ranges{{{0}, {0}}, {{50}, {53}}}));
  EXPECT_EQ(store->logged(), (ranges{{{50}, {53}}}));
}

TEST_F(shard_store_test, a_discarded_snapshot_is_gone_and_the_one_before_it_counts) {
  const auto store = shard_store::open(options()).value();
  ASSERT_TRUE(append(*store, 0, 10));
  ASSERT_TRUE(snapshot(*store, 4));
  ASSERT_TRUE(snapshot(*store, 9));
  ASSERT_TRUE(store->drop_below({4}));
  ASSERT_TRUE(store->discard_snapshot({9}));
  EXPECT_EQ(store->restorable(), (ranges{{{0}, {0}}, {{4}, {10}}}));
  EXPECT_EQ(store->logged(), (ranges{{{4}, {10}}}));
  ASSERT_TRUE(store->discard_snapshot({4}));
  EXPECT_EQ(store->restorable(), (ranges{{{0}, {0}}}));
  EXPECT_EQ(store->next_step(), step_id{0});
  EXPECT_TRUE(is_empty("/snapshots"));
  ASSERT_TRUE(append(*store, 0, 3));
}

TEST_F(shard_store_test, a_rewind_drops_what_is_above_and_the_new_timeline_takes_its_place) {
  const history_entry first{{1}, {6}, 3, {{{6}, {2}}, {{7}, {0}}}};
  {
    const auto store = shard_store::open(options()).value();
    ASSERT_TRUE(append(*store, 0, 12));
    ASSERT_TRUE(snapshot(*store, 5));
    ASSERT_TRUE(snapshot(*store, 10));
    EXPECT_EQ(store->rewind(std::span(&first, 1), {13}).error().code, error_code::bad_usage);
  }
  auto store = shard_store::open(options(2)).value();
  ASSERT_TRUE(store->rewind(std::span(&first, 1), {6}));
  EXPECT_EQ(store->next_step(), step_id{6});
  EXPECT_EQ(store->snapshots().size(), 1U);
  ASSERT_TRUE(append(*store, 6, 15, 1));
  ASSERT_TRUE(store->rewind(std::span(&first, 1), {6})) << "a repetition changes nothing";
  EXPECT_EQ(store->next_step(), step_id{15});
  store.reset();
  store = shard_store::open(options(3)).value();
  EXPECT_EQ(store->found().history, std::vector{first});
  EXPECT_TRUE(store->found().damaged.empty());
  EXPECT_TRUE(holds_all(*store, 0, 6, 0));
  EXPECT_TRUE(holds_all(*store, 6, 15, 1));
  const std::vector<history_entry> late{{{1}, {3}, 4, {}}};
  EXPECT_EQ(store->rewind(late, {3}).error().code, error_code::fenced);
}

TEST_F(shard_store_test, a_snapshot_from_before_a_rewind_does_not_count) {
  const auto store = shard_store::open(options()).value();
  ASSERT_TRUE(append(*store, 0, 8));
  auto writer = store->begin_snapshot({8}, {0}).value();
  ASSERT_TRUE(writer.write(test::payload_of({8}, {0}, 100)));
  const history_entry entry{{1}, {5}, 0, {}};
  ASSERT_TRUE(store->rewind(std::span(&entry, 1), {5}));
  EXPECT_EQ(writer.commit({}).error().code, error_code::fenced);
  EXPECT_TRUE(is_empty("/snapshots"));
  EXPECT_TRUE(snapshot(*store, 5, 1));
}

TEST_F(shard_store_test, dropping_gives_back_space_and_keeps_what_the_floor_needs) {
  auto store = shard_store::open(options()).value();
  ASSERT_TRUE(append_each(*store, 0, 240));
  ASSERT_TRUE(snapshot(*store, 100));
  ASSERT_TRUE(snapshot(*store, 220));
  const auto before = store->counters();
  ASSERT_TRUE(store->drop_below({225})) << "there is no snapshot 225: 220 is kept";
  EXPECT_EQ(store->restorable(), (ranges{{{0}, {0}}, {{220}, {240}}}));
  EXPECT_LT(store->counters().bytes_on_disk, before.bytes_on_disk - 50'000);
  EXPECT_LT(store->counters().bytes_in_snapshots, before.bytes_in_snapshots);
  EXPECT_EQ(store->read(step_id{219}).error().code, error_code::bad_usage);
  EXPECT_TRUE(holds_all(*store, 220, 240));
  ASSERT_TRUE(store->drop_below({210})) << "a floor that is lower than the last one changes nothing";
  store.reset();
  store = shard_store::open(options(2)).value();
  EXPECT_TRUE(store->found().damaged.empty());
  EXPECT_EQ(store->found().log_first, step_id{220});
  EXPECT_EQ(store->restorable(), (ranges{{{0}, {0}}, {{220}, {240}}}));
  EXPECT_TRUE(holds_all(*store, 220, 240));
}

TEST_F(shard_store_test, segments_without_records_are_written_over_and_none_is_left_when_it_closes) {
  auto store = shard_store::open(options()).value();
  const auto segments = [&] { return list_files(*files, directory() + "/segments").value(); };
  std::uint64_t end = 0;
  std::size_t files_max = 0;
  for (int round = 0; round < 8; ++round) {
    for (const auto stop = end + 40; end < stop; ++end) ASSERT_TRUE(append(*store, end, end + 1));
    ASSERT_TRUE(holds_all(*store, end - 40, end));
    ASSERT_TRUE(snapshot(*store, end));
    ASSERT_TRUE(store->drop_below({end}));
    EXPECT_FALSE(segments().empty());
    if (round == 0) files_max = segments().size();
    EXPECT_LE(segments().size(), files_max);
  }
  ASSERT_TRUE(append(*store, end, end + 1)); // may be inlined
  store.reset();
  EXPECT_LE(segments().size(), 1U);
  store = shard_store::open(options(2)).value();
  EXPECT_TRUE(store->found().damaged.empty());
  EXPECT_TRUE(holds(*store, end));
}

TEST_F(shard_store_test, segments_that_a_killed_process_left_are_written_over_too) {
  auto store = shard_store::open(options()).value();
  ASSERT_TRUE(append_each(*store, 0, 40));
  ASSERT_TRUE(snapshot(*store, 40));
  const auto killed = folder.path() / "killed";
  std::filesystem::copy(directory(), killed, std::filesystem::copy_options::recursive);
  ASSERT_TRUE(store->drop_below({40}));
  store.reset();
  auto again = options(2);
  again.directory = killed.string();
  store = shard_store::open(again).value();
  ASSERT_TRUE(store->drop_below({40}));
  ASSERT_TRUE(append_each(*store, 40, 80));
  EXPECT_TRUE(holds_all(*store, 40, 80));
  store.reset();
  again.opener = {3};
  store = shard_store::open(again).value();
  EXPECT_TRUE(store->found().damaged.empty());
  EXPECT_TRUE(holds_all(*store, 40, 80));
}

TEST_F(shard_store_test, one_snapshot_below_the_floor_may_be_kept_until_another_is) {
  auto store = shard_store::open(options()).value();
  ASSERT_TRUE(append_each(*store, 0, 60));
  for (const std::uint64_t version : {20, 30, 40}) ASSERT_TRUE(snapshot(*store, version));
  ASSERT_TRUE(store->drop_below({40}, version_id{20}));
  store.reset();
  store = shard_store::open(options(2)).value();
  EXPECT_TRUE(store->found().damaged.empty());
  EXPECT_EQ(store->restorable(), (ranges{{{0}, {0}}, {{20}, {20}}, {{40}, {60}}}));
  EXPECT_TRUE(store->open_snapshot({20}));
  EXPECT_FALSE(store->open_snapshot({30}));
  ASSERT_TRUE(store->drop_below({40})) << "the same floor, and 20 is not wanted any more";
  EXPECT_EQ(store->restorable(), (ranges{{{0}, {0}}, {{40}, {60}}}));
}

TEST_F(shard_store_test, after_a_rewind_to_below_the_floor_everything_counts_from_there) {
  auto store = shard_store::open(options()).value();
  ASSERT_TRUE(append_each(*store, 0, 60));
  for (const std::uint64_t version : {20, 40}) ASSERT_TRUE(snapshot(*store, version));
  ASSERT_TRUE(store->drop_below({40}, version_id{20}));
  const history_entry entry{{1}, {20}, 0, {}};
  ASSERT_TRUE(store->rewind(std::span(&entry, 1), {20}));
  ASSERT_TRUE(append_each(*store, 20, 30, 1));
  ASSERT_TRUE(snapshot(*store, 25, 1));
  store.reset();
  store = shard_store::open(options(2)).value();
  EXPECT_TRUE(store->found().damaged.empty());
  EXPECT_EQ(store->restorable(), (ranges{{{0}, {0}}, {{20}, {30}}}));
}

TEST_F(shard_store_test, a_floor_without_any_snapshot_drops_nothing) {
  const auto store = shard_store::open(options()).value();
  ASSERT_TRUE(append(*store, 0, 10));
  ASSERT_TRUE(store->drop_below({5}));
  EXPECT_EQ(store->restorable(), (ranges{{{0}, {10}}}));
}

TEST_F(shard_store_test, a_lower_incarnation_is_refused_and_an_equal_one_is_not) {
  shard_store::open(options(5)).value().reset();
  const auto late = shard_store::open(options(4));
  EXPECT_EQ(late.error().code, error_code::fenced);
  EXPECT_NE(late.error().message.find("opened by incarnation 5"), std::string::npos) << late.error().message;
  EXPECT_TRUE(shard_store::open(options(5)));
}

TEST_F(shard_store_test, a_store_that_is_open_is_refused_until_it_is_closed) {
  auto store = shard_store::open(options()).value();
  const auto second = shard_store::open(options(2));
  EXPECT_EQ(second.error().code, error_code::in_use) << second.error().message;
  store.reset();
  EXPECT_TRUE(shard_store::open(options(2)));
}

TEST_F(shard_store_test, another_format_is_refused_naming_both) {
  shard_store::open(options()).value().reset();
  std::ofstream(directory() + "/FORMAT") << "dlrun-shard-store 3\n";
  const auto opened = shard_store::open(options(2));
  EXPECT_EQ(opened.error().code, error_code::storage_damaged);
  EXPECT_NE(opened.error().message.find("\"dlrun-shard-store 3\", this dlrun reads \"dlrun-shard-store 2\""),
            std::string::npos)
      << opened.error().message;
}

/// What a newer dlrun wrote is not dropped for damage.
TEST_F(shard_store_test, a_segment_of_another_format_is_refused_and_left_as_it_is) {
  ASSERT_TRUE(append(*shard_store::open(options()).value(), 0, 12));
  const auto segment = *std::filesystem::directory_iterator(directory() + "/segments");
  const auto whole = test::content_of(segment);
  auto newer = whole;
  newer[8] = 2;
  const auto checksum = base::crc32c(std::string_view(newer).substr(0, 60));
  newer.replace(60, 4, reinterpret_cast<const char*>(&checksum), 4);
  std::ofstream(segment.path(), std::ios::binary) << newer;
  const auto opened = shard_store::open(options(2));
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("has format 2, this dlrun reads format 1"), std::string::npos)
      << opened.error().message;
  std::ofstream(segment.path(), std::ios::binary) << whole;
  EXPECT_TRUE(holds_all(*shard_store::open(options(3)).value(), 0, 12));
}

TEST_F(shard_store_test, counters_count) {
  const auto store = shard_store::open(options()).value();
  const auto before = store->counters();
  ASSERT_TRUE(append(*store, 0, 6));
  ASSERT_TRUE(snapshot(*store, 6));
  const auto after = store->counters();
  EXPECT_GE(after.bytes_logged, 100U + 4096 + 5000 + 17 + 9000);
  EXPECT_GE(after.bytes_in_snapshots, 10'000U);
  EXPECT_GE(after.bytes_on_disk, before.bytes_on_disk + 28'000U);
}

TEST_F(shard_store_death, appending_out_of_order_is_a_broken_invariant) {
  const auto store = shard_store::open(options()).value();
  ASSERT_TRUE(append(*store, 0, 3));
  EXPECT_DEATH((void)append(*store, 4, 5), "step 4 is appended to .* where step 3 comes next");
  EXPECT_DEATH((void)append(*store, 2, 3), "step 2 is appended");
}

TEST_F(shard_store_death, ending_a_snapshot_before_a_lower_one_is_a_broken_invariant) {
  const auto store = shard_store::open(options()).value();
  ASSERT_TRUE(append(*store, 0, 3));
  const auto lower = store->begin_snapshot({1}, {0}).value();
  EXPECT_DEATH((void)snapshot(*store, 3), "the snapshot of version 3 ends before that of version 1");
}

} // namespace
} // namespace dlrun::persistence
