/// dlrun_simulate_cluster: whole clusters under seeded faults. tests/simulation/README.md says what
/// it checks.
#include "tests/simulation/simulation.hpp"

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fmt/ostream.h>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <unistd.h>

namespace {

using dlrun::protocol::planted_bug;
using dlrun::simulation::run_options;
using dlrun::simulation::run_seed;

const std::map<std::string, planted_bug> bugs{{"none", planted_bug::none},
                                              {"arrival_order", planted_bug::arrival_order},
                                              {"no_timeline", planted_bug::no_timeline},
                                              {"no_timeline_w", planted_bug::no_timeline_w},
                                              {"max_version", planted_bug::max_version},
                                              {"mix_versions", planted_bug::mix_versions},
                                              {"no_bound", planted_bug::no_bound},
                                              {"one_buffer", planted_bug::one_buffer},
                                              {"ack_forever", planted_bug::ack_forever},
                                              {"drop_on_publish", planted_bug::drop_on_publish},
                                              {"drop_own_commit", planted_bug::drop_own_commit},
                                              {"no_norms", planted_bug::no_norms},
                                              {"own_floor", planted_bug::own_floor},
                                              {"untagged_status", planted_bug::untagged_status},
                                              {"strand_fenceless", planted_bug::strand_fenceless},
                                              {"leave_over", planted_bug::leave_over},
                                              {"no_probe", planted_bug::no_probe},
                                              {"late_journal", planted_bug::late_journal},
                                              {"lease_early", planted_bug::lease_early},
                                              {"undo_unpinned", planted_bug::undo_unpinned},
                                              {"message_snap", planted_bug::message_snap},
                                              {"no_gate", planted_bug::no_gate},
                                              {"drop_best", planted_bug::drop_best},
                                              {"park_in_place", planted_bug::park_in_place},
                                              {"blame_neighbour", planted_bug::blame_neighbour},
                                              {"count_parked", planted_bug::count_parked},
                                              {"scale_early", planted_bug::scale_early},
                                              {"leave_early", planted_bug::leave_early},
                                              {"copy_counted", planted_bug::copy_counted},
                                              {"one_way_beat", planted_bug::one_way_beat},
                                              {"deaf_leader", planted_bug::deaf_leader},
                                              {"silent_first", planted_bug::silent_first},
                                              {"forged_id", planted_bug::forged_id},
                                              {"trust_older", planted_bug::trust_older},
                                              {"trust_old", planted_bug::trust_old},
                                              {"stale_memory", planted_bug::stale_memory},
                                              {"never_retained", planted_bug::never_retained},
                                              {"pass_named", planted_bug::pass_named},
                                              {"leave_unsaved", planted_bug::leave_unsaved},
                                              {"leave_alone", planted_bug::leave_alone},
                                              {"leave_last", planted_bug::leave_last},
                                              {"tell_first", planted_bug::tell_first},
                                              {"count_kills", planted_bug::count_kills},
                                              {"exit_at_last", planted_bug::exit_at_last},
                                              {"no_fence_store", planted_bug::no_fence_store},
                                              {"volatile_rewind", planted_bug::volatile_rewind},
                                              {"keep_snapshots", planted_bug::keep_snapshots},
                                              {"no_term", planted_bug::no_term},
                                              {"stale_reader", planted_bug::stale_reader}};

/// Rules of several hosts: looked for there.
const std::set<planted_bug> of_hosts{planted_bug::one_way_beat,     planted_bug::deaf_leader,
                                     planted_bug::silent_first,     planted_bug::forged_id,
                                     planted_bug::strand_fenceless, planted_bug::leave_over};

/// Where to begin to look for those that take hundreds of seeds. No promise: another seed is as
/// good.
const std::map<planted_bug, std::uint64_t> rarely_found{
    {planted_bug::keep_snapshots, 312},    {planted_bug::no_timeline, 335},
    {planted_bug::untagged_status, 21764}, {planted_bug::stale_memory, 2159},
    {planted_bug::pass_named, 1423},       {planted_bug::stale_reader, 403},
    {planted_bug::undo_unpinned, 1828},    {planted_bug::leave_alone, 6332},
    {planted_bug::leave_over, 114508},     {planted_bug::leave_last, 500851}};

struct command_line {
  std::uint64_t seeds = 500;
  std::uint64_t seed = 0;
  bool trace = false;
  std::string bug = "none";
  bool all_bugs = false;
  bool is_quick = false;
  bool hosts = false;
};

volatile std::sig_atomic_t seed_in_progress = 0; // for a broken DLRUN_CHECK, which ends the process
volatile std::sig_atomic_t hosts_in_progress = 0;

void name_the_seed(int) {
  fmt::print(stderr, "in seed {}; replay: dlrun_simulate_cluster --seed {} --seeds 1 --trace{}\n",
             seed_in_progress, seed_in_progress, hosts_in_progress != 0 ? " --hosts" : "");
}

/// The first seed from `first` on at which an invariant breaks; nothing if none does.
std::optional<std::uint64_t> search(std::uint64_t first, std::uint64_t seeds, planted_bug bug, bool hosts,
                                    std::string& how) {
  for (auto seed = first; seed < first + seeds; ++seed) {
    const auto outcome = run_seed({seed, bug, nullptr, hosts});
    if (outcome.broken.empty()) continue;
    how = outcome.broken;
    return seed;
  }
  return std::nullopt;
}

/// Each bug must be found. 0 if all are.
int find_bugs(const command_line& wanted) {
  int missed = 0;
  for (const auto& [name, bug] : bugs) {
    if (bug == planted_bug::none) continue;
    const auto rare = rarely_found.find(bug);
    const auto first = wanted.is_quick && rare != rarely_found.end() ? rare->second : wanted.seed;
    std::string how;
    const auto seed = search(first, wanted.seeds, bug, wanted.hosts || of_hosts.contains(bug), how);
    if (seed)
      fmt::print("{:<15} found at seed {}: {}\n", name, *seed, how);
    else
      fmt::print("{:<15} NOT found in {} seeds from {}\n", name, wanted.seeds, first);
    missed += seed ? 0 : 1;
  }
  return missed == 0 ? 0 : 1;
}

int run_seeds(const command_line& wanted, planted_bug bug) {
  std::uint64_t broken = 0;
  std::uint64_t events = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (auto seed = wanted.seed; seed < wanted.seed + wanted.seeds; ++seed) {
    seed_in_progress = static_cast<std::sig_atomic_t>(seed);
    const auto outcome = run_seed({seed, bug, wanted.trace ? &std::cout : nullptr, wanted.hosts});
    events += outcome.events;
    if (outcome.broken.empty()) continue;
    ++broken;
    fmt::print("seed {}: {}\n  replay: dlrun_simulate_cluster --seed {} --seeds 1 --trace{}{}\n", seed,
               outcome.broken, seed, wanted.hosts ? " --hosts" : "",
               bug == planted_bug::none ? "" : " --bug " + wanted.bug);
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  fmt::print(stderr, "{} seeds from {}: {} broken, {} events, {:.1f} s\n", wanted.seeds, wanted.seed, broken,
             events, time.count());
  return broken == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  command_line wanted;
  CLI::App app{"Runs whole clusters under seeded faults and checks the invariants of each run."};
  app.add_option("--seeds", wanted.seeds, "how many seeds (default 500)");
  app.add_option("--seed", wanted.seed, "the first one (default 0)");
  app.add_flag("--hosts", wanted.hosts,
               "each seed's job on two to four hosts, which are lost, cut off and stopped too");
  app.add_flag("--trace", wanted.trace, "print what happens");
  app.add_option("--bug", wanted.bug, "break one rule on purpose (actors/protocol/planted_bug.hpp)");
  app.add_flag("--bugs", wanted.all_bugs, "break each of them in turn and say at which seed it is found");
  app.add_flag("--quick", wanted.is_quick, "with --bugs: begin near a seed that is known to show a rare one");
  CLI11_PARSE(app, argc, argv);
  const auto bug = bugs.find(wanted.bug);
  if (bug == bugs.end()) {
    fmt::print(stderr, "--bug {}: there is no such bug; see --help\n", wanted.bug);
    return 2;
  }
  wanted.hosts = wanted.hosts || of_hosts.contains(bug->second);
  hosts_in_progress = wanted.hosts ? 1 : 0;
  std::signal(SIGABRT, name_the_seed);
#ifndef DLRUN_PLANTED_BUGS
  if (wanted.all_bugs ||
      bug->second != planted_bug::none) { // the shipped cores have no bugs to switch on: another build has
    const auto mutant =
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "dlrun_simulate_mutant";
    execv(mutant.c_str(), argv);
    fmt::print(stderr, "{}: cannot be run; build the target dlrun_simulate_mutant\n", mutant.string());
    return 2;
  }
#endif
  if (wanted.all_bugs) return find_bugs(wanted);
  return run_seeds(wanted, bug->second);
}
