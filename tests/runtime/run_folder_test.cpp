#include "runtime/run_folder.hpp"

#include "job/spec_reader.hpp"
#include "tests/data/files.hpp"
#include "tests/job/spec_text.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace dlrun::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class run_folder_test : public testing::Test {
protected:
  result<run_folder> create(const std::filesystem::path& path) const {
    return run_folder::create(path.string(), spec);
  }
  /// What is said when it is refused as a wrong use; "" when it is not.
  static std::string refusal(const result<run_folder>& made) {
    if (made) return "";
    EXPECT_EQ(made.error().code, error_code::bad_usage) << made.error().message;
    return made.error().message;
  }
  static void touch(const std::filesystem::path& file) { std::ofstream(file) << "x"; }

  test::temporary_folder temporary;
  std::filesystem::path run = temporary.path() / "somewhere" / "run7";
  spec::JobSpec spec = test::parse(test::minimal_spec).value();
};

TEST_F(run_folder_test, is_made_with_the_specification_as_used) {
  const auto folder = create(run);
  ASSERT_TRUE(folder) << folder.error().message;
  EXPECT_EQ(folder->path(), run);
  EXPECT_TRUE(std::filesystem::is_directory(run / "logs"));
  EXPECT_EQ(job::read_spec(run / "spec.yaml").value().SerializeAsString(), spec.SerializeAsString());
}

TEST_F(run_folder_test, has_a_root_as_long_as_one_holds_it) {
  EXPECT_FALSE(has_root(run)) << "there is no folder";
  {
    const auto folder = create(run);
    ASSERT_TRUE(folder) << folder.error().message;
    EXPECT_TRUE(has_root(run));
  }
  const auto reader = run_folder::open_to_read(run.string());
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_FALSE(has_root(run)) << "one who reads is none";
}

TEST_F(run_folder_test, is_named_after_the_job_when_nothing_else_is_wanted) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(temporary.path());
  const auto folder = run_folder::create("", spec);
  std::filesystem::current_path(before);
  ASSERT_TRUE(folder) << folder.error().message;
  EXPECT_EQ(folder->path(), temporary.path() / "runs" / "job");
}

TEST_F(run_folder_test, may_be_an_empty_folder_that_is_there) {
  std::filesystem::create_directories(run);
  EXPECT_EQ(refusal(create(run)), "");
}

TEST_F(run_folder_test, what_a_killed_command_has_begun_is_no_run_to_go_on_with) {
  create(run).value();
  const auto said = refusal(create(run));
  EXPECT_THAT(said, HasSubstr("killed before there was anything to go on with"));
  EXPECT_THAT(said, HasSubstr("--or-resume"));
  EXPECT_THAT(said, testing::Not(HasSubstr("dlrun resume")));
}

TEST_F(run_folder_test, one_that_did_not_begin_is_not_in_the_way_of_the_next) {
  create(run).value().abandon();
  EXPECT_FALSE(std::filesystem::exists(run));
  EXPECT_EQ(refusal(create(run)), "");
}

TEST_F(run_folder_test, a_new_run_never_overwrites_another) {
  create(run).value();
  touch(run / "run.record");
  spec.mutable_train()->set_seed(7);
  const auto said = refusal(create(run));
  EXPECT_THAT(said, HasSubstr(run.string()));
  EXPECT_THAT(said, HasSubstr("dlrun resume"));
  EXPECT_THAT(said, HasSubstr("--run-dir"));
  EXPECT_EQ(job::read_spec(run / "spec.yaml")->train().seed(), 1U);
}

TEST_F(run_folder_test, a_folder_with_something_else_in_it_is_refused_and_left_alone) {
  std::filesystem::create_directories(run);
  touch(run / "thesis.tex");
  const auto said = refusal(create(run));
  EXPECT_THAT(said, HasSubstr(run.string()));
  EXPECT_THAT(said, HasSubstr("--run-dir"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(run), {}), 1);
}

TEST_F(run_folder_test, what_was_killed_while_it_began_is_removed_when_that_is_wanted) {
  EXPECT_TRUE(holds_at_most_a_beginning(run)) << "there is none";
  for (const auto* left :
       {"", "run.lock", "spec.yaml", "spec.yaml.a1b2c3", "run.record.a1b2c3", ".write-rate"}) {
    std::filesystem::remove_all(run);
    std::filesystem::create_directories(run / "logs");
    if (*left != 0) touch(run / left);
    EXPECT_TRUE(holds_at_most_a_beginning(run)) << left;
    EXPECT_NE(refusal(create(run)), "") << left;
    const auto made = run_folder::create(run.string(), spec, torn_beginning::removed);
    ASSERT_TRUE(made) << left << made.error().message;
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(run), {}), 3) << left; // logs, lock, spec
    EXPECT_TRUE(job::read_spec(run / "spec.yaml")) << left;
    EXPECT_THAT(refusal(run_folder::create(run.string(), spec, torn_beginning::removed)),
                HasSubstr("in use"));
  }
}

TEST_F(run_folder_test, what_an_archive_was_becoming_is_a_beginning_and_what_it_has_become_is_none) {
  std::filesystem::create_directories(run / "ps_shard-0" / "log");
  std::filesystem::create_directories(run / "journal");
  touch(run / "ps_shard-0" / "log" / "CURRENT");
  EXPECT_FALSE(holds_at_most_a_beginning(run)) << "nothing says where that is from";
  touch(run / "run.record.restoring");
  EXPECT_TRUE(holds_at_most_a_beginning(run));
  touch(run / "run.record");
  EXPECT_FALSE(holds_at_most_a_beginning(run)) << "it has become a run";
  std::filesystem::remove(run / "run.record");
  const auto made = run_folder::create(run.string(), spec, torn_beginning::removed);
  ASSERT_TRUE(made) << made.error().message;
  for (const auto* gone : {"ps_shard-0", "journal", "run.record.restoring"})
    EXPECT_FALSE(std::filesystem::exists(run / gone)) << gone;
}

TEST_F(run_folder_test, what_may_be_more_than_a_beginning_is_never_removed) {
  for (const auto* kept : {"run.record", "logs/worker-0.log", "journal", "ps_shard-0", "thesis.tex"}) {
    std::filesystem::remove_all(run);
    std::filesystem::create_directories(run / "logs");
    touch(run / "spec.yaml");
    touch(run / kept);
    EXPECT_FALSE(holds_at_most_a_beginning(run)) << kept;
    EXPECT_NE(refusal(run_folder::create(run.string(), spec, torn_beginning::removed)), "") << kept;
    EXPECT_TRUE(std::filesystem::exists(run / kept)) << kept;
  }
}

TEST_F(run_folder_test, a_folder_that_cannot_be_made_is_an_error_that_names_it) {
  touch(temporary.path() / "somewhere");
  const auto said = refusal(create(run));
  EXPECT_THAT(said, HasSubstr(run.string()));
  EXPECT_THAT(said, HasSubstr("Not a directory"));
  EXPECT_THAT(said, HasSubstr("--run-dir"));
}

TEST_F(run_folder_test, one_that_cannot_be_looked_into_is_not_taken_for_an_empty_one_or_for_what_may_go) {
  std::filesystem::create_directories(run.parent_path());
  std::filesystem::create_directory_symlink(run, run); // to itself
  for (const auto& said : {refusal(create(run)), refusal(run_folder::open(run.string()))}) {
    EXPECT_THAT(said, HasSubstr("cannot look into the run folder '" + run.string()));
    EXPECT_THAT(said, HasSubstr("Too many levels of symbolic links"));
  }
  std::filesystem::remove(run);
  std::filesystem::create_directories(run);
  std::filesystem::create_symlink("run.record", run / "run.record");
  EXPECT_THAT(refusal(create(run)), HasSubstr("cannot look into the run folder"));
}

TEST_F(run_folder_test, of_one_that_cannot_be_made_nothing_is_left) {
  const auto high = temporary.path() / "deep";
  const auto said = refusal(create(high / "p" / "q" / std::string(256, 'z')));
  EXPECT_THAT(said, HasSubstr("File name too long"));
  EXPECT_FALSE(std::filesystem::exists(high));
  std::filesystem::create_directories(high / "p");
  refusal(create(high / "p" / "q" / std::string(256, 'z')));
  EXPECT_TRUE(std::filesystem::is_empty(high / "p")) << "that was there before";
}

TEST_F(run_folder_test, one_that_did_not_begin_goes_with_the_folders_that_were_made_for_it) {
  create(run).value().abandon();
  EXPECT_FALSE(std::filesystem::exists(run.parent_path()));
  std::filesystem::create_directories(run.parent_path());
  create(run).value().abandon();
  EXPECT_FALSE(std::filesystem::exists(run));
  EXPECT_TRUE(std::filesystem::exists(run.parent_path()));
}

TEST_F(run_folder_test, is_refused_to_a_second_process_naming_the_first_and_the_ways_out) {
  auto first = create(run);
  ASSERT_TRUE(first);
  const auto said = refusal(run_folder::open(run.string()));
  EXPECT_THAT(said, HasSubstr(fmt::format("'{}' is in use by process {}:", run.string(), ::getpid())));
  EXPECT_THAT(said, HasSubstr("dlrun status " + run.string()));
  EXPECT_THAT(said, HasSubstr("dlrun stop " + run.string()));
  const auto moved = std::move(*first);
  EXPECT_NE(refusal(run_folder::open(run.string())), "");
}

TEST_F(run_folder_test, is_refused_to_a_root_on_another_host_naming_the_first_ones) {
  const auto first = create(run);
  std::ofstream(run / "run.lock") << "77 beta\n"; // as the root wrote it on that host
  const auto said = refusal(run_folder::open(run.string()));
  EXPECT_THAT(said, HasSubstr(fmt::format("'{}' is in use by process 77 on host beta", run.string())));
  EXPECT_THAT(said, HasSubstr("dlrun stop " + run.string() + "' on beta"));
}

TEST_F(run_folder_test, can_be_opened_again_when_the_first_is_gone) {
  create(run).value();
  const auto again = run_folder::open(run.string());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->path(), run);
  EXPECT_NE(refusal(run_folder::open(run.string())), "") << "it is in use now";
}

TEST_F(run_folder_test, any_number_may_look_while_nobody_uses_it) {
  create(run).value();
  const auto before = std::filesystem::last_write_time(run / "run.lock");
  const auto one = run_folder::open_to_read(run.string());
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->path(), run);
  EXPECT_TRUE(run_folder::open_to_read(run.string()));
  const auto refused = run_folder::open(run.string());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::in_use) << "nothing is wrong with what was asked";
  EXPECT_THAT(refused.error().message, HasSubstr("is in use, by 'dlrun export'"));
  EXPECT_EQ(std::filesystem::last_write_time(run / "run.lock"), before);
}

TEST_F(run_folder_test, is_had_by_who_uses_it_though_others_look_again_and_again) {
  create(run).value();
  const std::jthread looks{[&](const std::stop_token& stop) {
    while (!stop.stop_requested()) static_cast<void>(run_folder::open_to_read(run.string()));
  }};
  for (int i = 0; i < 20; ++i) {
    const auto used = run_folder::open(run.string());
    EXPECT_TRUE(used) << used.error().message;
  }
}

TEST_F(run_folder_test, a_look_is_refused_while_it_is_used) {
  const auto user = create(run);
  EXPECT_THAT(refusal(run_folder::open_to_read(run.string())), HasSubstr("is in use by process"));
}

TEST_F(run_folder_test, a_folder_that_was_copied_without_its_lock_can_be_looked_at) {
  create(run).value();
  std::filesystem::remove(run / "run.lock");
  EXPECT_TRUE(run_folder::open_to_read(run.string()));
  EXPECT_FALSE(std::filesystem::exists(run / "run.lock"));
  EXPECT_THAT(refusal(run_folder::open_to_read((run / "deeper").string())), HasSubstr("no spec.yaml in it"));
}

TEST_F(run_folder_test, another_folder_is_not_taken_for_one_and_not_touched) {
  std::filesystem::create_directories(run);
  EXPECT_THAT(refusal(run_folder::open(run.string())), HasSubstr("no spec.yaml in it"));
  EXPECT_TRUE(std::filesystem::is_empty(run));
  EXPECT_THAT(refusal(run_folder::open((run / "deeper").string())), HasSubstr((run / "deeper").string()));
}

TEST_F(run_folder_test, knows_its_revisions_in_order) {
  const auto folder = create(run);
  ASSERT_TRUE(folder);
  EXPECT_THAT(folder->spec_files(), ElementsAre(run / "spec.yaml"));
  for (std::size_t revision = 1; revision <= 10; ++revision) touch(folder->spec_file(revision));
  const auto files = folder->spec_files();
  ASSERT_EQ(files.size(), 11U);
  EXPECT_EQ(files[2], run / "spec.2.yaml");
  EXPECT_EQ(files[10], run / "spec.10.yaml");
}

} // namespace
} // namespace dlrun::runtime
