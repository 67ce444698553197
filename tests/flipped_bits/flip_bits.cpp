/// dlrun_flip_bits: bits flipped in memory, on the wire and on the disk of copies of PS shards.
/// tests/flipped_bits/README.md says what it checks.
#include "tests/data/files.hpp"
#include "tests/flipped_bits/flip_case.hpp"

#include <CLI/CLI.hpp>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/ostream.h>
#include <iostream>
#include <map>
#include <unistd.h>

namespace {

using dlrun::flipped_bits::all_places;
using dlrun::flipped_bits::flip_cases;
using dlrun::flipped_bits::outcome;
using dlrun::flipped_bits::place;
using dlrun::flipped_bits::trained_shard;
using dlrun::flipped_bits::verdict;

/// Where it is there: a busy disk would take longer for a case than all that is done in it.
constexpr const char* memory_disk = "/dev/shm";

struct command_line {
  std::uint64_t flips = 10'000;
  std::uint64_t seed = 1;
  bool is_told = false;
};

/// Of the case in hand, for who finds that the program has ended.
std::array<char, 64> in_hand{};

void tell_and_abort(int) {
  [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, in_hand.data(), std::strlen(in_hand.data()));
  std::_Exit(1);
}

command_line parse(int argc, char** argv) {
  command_line line;
  CLI::App app{
      "Flips a bit of a copy of a PS shard, again and again: caught or harmless, never a wrong model."};
  app.add_option("--flips", line.flips, "how many (default: 10000)");
  app.add_option("--seed", line.seed, "of the first; the next adds one (default: 1)");
  app.add_flag("--tell", line.is_told, "what came of each");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    std::exit(app.exit(problem));
  }
  return line;
}

void print_sums(const std::map<std::pair<place, verdict>, std::uint64_t>& sums) {
  const auto of = [&](place where, verdict what) {
    const auto found = sums.find({where, what});
    return found == sums.end() ? 0 : found->second;
  };
  for (const auto where : all_places)
    fmt::print("{}: {} caught, {} harmless, {} wrong\n", to_string(where), of(where, verdict::caught),
               of(where, verdict::harmless), of(where, verdict::wrong));
}

int run(const command_line& line) {
  const dlrun::test::temporary_folder folder;
  const trained_shard shard{folder.path() / "shard"};
  flip_cases cases{shard, folder.path() / "case"};
  std::map<std::pair<place, verdict>, std::uint64_t> sums;
  std::map<verdict, std::uint64_t> all;
  for (auto seed = line.seed; seed < line.seed + line.flips; ++seed) {
    fmt::format_to_n(in_hand.data(), in_hand.size() - 1, "seed {}: WRONG: the program ends\n{}", seed, '\0');
    const auto ended = cases.run(seed);
    ++sums[{ended.where, ended.what}];
    ++all[ended.what];
    if (ended.what == verdict::wrong)
      fmt::print("seed {}: WRONG: {}\n", seed, ended.how);
    else if (line.is_told)
      fmt::print("seed {}: {}: {}\n", seed, ended.what == verdict::caught ? "caught" : "harmless", ended.how);
  }
  print_sums(sums);
  fmt::print("{} of {} bits: {} caught, {} harmless, {} wrong; seeds {} to {}\n",
             all[verdict::caught] + all[verdict::harmless], line.flips, all[verdict::caught],
             all[verdict::harmless], all[verdict::wrong], line.seed, line.seed + line.flips - 1);
  return all[verdict::wrong] == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  const auto line = parse(argc, argv);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (std::filesystem::is_directory(memory_disk)) ::setenv("TMPDIR", memory_disk, 0);
  std::signal(SIGABRT, tell_and_abort);
  std::signal(SIGSEGV, tell_and_abort);
  return run(line);
}
