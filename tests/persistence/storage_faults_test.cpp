// A full disk, a read-only one, errors of reads, writes and syncs, quotas.
#include "persistence/database.hpp"
#include "persistence/shard_store.hpp"

#include "tests/persistence/store_fixture.hpp"

#include <filesystem>
#include <rocksdb/write_batch.h>

namespace dlrun::persistence {
namespace {

using operation = test::faulty_file_system::operation;

class storage_faults : public test::store_test {};

TEST_F(storage_faults, appending_to_a_full_disk_fails_as_a_whole_and_works_again_when_there_is_space) {
  auto store = shard_store::open(options()).value();
  std::uint64_t end = 0;
  // The space ends everywhere in what an append writes: segment head, record head, payload,
  // RocksDB's log.
  for (std::uint64_t room = 0; room < 40'000; room += 1'111) {
    files->set_free_bytes(room);
    result<void> done;
    const auto before = end;
    while ((done = append(*store, end, end + 3))) end += 3;
    ASSERT_EQ(done.error().code, error_code::disk_full) << done.error().message;
    EXPECT_NE(done.error().message.find(directory()), std::string::npos) << done.error().message;
    EXPECT_NE(done.error().message.find("bytes"), std::string::npos) << done.error().message;
    EXPECT_EQ(store->next_step(), step_id{end});
    if (append(*store, end, end + 3)) end += 3; // RocksDB may have removed something meanwhile
    ASSERT_TRUE(holds_all(*store, before, end));
    files->set_free_bytes(std::nullopt);
    done = append(*store, end, end + 3);
    ASSERT_TRUE(done) << room << ": " << done.error().message;
    end += 3;
    ASSERT_TRUE(holds_all(*store, before, end));
  }
  store.reset();
  store = shard_store::open(options(2)).value();
  EXPECT_EQ(store->found().log_end, step_id{end});
  EXPECT_TRUE(holds_all(*store, 0, end));
}

TEST_F(storage_faults, what_a_failed_append_left_does_not_come_back) {
  auto with_power = options();
  with_power.sync = sync_mode::power;
  auto store = shard_store::open(with_power).value();
  ASSERT_TRUE(append(*store, 0, 5));
  files->fail(operation::write, "/log/");
  EXPECT_EQ(append(*store, 5, 7).error().code, error_code::system);
  files->fail(operation::write, "");
  store.reset();
  store = shard_store::open(options(2)).value();
  EXPECT_EQ(store->found().log_end, step_id{5});
  ASSERT_TRUE(append(*store, 5, 8));
  EXPECT_TRUE(holds_all(*store, 0, 8));
}

TEST_F(storage_faults, an_error_of_a_write_is_told_and_can_be_tried_again) {
  const auto store = shard_store::open(options()).value();
  ASSERT_TRUE(append(*store, 0, 4));
  for (const auto* part : {"/segments/", "/log/"}) {
    files->fail(operation::write, part);
    const auto end = store->next_step().value;
    const auto problem = append(*store, end, end + 6).error();
    EXPECT_EQ(problem.code, error_code::system);
    EXPECT_NE(problem.message.find("Input/output error"), std::string::npos) << problem.message;
    EXPECT_NE(problem.message.find(directory()), std::string::npos) << problem.message;
    files->fail(operation::write, "");
    ASSERT_TRUE(append(*store, end, end + 6)) << part;
    EXPECT_TRUE(holds_all(*store, 0, end + 6));
  }
}

TEST_F(storage_faults, who_was_fenced_while_it_could_not_open_again_stays_fenced) {
  auto store = shard_store::open(options()).value();
  ASSERT_TRUE(append(*store, 0, 4));
  files->fail(operation::write, "/log/");
  EXPECT_EQ(append(*store, 4, 5).error().code, error_code::system);
  files->fail(operation::write, "");
  files->fail(operation::read, "/log/MANIFEST"); // its database is closed, and does not open
  EXPECT_EQ(append(*store, 4, 5).error().code, error_code::system);
  files->fail(operation::read, "");
  ASSERT_TRUE(append(*shard_store::open(options(2)).value(), 4, 6));
  for (int trial = 0; trial < 3; ++trial) {
    EXPECT_EQ(append(*store, 4, 5).error().code, error_code::fenced) << trial;
    EXPECT_EQ(store->drop_below({2}).error().code, error_code::fenced) << trial;
    EXPECT_EQ(store->renew_identity().error().code, error_code::fenced) << trial;
  }
  store.reset();
  store = shard_store::open(options(3)).value();
  EXPECT_EQ(store->found().log_end, step_id{6});
  EXPECT_TRUE(holds_all(*store, 0, 6));
}

TEST_F(storage_faults, a_database_that_could_not_be_marked_is_not_open_again) {
  std::filesystem::create_directories(directory());
  const auto opened =
      database::open({.directory = directory() + "/log", .files = files, .create = true, .way_out = ""})
          .value();
  const auto write = [&] {
    rocksdb::WriteBatch batch;
    batch.Put(opened->handle(table::facts), "key", "value");
    return opened->write(batch, false);
  };
  files->fail(operation::write, "/log/");
  ASSERT_FALSE(write());
  files->fail(operation::write, "");
  files->fail(operation::rename, "MANIFEST_BYTES");
  ASSERT_FALSE(opened->recover());
  EXPECT_TRUE(opened->broken());
  files->fail(operation::rename, "");
  ASSERT_TRUE(opened->recover());
  EXPECT_FALSE(opened->broken());
  EXPECT_TRUE(write());
}

TEST_F(storage_faults, after_a_sync_failed_nothing_is_taken_until_the_store_is_opened_again) {
  for (const auto* part : {"/segments/", "/log/"}) {
    auto store = shard_store::open(options()).value();
    const auto first = store->next_step().value;
    ASSERT_TRUE(append(*store, first, first + 4));
    files->fail(operation::sync, part);
    EXPECT_EQ(store->sync().error().code, error_code::system);
    files->fail(operation::sync, "");
    for (const auto& problem : {append(*store, first + 4, first + 5).error(), store->sync().error(),
                                store->drop_below({0}).error(), store->begin_snapshot({first}, {0}).error()})
      EXPECT_NE(problem.message.find("opened again"), std::string::npos) << problem.message;
    EXPECT_TRUE(holds_all(*store, first, first + 4)) << "reading goes on";
    store.reset();
    ASSERT_TRUE(append(*shard_store::open(options()).value(), first + 4, first + 6));
  }
}

TEST_F(storage_faults, an_error_of_a_read_is_not_taken_for_damage) {
  auto store = shard_store::open(options()).value();
  ASSERT_TRUE(append(*store, 0, 12));
  ASSERT_TRUE(snapshot(*store, 6));
  files->fail(operation::read, "/segments/");
  EXPECT_EQ(store->read(step_id{5}).error().code, error_code::system);
  files->fail(operation::read, "/snapshots/");
  EXPECT_EQ(store->open_snapshot({6}).error().code, error_code::system);
  store.reset();
  for (const auto* part : {"/segments/", "/log/", "/FORMAT"}) {
    files->fail(operation::read, part);
    EXPECT_EQ(shard_store::open(options(2)).error().code, error_code::system) << part;
  }
  files->fail(operation::read, "");
  store = shard_store::open(options(2)).value();
  EXPECT_TRUE(holds_all(*store, 0, 12));
  EXPECT_TRUE(has_snapshot(*store, 6));
}

TEST_F(storage_faults, a_read_only_disk_is_told) {
  auto store = shard_store::open(options()).value();
  ASSERT_TRUE(append(*store, 0, 4));
  ASSERT_TRUE(snapshot(*store, 2));
  files->set_read_only(true);
  for (const auto& problem :
       {append(*store, 4, 10).error(), snapshot(*store, 4).error(), store->drop_below({4}).error()})
    EXPECT_NE(problem.message.find("Read-only file system"), std::string::npos) << problem.message;
  EXPECT_TRUE(holds_all(*store, 0, 4));
  store.reset();
  const auto reopened = shard_store::open(options(2));
  ASSERT_FALSE(reopened);
  EXPECT_NE(reopened.error().message.find("Read-only file system"), std::string::npos)
      << reopened.error().message;
  files->set_read_only(false);
  EXPECT_TRUE(holds_all(*shard_store::open(options(2)).value(), 0, 4));
}

TEST_F(storage_faults, a_snapshot_that_does_not_fit_leaves_nothing) {
  const auto store = shard_store::open(options()).value();
  ASSERT_TRUE(append(*store, 0, 4));
  for (const std::uint64_t room : {0, 50, 200'000, 2'000'000}) {
    files->set_free_bytes(room);
    const auto problem = snapshot(*store, 4, 0, 2'000'000).error();
    EXPECT_EQ(problem.code, error_code::disk_full) << room << problem.message;
    EXPECT_NE(problem.message.find("/snapshots/4-0.snap"), std::string::npos) << problem.message;
    EXPECT_TRUE(is_empty("/snapshots"));
    files->set_free_bytes(std::nullopt);
  }
  ASSERT_TRUE(snapshot(*store, 4, 0, 2'000'000));
  EXPECT_TRUE(has_snapshot(*store, 4, 0, 2'000'000));
}

TEST_F(storage_faults, a_snapshot_whose_sync_or_renaming_fails_does_not_count) {
  const auto store = shard_store::open(options()).value();
  ASSERT_TRUE(append(*store, 0, 4));
  for (const auto what : {operation::sync, operation::rename}) {
    files->fail(what, "/snapshots");
    EXPECT_EQ(snapshot(*store, 4).error().code, error_code::system);
    files->fail(what, "");
    EXPECT_TRUE(store->snapshots().empty());
    EXPECT_TRUE(is_empty("/snapshots"));
  }
  ASSERT_TRUE(snapshot(*store, 4));
}

TEST_F(storage_faults, the_quota_is_kept_and_dropping_makes_room) {
  auto limited = options();
  limited.disk_quota_bytes = 300'000;
  const auto store = shard_store::open(limited).value();
  std::uint64_t end = 0;
  result<void> done;
  while ((done = append(*store, end, end + 1))) ++end;
  EXPECT_EQ(done.error().code, error_code::limit_exceeded);
  EXPECT_NE(done.error().message.find("300000"), std::string::npos) << done.error().message;
  EXPECT_NE(done.error().message.find(directory()), std::string::npos);
  EXPECT_LE(store->counters().bytes_on_disk, 300'000U);
  EXPECT_GT(end, 50U);
  EXPECT_EQ(snapshot(*store, end, 0, 100'000).error().code, error_code::limit_exceeded);
  EXPECT_TRUE(is_empty("/snapshots"));
  ASSERT_TRUE(snapshot(*store, end, 0, 1));
  ASSERT_TRUE(store->drop_below({end}));
  EXPECT_TRUE(append(*store, end, end + 10)) << store->counters().bytes_on_disk;
}

TEST_F(storage_faults, what_is_kept_to_be_written_over_is_given_back_when_the_room_is_needed) {
  const auto store = shard_store::open(options()).value();
  ASSERT_TRUE(append_each(*store, 0, 60));
  ASSERT_TRUE(snapshot(*store, 60));
  ASSERT_TRUE(store->drop_below({60}));
  const auto spare_bytes = store->counters().bytes_on_disk;
  files->set_free_bytes(10'000);
  EXPECT_EQ(snapshot(*store, 61, 0, 100'000).error().code, error_code::disk_full);
  EXPECT_LT(store->counters().bytes_on_disk + 100'000, spare_bytes);
  ASSERT_TRUE(snapshot(*store, 61, 0, 100'000)) << "there is room now";
  EXPECT_TRUE(has_snapshot(*store, 61, 0, 100'000));
}

} // namespace
} // namespace dlrun::persistence
