// Bytes a second of a PS shard's log, in both sync modes, beside plain appends to a file on the
// same disk in the same run; and of its replay. Half a GB each, in the folder for temporary files
// (TMPDIR).
//   build/release/bin/log_throughput
#include "base/crc32c.hpp"
#include "persistence/shard_store.hpp"

#include <algorithm>
#include <benchmark/benchmark.h>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

using namespace dlrun;

constexpr std::int64_t bytes_each = std::int64_t{512} << 20;

/// Removed at the end.
class folder {
public:
  folder() {
    auto pattern = (std::filesystem::temp_directory_path() / "dlrun-log-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    path = pattern;
  }
  ~folder() { std::filesystem::remove_all(path); }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;

  std::string path;
};

/// Gradients do not repeat, and neither does this.
std::vector<std::byte> make_payload(benchmark::State& state) {
  std::vector<std::byte> payload(static_cast<std::size_t>(state.range(0)));
  std::uint64_t random = 1;
  for (auto& byte : payload)
    byte = static_cast<std::byte>((random = random * 6364136223846793005U + 1) >> 56);
  return payload;
}

std::unique_ptr<persistence::shard_store> open_store(const folder& where, std::uint64_t opener,
                                                     persistence::sync_mode sync) {
  persistence::shard_store_options options;
  options.directory = where.path + "/shard";
  options.opener = {opener};
  options.sync = sync;
  return persistence::shard_store::open(options).value();
}

void append_one(persistence::shard_store& store, std::span<const std::byte> payload) {
  const persistence::log_record record{store.next_step(), {0}, "", payload};
  if (!store.append(std::span(&record, 1))) std::abort();
}

void plain_file(benchmark::State& state, bool sync) {
  const auto payload = make_payload(state);
  const folder where;
  const int fd = ::open((where.path + "/plain").c_str(), O_WRONLY | O_CREAT, 0600);
  for (auto _ : state) {
    if (::write(fd, payload.data(), payload.size()) != static_cast<ssize_t>(payload.size())) std::abort();
    if (sync && ::fdatasync(fd) != 0) std::abort();
  }
  ::close(fd);
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void log(benchmark::State& state, persistence::sync_mode sync) {
  const auto payload = make_payload(state);
  const folder where;
  const auto store = open_store(where, 1, sync);
  for (auto _ : state) append_one(*store, payload);
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

/// Reads a log that is in the page cache, record after record in parts of 256 KiB, verified, as
/// replay does.
void replay(benchmark::State& state) {
  const auto payload = make_payload(state);
  const folder where;
  auto store = open_store(where, 1, persistence::sync_mode::process);
  const auto steps = static_cast<std::uint64_t>(bytes_each / state.range(0));
  for (std::uint64_t step = 0; step < steps; ++step) append_one(*store, payload);
  store.reset();
  store = open_store(where, 2, persistence::sync_mode::process);
  std::vector<std::byte> part(std::size_t{256} << 10);
  for (auto _ : state)
    for (std::uint64_t step = 0; step < steps; ++step) {
      const auto reader = store->open_payload({step});
      if (!reader) std::abort();
      const auto bytes = reader->head().payload_bytes;
      std::uint32_t whole = 0;
      for (std::uint64_t begin = 0; begin < bytes; begin += part.size()) {
        const auto into = std::span{part}.first(std::min<std::uint64_t>(part.size(), bytes - begin));
        const auto crc = reader->read(begin, into);
        if (!crc) std::abort();
        whole = base::crc32c_combine(whole, *crc, into.size());
      }
      if (!reader->check(whole)) std::abort();
    }
  state.SetBytesProcessed(state.iterations() * bytes_each);
}

/// Everything that comes before a shard can replay: recovery, verification, syncs.
void open_again(benchmark::State& state) {
  const auto payload = make_payload(state);
  const folder where;
  auto store = open_store(where, 1, persistence::sync_mode::process);
  const auto steps = static_cast<std::uint64_t>(bytes_each / 4 / state.range(0));
  for (std::uint64_t step = 0; step < steps; ++step) append_one(*store, payload);
  std::uint64_t opener = 1;
  for (auto _ : state) {
    store.reset();
    store = open_store(where, ++opener, persistence::sync_mode::process);
  }
  state.SetBytesProcessed(state.iterations() * bytes_each / 4);
}

void checksum(benchmark::State& state) {
  const auto payload = make_payload(state);
  for (auto _ : state) benchmark::DoNotOptimize(base::crc32c(payload));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

/// Each size with as many iterations as make half a GB.
void register_sizes(const std::string& name, const std::function<void(benchmark::State&)>& body) {
  for (const std::int64_t bytes : {std::int64_t{64} << 10, std::int64_t{1} << 20, std::int64_t{16} << 20})
    benchmark::RegisterBenchmark(name.c_str(), body)
        ->Arg(bytes)
        ->Iterations(bytes_each / bytes)
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond);
}

const bool registered = [] {
  using persistence::sync_mode;
  register_sizes("plain file, process", [](auto& state) { plain_file(state, false); });
  register_sizes("log, process", [](auto& state) { log(state, sync_mode::process); });
  register_sizes("plain file, power", [](auto& state) { plain_file(state, true); });
  register_sizes("log, power", [](auto& state) { log(state, sync_mode::power); });
  return true;
}();

BENCHMARK(replay)->Arg(64 << 10)->Arg(1 << 20)->Arg(16 << 20)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(open_again)->Arg(64 << 10)->Arg(1 << 20)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(checksum)->Arg(64 << 10)->Arg(16 << 20);

} // namespace
