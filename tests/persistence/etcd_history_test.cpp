/// Several owners and readers of one journal in a real etcd whose members die and stand still: one
/// order explains all that they were told.
#include "persistence/etcd_journal.hpp"
#include "tests/persistence/etcd_servers.hpp"
#include "tests/persistence/journal_history.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <iostream>
#include <random>
#include <thread>

namespace dlrun::persistence {
namespace {

using std::chrono::milliseconds;
using answer = test::journal_call::answer;
using kind = test::journal_call::kind;

constexpr std::size_t owners = 3;
constexpr int terms_of_each = 8;
constexpr int writes_of_a_term = 5;
constexpr int members = 3;
/// Shorter than a leader's election may take, so that some are not answered.
constexpr etcd_patience short_patience{milliseconds(100), milliseconds(1200)};
constexpr auto prefix = "dlrun/history";

answer answer_of(const error& why) {
  return why.code == error_code::fenced ? answer::refused : answer::unknown;
}

/// Takes the journal again and again, and writes until it is deposed or not answered.
class owner {
public:
  owner(const etcd_place& place, test::history_recorder& history, std::atomic<std::uint64_t>& terms,
        unsigned seed)
      : place_(place)
      , history_(history)
      , terms_(terms)
      , random_(seed) {}

  void run() {
    for (int turn = 0; turn < terms_of_each; ++turn) {
      look();
      // Some ask for a term that somebody has.
      const auto newest = terms_.load();
      const auto term = newest > 0 && random_() % 4 == 0 ? newest : ++terms_;
      if (const auto taken = take(term)) write_all(*taken, term);
    }
  }

private:
  void look() {
    const auto call = history_.begin(kind::read, 0);
    const auto found = etcd_journal::read(place_, prefix, short_patience);
    if (!found) return history_.end(call, answer::unknown);
    const auto& contents = *found;
    if (!contents) return history_.end(call, answer::done, {}, 0);
    history_.end(call, answer::done, contents->entries, contents->owner.value);
  }

  std::unique_ptr<etcd_journal> take(std::uint64_t term) {
    const auto call = history_.begin(kind::take, term);
    auto taken = etcd_journal::take({place_, prefix, {term}, short_patience});
    if (!taken) {
      history_.end(call, answer_of(taken.error()));
      return nullptr;
    }
    history_.end(call, answer::done, (*taken)->contents());
    return std::move(*taken);
  }

  void write_all(etcd_journal& into, std::uint64_t term) {
    for (int i = 0; i < writes_of_a_term; ++i) {
      const auto value = std::to_string(term) + "." + std::to_string(i);
      std::vector<journal_write> changes{{"timeline", value}};
      if (random_() % 2 == 0) changes.push_back({"store/1", value});
      if (random_() % 5 == 0) changes.push_back({"set/0", std::nullopt});
      const auto call = history_.begin(kind::write, term, changes);
      const auto written = into.write(changes);
      history_.end(call, written ? answer::done : answer_of(written.error()));
      if (!written) return;
    }
  }

  const etcd_place& place_;
  test::history_recorder& history_;
  std::atomic<std::uint64_t>& terms_;
  std::mt19937 random_;
};

/// Members, the leader most of the time, are killed or stopped, one at a time, and come back after
/// some more calls.
void disturb(test::etcd_servers& etcd, test::history_recorder& history, const std::atomic<bool>& is_over,
             unsigned seed) {
  std::mt19937 random(seed);
  while (!is_over) {
    const auto lost = random() % 3 == 0 ? random() % members : etcd.leader();
    const bool is_killed = random() % 2 == 0;
    if (is_killed)
      etcd.kill(lost);
    else
      etcd.stop(lost);
    history.wait_for_more(random() % 20);
    if (is_killed)
      etcd.start(lost);
    else
      etcd.go_on(lost);
    etcd.wait_until_up();
  }
}

class etcd_history : public testing::TestWithParam<unsigned> {};

TEST_P(etcd_history, is_that_of_a_journal_which_does_one_call_after_the_other) {
  ASSERT_TRUE(test::etcd_servers::are_installed()) << "no etcd: Debian's package etcd-server";
  test::etcd_servers etcd(members);
  const auto place = etcd.place();
  test::history_recorder history;
  std::atomic<std::uint64_t> terms = 0;
  std::atomic<bool> is_over = false;
  std::thread chaos([&] { disturb(etcd, history, is_over, GetParam()); });
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < owners; ++i)
    threads.emplace_back([&, i] { owner(place, history, terms, GetParam() * 100 + i).run(); });
  for (auto& one : threads) one.join();
  is_over = true;
  history.no_more();
  chaos.join();
  const auto calls = history.all();
  const auto of = [&](answer told) { return std::ranges::count(calls, told, &test::journal_call::told); };
  std::cout << calls.size() << " calls: " << of(answer::done) << " done, " << of(answer::refused)
            << " refused, " << of(answer::unknown) << " without an answer\n";
  EXPECT_GT(of(answer::done), 0);
  const auto unexplained = test::unexplained_call(calls);
  EXPECT_FALSE(unexplained) << "no order of all calls explains this one: " << *unexplained << "\n"
                            << test::to_text(calls);
}

INSTANTIATE_TEST_SUITE_P(seeds, etcd_history, testing::Range(1U, 4U));

} // namespace
} // namespace dlrun::persistence
