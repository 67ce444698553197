// A job that trains, evaluates, goes back and drops snapshots while it is archived: whatever
// happens between two looks, a run that goes on from the archive has what it needs (R45).
#include "actors/data_dispatcher/course_journal.hpp"
#include "runtime/archive_gathering.hpp"

#include <fmt/format.h>
#include <functional>
#include <gtest/gtest.h>
#include <random>

namespace dlrun::runtime {
namespace {

constexpr unsigned seeds = 400;
constexpr int archives_a_seed = 12;
constexpr std::size_t shards = 3;
constexpr std::uint64_t steps = 120, due_every = 7, ahead_max = 2;

/// What a version is the result of: the timelines that its steps were made on, each with what it
/// leaves out.
using origin = std::vector<std::uint64_t>;
origin origin_of(const protocol::history& history, version_id version) {
  origin made;
  for (const auto& entry : history)
    if (entry.branch < version) made.push_back(entry.timeline.value);
  return made;
}

/// Its stores change between any two calls, and within list() and keep().
class changing_job final : public archive_source {
public:
  explicit changing_job(unsigned seed)
      : random_{seed}
      , shards_(shards) {
    for (auto due = due_every; due <= steps; due += due_every) evaluated.insert({due});
  }

  result<std::vector<stored_snapshots>> list() override {
    std::vector<stored_snapshots> all;
    kept_.clear();
    for (std::size_t i = 0; i < shards; ++i) {
      live();
      auto& its = all.emplace_back();
      for (const auto& [name, made] : shards_[i].stored) its[name] = 1;
    }
    return all;
  }
  result<void> keep(const std::vector<snapshot_name>& names) override {
    for (auto& shard : shards_) {
      live();
      for (const auto& name : names) {
        const auto found = shard.stored.find(name);
        if (found == shard.stored.end()) return fail(error_code::bad_usage, "dropped");
        kept_[name].push_back(found->second);
      }
    }
    return {};
  }
  result<std::string> read(ps_shard_id, const snapshot_name&, std::uint64_t) override {
    return std::string{};
  }
  result<journal_entries> journal() override {
    live();
    journal_entries entries;
    persistence::apply(data_dispatcher::course_writer{}.to_writes(course_), entries);
    return entries;
  }

  /// @returns what a run that goes on from that lacks; "" where nothing
  std::string why_wrong(const gathered_archive& archive) const {
    const auto course = data_dispatcher::read_course(archive.journal.entries);
    if (!course) return course.error().message;
    const auto version = archive.chosen.back().version;
    for (const auto& name : archive.chosen)
      for (const auto& made : kept_.at(name))
        if (made != origin_of(course->history, name.version))
          return fmt::format("version {} is not that of the history", name.version);
    std::set<version_id> results;
    const auto is_there = [&](version_id one) {
      return std::ranges::find(archive.chosen, one, &snapshot_name::version) != archive.chosen.end();
    };
    const protocol::evaluated* best = nullptr;
    for (const auto& one : course->evaluations) {
      if (one.version > version) return fmt::format("version {} has a result before it is made", one.version);
      results.insert(one.version);
      if (best == nullptr || one.loss_sum_bits < best->loss_sum_bits) best = &one;
    }
    // One that a later result has outdone is found to be so again.
    const bool is_outdone = best != nullptr && std::ranges::any_of(course_.evaluations, [&](const auto& one) {
                              return one.version > version && one.loss_sum_bits < best->loss_sum_bits;
                            });
    if (best != nullptr && !is_outdone && has(best->version) && !is_there(best->version))
      return fmt::format("the best version, {}, is lost", best->version);
    for (const auto due : evaluated)
      if (due <= version && !results.contains(due) && !is_there(due))
        return fmt::format("version {} can be evaluated no more", due);
    return "";
  }

  std::set<version_id> evaluated;

private:
  struct shard {
    std::map<snapshot_name, origin> stored{};
    std::uint64_t at = 0;   ///< version
    timeline_id timeline{}; ///< that it has heard of
  };

  std::uint64_t draw(std::uint64_t below) {
    return std::uniform_int_distribution<std::uint64_t>{0, below - 1}(random_);
  }
  void live() {
    for (auto left = draw(40); left > 0; --left) change();
  }
  void change() {
    const auto what = draw(100);
    auto& one = shards_[draw(shards)];
    if (what < 70) return train(one);
    if (what < 80) return evaluate();
    if (what < 97) return drop();
    if (what < 98) go_back();
  }

  /// What of a history a shard has heard.
  protocol::history heard(const shard& one) const {
    auto all = course_.history;
    std::erase_if(all, [&](const auto& entry) { return entry.timeline > one.timeline; });
    return all;
  }
  void train(shard& one) {
    if (one.timeline != protocol::newest_timeline(course_.history) && draw(3) == 0) return rewind(one);
    const auto pending = pending_from(0);
    const auto limit = pending.size() > ahead_max ? pending[ahead_max].value : steps;
    if (one.at >= limit) return;
    ++one.at;
    if (!evaluated.contains({one.at}) && draw(3) != 0) return;
    const auto history = heard(one);
    one.stored[{{one.at}, one.timeline}] = origin_of(history, {one.at});
  }
  void rewind(shard& one) {
    const auto branch = *protocol::branched_since(course_.history, one.timeline);
    one.timeline = protocol::newest_timeline(course_.history);
    std::erase_if(one.stored, [&](const auto& snapshot) { return snapshot.first.version > branch; });
    one.at = branch.value;
  }
  bool all_follow() const {
    return std::ranges::all_of(
        shards_, [&](const auto& one) { return one.timeline == protocol::newest_timeline(course_.history); });
  }
  std::vector<version_id> common() const {
    std::vector<version_id> all;
    for (const auto& entry : shards_.front().stored)
      if (std::ranges::all_of(shards_, [&](const auto& one) { return one.stored.contains(entry.first); }))
        all.push_back(entry.first.version);
    return all;
  }
  std::vector<version_id> pending_from(std::uint64_t first) const {
    std::vector<version_id> all;
    for (const auto due : evaluated)
      if (due.value >= first && std::ranges::find(course_.evaluations, due, &protocol::evaluated::version) ==
                                    course_.evaluations.end())
        all.push_back(due);
    return all;
  }
  void evaluate() {
    const auto next = pending_from(0);
    const auto there = common();
    if (!all_follow() || next.empty() || std::ranges::find(there, next.front()) == there.end()) return;
    protocol::evaluated result;
    result.version = next.front();
    result.timeline = protocol::newest_timeline(course_.history);
    result.loss_sum_bits = 1000 + draw(1000);
    course_.evaluations.push_back(result);
  }
  /// Going back takes the result that outdid one, and the snapshot of that one may have gone
  /// before.
  bool has(version_id version) const {
    return std::ranges::all_of(shards_, [&](const auto& one) {
      return std::ranges::any_of(one.stored,
                                 [&](const auto& snapshot) { return snapshot.first.version == version; });
    });
  }
  version_id best() const {
    const auto found = std::ranges::min_element(course_.evaluations, {}, &protocol::evaluated::loss_sum_bits);
    return found == course_.evaluations.end() ? version_id{} : found->version;
  }
  void drop() {
    const auto there = common();
    if (!all_follow() || there.size() < 2) return;
    const auto next = pending_from(0);
    auto floor = there[there.size() - 2];
    if (!next.empty()) floor = std::min(floor, next.front());
    auto& one = shards_[draw(shards)];
    std::erase_if(one.stored, [&](const auto& snapshot) {
      return snapshot.first.version < floor && snapshot.first.version != best();
    });
  }
  /// Journaled first; each shard hears of it when it does.
  void go_back() {
    const auto there = common();
    if (!all_follow() || there.empty()) return;
    const auto to = there[draw(there.size())];
    course_.history.push_back({{protocol::newest_timeline(course_.history).value + 1}, to, 0, {}});
    std::erase_if(course_.evaluations, [&](const auto& one) { return one.version > to; });
  }

  std::mt19937 random_;
  std::vector<shard> shards_;
  data_dispatcher::journaled_course course_;
  std::map<snapshot_name, std::vector<origin>> kept_; ///< of each shard
};

struct outcome {
  std::string wrong;
  int made = 0;
};
outcome archive_all(unsigned seed, archive_bug bug) {
  changing_job job{seed};
  outcome found;
  std::optional<snapshot_name> newest;
  for (int i = 0; i < archives_a_seed; ++i) {
    const auto gathered = gather_archive(job, job.evaluated, newest, bug);
    if (!gathered || !*gathered) continue;
    ++found.made;
    newest = (*gathered)->chosen.back();
    found.wrong = job.why_wrong(**gathered);
    if (!found.wrong.empty()) return found;
  }
  return found;
}

#ifndef DLRUN_PLANTED_BUGS
TEST(archive_property, an_archive_has_what_a_run_needs_that_goes_on_from_it) {
  int made = 0;
  for (unsigned seed = 0; seed < seeds; ++seed) {
    const auto found = archive_all(seed, archive_bug::none);
    ASSERT_EQ(found.wrong, "") << "seed " << seed;
    made += found.made;
  }
  EXPECT_GT(made, static_cast<int>(seeds));
}
#else
class archive_mutant : public testing::TestWithParam<archive_bug> {};

TEST_P(archive_mutant, is_found) {
  for (unsigned seed = 0; seed < seeds; ++seed)
    if (const auto found = archive_all(seed, GetParam()); !found.wrong.empty()) {
      fmt::print("seed {}: {}\n", seed, found.wrong);
      return;
    }
  FAIL() << "not found";
}

INSTANTIATE_TEST_SUITE_P(each, archive_mutant,
                         testing::Values(archive_bug::journal_first, archive_bug::left_timeline,
                                         archive_bug::later_results, archive_bug::newest_alone));
#endif

} // namespace
} // namespace dlrun::runtime
