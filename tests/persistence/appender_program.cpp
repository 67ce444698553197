// A process that appends to a store until it is killed. Arguments: folder, incarnation, process or
// power. Prints a line once it has opened, then one with each log end that was acknowledged.
#include "persistence/shard_store.hpp"
#include "tests/persistence/payload.hpp"

#include <fmt/format.h>
#include <string>
#include <unistd.h>

namespace {

bool say(const std::string& line) {
  return ::write(STDOUT_FILENO, line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

} // namespace

int main(int argc, char** argv) {
  using namespace dlrun;
  if (argc != 4) return 2;
  persistence::shard_store_options options;
  options.directory = argv[1];
  options.opener = {std::stoull(argv[2])};
  options.sync =
      std::string(argv[3]) == "power" ? persistence::sync_mode::power : persistence::sync_mode::process;
  options.inline_bytes_max = test::small_inline_bytes_max;
  options.segment_bytes = std::uint64_t{64} << 10;
  const auto store = persistence::shard_store::open(options);
  if (!store) {
    say(store.error().message + "\n");
    return 1;
  }
  if (!say("opened\n")) return 3;
  for (auto step = (*store)->next_step();; ++step.value) {
    const auto payload = test::payload_of(step, {0}, test::size_of(step));
    const auto extra = fmt::format("extra of {}", step);
    const persistence::log_record record{step, {0}, extra, payload};
    if (!(*store)->append(std::span(&record, 1)) || !say(fmt::format("{}\n", step.value + 1))) return 3;
    if (::getppid() == 1) return 4;
  }
}
