// What a run folder lacks of a model, as whoever wants it is told (R38).
#include "runtime/missing_stores.hpp"

#include "runtime/left_behind.hpp"
#include "runtime/run_record.hpp"
#include "tests/runtime/small_training.hpp"

#include <dlrun/training.hpp>
#include <fstream>
#include <gmock/gmock.h>

namespace dlrun::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

/// A run of one PS shard that is complete, and had another host.
class missing_stores_test : public testing::Test {
protected:
  missing_stores_test() {
    auto done = training::start(small.job(), {.run_dir = small.run_dir()});
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
    if (done) ended = done->wait().value();
    record = *read_record(small.run_dir()).value();
    auto& host = *record.add_hosts();
    host.set_name("beta");
    host.set_address("10.0.0.2");
    host.set_folder("/data/run");
    keep();
  }
  void keep() const { EXPECT_TRUE(write_record(small.run_dir(), record)); }
  void keep(const dlrun::report& report) const {
    EXPECT_TRUE(write_report(small.run_dir() / "report.json", report));
  }
  std::vector<ps_shard_id> missing() const {
    return missing_stores(small.run_dir(), record, last_stores_of(small.run_dir(), record).value()).value();
  }
  void lose_store() const { std::filesystem::remove_all(small.run_dir() / "ps_shard-0"); }
  static void damage_store(const std::filesystem::path& run_dir) {
    std::ofstream{run_dir / "ps_shard-0/log/CURRENT"} << "nothing\n";
  }

  test::small_training small;
  dlrun::report ended;
  records::RunRecord record;
};

TEST_F(missing_stores_test, are_none_where_each_holds_the_last_version) {
  EXPECT_EQ(last_stores_of(small.run_dir(), record).value().version.value, ended.steps);
  EXPECT_THAT(missing(), IsEmpty());
  EXPECT_EQ(why_not_whole(small.run_dir(), ended), "");
}

TEST_F(missing_stores_test, are_those_that_are_not_there_which_is_told_with_host_and_way_out) {
  lose_store();
  EXPECT_THAT(missing(), ElementsAre(ps_shard_id{0}));
  const auto told = why_not_whole(small.run_dir(), ended);
  for (const auto* word :
       {"PS shard 0", "beta (10.0.0.2, folder '/data/run')", "--hosts FILE", "copy ps_shard-0"})
    EXPECT_THAT(told, HasSubstr(word));
  coordinator::store_book::stores known;
  known[{0}].store.host = "beta";
  EXPECT_EQ(tell_stores(missing(), known), "PS shard 0 (last on host beta)");
}

TEST_F(missing_stores_test, are_told_with_the_reason_where_nobody_can_tell_their_hosts) {
  lose_store();
  const auto journal = small.run_dir() / "journal";
  std::ofstream{journal / "log/CURRENT"} << "nothing\n";
  const auto told = why_not_whole(small.run_dir(), ended);
  for (const auto& word : {std::string{"PS shard 0 (on which host is not known: "}, journal.string()})
    EXPECT_THAT(told, HasSubstr(word));
}

TEST_F(missing_stores_test, are_those_that_hold_less_than_the_run_came_to) {
  ++ended.steps;
  keep(ended);
  EXPECT_THAT(missing(), ElementsAre(ps_shard_id{0}));
  EXPECT_THAT(why_not_whole(small.run_dir(), ended), HasSubstr("PS shard 0"));
}

TEST_F(missing_stores_test, have_to_hold_what_the_evaluation_chose_that_ended_the_training) {
  ended.stopped_early = true;
  ended.evaluations.emplace_back().step = ended.steps;
  ended.steps += 2; // applied, and not in the log
  keep(ended);
  EXPECT_THAT(missing(), IsEmpty());
}

TEST_F(missing_stores_test, are_those_of_a_timeline_that_was_left) {
  auto last = last_stores_of(small.run_dir(), record).value();
  last.timeline = {1};
  EXPECT_THAT(missing_stores(small.run_dir(), record, last).value(), ElementsAre(ps_shard_id{0}));
}

TEST_F(missing_stores_test, have_only_to_be_there_of_a_run_that_is_not_complete) {
  ended.status = run_status::interrupted;
  ++ended.steps;
  keep(ended);
  EXPECT_THAT(missing(), IsEmpty());
  lose_store();
  EXPECT_THAT(missing(), ElementsAre(ps_shard_id{0}));
  EXPECT_EQ(why_not_whole(small.run_dir(), ended), "") << "it goes on where its stores are";
}

TEST_F(missing_stores_test, are_none_of_a_run_that_was_always_on_one_host) {
  record.clear_hosts();
  keep();
  lose_store();
  EXPECT_THAT(missing(), IsEmpty());
  EXPECT_EQ(why_not_whole(small.run_dir(), ended), "");
}

TEST_F(missing_stores_test, are_replaced_by_older_ones_where_the_run_goes_on_without_other_hosts) {
  const auto store = small.run_dir() / "ps_shard-0";
  std::ofstream{small.run_dir() / "report.json"} << "{"; // of a run that is not complete nobody needs it
  EXPECT_EQ(what_is_left_behind(small.run_dir(), record).value().text, "");
  std::filesystem::rename(store, store.string() + ".old");
  const auto left = what_is_left_behind(small.run_dir(), record).value();
  EXPECT_THAT(left.text,
              HasSubstr("beta (10.0.0.2, folder '/data/run'), and goes on without them: PS shard 0 "
                        "goes on from an older store"));
  EXPECT_FALSE(std::filesystem::exists(store)) << "nothing is changed yet";
  ASSERT_TRUE(take_stores_back(small.run_dir(), left.have_older));
  EXPECT_EQ(what_is_left_behind(small.run_dir(), record).value().text, "");
  lose_store();
  const auto lost = what_is_left_behind(small.run_dir(), record).value();
  EXPECT_THAT(lost.text, HasSubstr("PS shard 0 has no store in '"));
  EXPECT_THAT(lost.have_older, IsEmpty());
}

TEST_F(missing_stores_test, are_not_told_where_a_store_cannot_be_read_and_the_model_is_not_told_as_whole) {
  damage_store(small.run_dir());
  const auto missing =
      missing_stores(small.run_dir(), record, last_stores_of(small.run_dir(), record).value());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, error_code::storage_damaged);
  const auto told = why_not_whole(small.run_dir(), ended);
  for (const auto& words : {std::string{"nobody can tell"}, missing.error().message})
    EXPECT_THAT(told, HasSubstr(words));
  const auto resumed = training::resume(small.run_dir());
  ASSERT_FALSE(resumed);
  EXPECT_EQ(resumed.error().code, error_code::storage_damaged) << resumed.error().message;
}

TEST_F(missing_stores_test, are_not_told_without_the_report_which_names_the_last_version) {
  std::ofstream{small.run_dir() / "report.json"} << "{";
  EXPECT_EQ(last_stores_of(small.run_dir(), record).error().code, error_code::bad_data);
  EXPECT_THAT(why_not_whole(small.run_dir()).value_or(""), HasSubstr("nobody can tell"));
  std::filesystem::remove(small.run_dir() / "report.json");
  EXPECT_EQ(why_not_whole(small.run_dir()), std::nullopt);
}

TEST_F(missing_stores_test, are_not_told_without_the_record_which_names_the_hosts) {
  const auto file = small.run_dir() / "run.record";
  std::ofstream{file} << "cut o";
  EXPECT_THAT(why_not_whole(small.run_dir(), ended), HasSubstr("nobody can tell"));
  std::filesystem::remove(file);
  std::filesystem::create_symlink(file, file); // the system tells an error, not that there is none
  EXPECT_THAT(why_not_whole(small.run_dir(), ended), HasSubstr("nobody can tell"));
}

/// Stops a run that has trained.
class stops_soon final : public training_callback {
public:
  void on_progress(const progress& now, training_control& control) override {
    if (now.measured) control.stop("far enough");
  }
};

/// R42.
TEST_F(missing_stores_test, are_those_that_hold_less_than_the_journal_knows_or_were_opened_before) {
  const auto run_dir = small.folder.path() / "stopped", older = small.folder.path() / "older";
  const training_options soon{.run_dir = run_dir, .callbacks = {std::make_shared<stops_soon>()}};
  EXPECT_EQ(why_not_here(run_dir), "") << "of a run that has not begun there is nothing";
  EXPECT_TRUE(training::start(small.job({"train.epochs=1000000"}), soon).value().wait());
  EXPECT_EQ(why_not_here(run_dir), "");
  std::filesystem::copy(run_dir / "ps_shard-0", older, std::filesystem::copy_options::recursive);
  EXPECT_TRUE(training::resume(run_dir, {}, soon).value().wait());
  EXPECT_EQ(why_not_here(run_dir), "");
  std::filesystem::remove_all(run_dir / "ps_shard-0");
  EXPECT_THAT(why_not_here(run_dir), StartsWith("on hosts alone: PS shard 0"));
  std::filesystem::rename(older, run_dir / "ps_shard-0");
  EXPECT_THAT(why_not_here(run_dir), StartsWith("on hosts alone: PS shard 0"));
  damage_store(run_dir);
  EXPECT_THAT(why_not_here(run_dir), StartsWith((run_dir / "ps_shard-0/log").string()));
}

TEST_F(missing_stores_test, keep_a_run_from_being_told_as_complete) {
  lose_store();
  const auto resumed = training::resume(small.run_dir());
  ASSERT_FALSE(resumed);
  EXPECT_EQ(resumed.error().code, error_code::bad_usage);
  EXPECT_THAT(resumed.error().message, HasSubstr("trained to its end, and a part of its model is still on"));
}

} // namespace
} // namespace dlrun::runtime
