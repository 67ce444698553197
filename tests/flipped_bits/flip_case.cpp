#include "tests/flipped_bits/flip_case.hpp"

#include "actors/ps_shard/threaded_store.hpp"
#include "persistence/store_identity.hpp"
#include "tests/flipped_bits/copy_pair.hpp"
#include "tests/flipped_bits/flipping_file_system.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <optional>
#include <random>
#include <utility>

namespace dlrun::flipped_bits {
namespace {

namespace fs = std::filesystem;

constexpr incarnation promoted_start{100};

/// Without those that are empty.
std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> all;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.file_size() > 0) all.push_back(entry.path());
  std::ranges::sort(all);
  return all;
}

void flip_in(const fs::path& path, std::uint64_t bit) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  const auto at = bit % (8 * fs::file_size(path));
  file.seekg(static_cast<std::streamoff>(at / 8));
  const auto byte = file.get();
  file.seekp(static_cast<std::streamoff>(at / 8));
  file.put(static_cast<char>(byte ^ (1 << (at % 8))));
}

/// What differs; "" when nothing does. @param unreadable whether damage was found
std::string difference(const persistence::shard_store& store, const persistence::shard_store& copy,
                       bool& unreadable) {
  for (const auto& range : store.logged())
    for (auto step = step_from(range.first); step < step_from(range.last); ++step.value) {
      const auto right = store.read(step);
      const auto there = copy.read(step);
      if (!there && there.error().code == error_code::storage_damaged) {
        unreadable = true;
        continue;
      }
      const bool is_same =
          right && there && right->payload == there->payload && right->head.extra == there->head.extra;
      if (!is_same) return fmt::format("step {} is another one in the copy", step);
    }
  for (const auto& one : store.snapshots()) {
    const auto content = [&](const persistence::shard_store& of) -> result<std::vector<std::byte>> {
      auto reader = of.open_snapshot(one.version);
      if (!reader) return tl::unexpected(reader.error());
      std::vector<std::byte> bytes(reader->info().payload_bytes + 1);
      const auto had = reader->read(bytes);
      if (!had) return tl::unexpected(had.error());
      bytes.resize(*had);
      bytes.insert(bytes.end(), reader->metadata().begin(), reader->metadata().end());
      return bytes;
    };
    const auto there = content(copy);
    if (!there && there.error().code == error_code::storage_damaged)
      unreadable = true;
    else if (!there || *there != content(store).value())
      return fmt::format("the snapshot of version {} is another one in the copy", one.version);
  }
  return "";
}

} // namespace

flip_cases::flip_cases(const trained_shard& shard, fs::path folder)
    : shard_(shard)
    , folder_(std::move(folder)) {}

persistence::shard_store_options flip_cases::store_options(std::shared_ptr<bit_flip> flip,
                                                           std::uint64_t seed) const {
  persistence::shard_store_options made;
  made.directory = (folder_ / "ps_shard-0").string();
  made.files = flipping_file_system(std::move(flip));
  made.inline_bytes_max = inline_bytes_max[seed % std::size(inline_bytes_max)];
  made.segment_bytes = std::uint64_t{32} << 10;
  return made;
}

void flip_cases::begin(std::size_t copy) const {
  fs::remove_all(folder_);
  fs::create_directories(folder_);
  const auto& from = shard_.copies()[copy].folder;
  if (!from.empty()) fs::copy(from, folder_ / "ps_shard-0", fs::copy_options::recursive);
}

outcome flip_cases::run(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto where = all_places[random() % all_places.size()];
  const auto copy = random() % shard_.copies().size();
  const auto bit = random();
  if (where == place::on_disk) return flip_in_file(seed, std::max<std::size_t>(copy, 1), bit);
  return flip_on_the_way(seed, where, copy, bit);
}

/// In a run that nothing disturbs.
std::uint64_t flip_cases::opportunities(std::size_t copy, place where) {
  const auto [found, is_new] = undisturbed_.try_emplace(copy);
  if (!is_new) return found->second.opportunities(where);
  const std::shared_ptr<bit_flip> counted{&found->second, [](bit_flip*) {}};
  begin(copy);
  copy_pair pair{{&shard_.store(), store_options(counted, 0), counted}};
  DLRUN_CHECK(pair.run() && pair.noticed().empty(), "an undisturbed copy gets nowhere: {}", pair.noticed());
  return found->second.opportunities(where);
}

/// What RocksDB writes it writes when it gets to it: an opportunity that does not come is replaced
/// by an earlier one.
outcome flip_cases::flip_on_the_way(std::uint64_t seed, place where, std::size_t copy, std::uint64_t bit) {
  std::mt19937_64 random(seed + 1);
  for (auto when = random() % opportunities(copy, where);; when /= 2) {
    const auto flip = std::make_shared<bit_flip>(flip_plan{where, when, bit});
    begin(copy);
    auto ended = fill_and_promote(flip, seed, where,
                                  fmt::format("{}, number {}, copy {}", to_string(where), when, copy));
    if (flip->is_done()) return ended;
    DLRUN_CHECK(when > 0, "nothing is flipped in {}", to_string(where));
  }
}

/// Its keeper starts on it, or a PS shard does.
outcome flip_cases::flip_in_file(std::uint64_t seed, std::size_t copy, std::uint64_t bit) {
  begin(copy);
  const auto files = files_in(folder_ / "ps_shard-0");
  const auto& file = files[bit % files.size()];
  const auto what = fmt::format("{}, copy {}", fs::relative(file, folder_).string(), copy);
  const auto none = std::make_shared<bit_flip>();
  const auto directory = (folder_ / "ps_shard-0").string();
  const auto known = persistence::read_identity(*persistence::default_file_system(), directory).value();
  const auto identity = known.value().number;
  flip_in(file, bit / files.size());
  if (seed % 2 == 0) return fill_and_promote(none, seed, place::on_disk, what);
  return promote(none, shard_.copies()[copy], identity, {place::on_disk, verdict::harmless, what});
}

outcome flip_cases::fill_and_promote(std::shared_ptr<bit_flip> flip, std::uint64_t seed, place where,
                                     const std::string& what) const {
  outcome so_far{where, verdict::harmless, what};
  std::uint64_t identity = 0;
  {
    copy_pair pair{{&shard_.store(), store_options(flip, seed), flip}};
    const bool is_whole = pair.run();
    if (!pair.noticed().empty()) so_far = {where, verdict::caught, what + ": " + pair.noticed().front()};
    if (!is_whole) return {where, verdict::wrong, so_far.how + "; it is never whole again"};
    bool is_unreadable = false;
    const auto other = difference(shard_.store(), pair.copy(), is_unreadable);
    if (!other.empty()) return {where, verdict::wrong, so_far.how + "; " + other};
    if (is_unreadable) so_far = {where, verdict::caught, so_far.how + "; read back, it is damaged"};
    identity = pair.copy().identity();
  }
  const kept_copy all{{}, shard_.copies().back().timeline, {shard_.store().next_step().value}};
  return promote(std::move(flip), all, identity, std::move(so_far));
}

outcome flip_cases::promote(std::shared_ptr<bit_flip> flip, const kept_copy& acknowledged,
                            std::uint64_t identity, outcome so_far) const {
  const auto job = shard_.job_in(folder_);
  auto opened = ps_shard::threaded_store::open({.job = job,
                                                .shard = {0},
                                                .opener = promoted_start,
                                                .log = std::make_shared<spdlog::logger>("flipped bits"),
                                                .patience = {},
                                                .files = flipping_file_system(std::move(flip))});
  if (!opened && opened.error().code == error_code::storage_damaged)
    return {so_far.where, verdict::caught, so_far.how + "; it is refused: " + opened.error().message};
  if (!opened) return {so_far.where, verdict::wrong, so_far.how + "; " + opened.error().message};
  auto numbers = ps_shard::shard_parameters::create_empty(job, {0}).value();
  const auto made = (*opened)->restore_newest(numbers);
  if (!made) return {so_far.where, verdict::wrong, so_far.how + "; " + made.error().message};
  const auto timeline = protocol::newest_timeline(made->history);
  if (shard_.digests_of(timeline, made->version) != test::training_shard::digests_of(numbers))
    return {
        so_far.where, verdict::wrong,
        fmt::format("{}; version {} of timeline {} is another model", so_far.how, made->version, timeline)};
  const bool is_renewed = (*opened)->standing().identity != identity;
  if (is_renewed) so_far = {so_far.where, verdict::caught, so_far.how + "; it has another identity"};
  const bool is_all = timeline == acknowledged.timeline && made->version == acknowledged.end;
  if (is_all || is_renewed) return so_far;
  return {so_far.where, verdict::wrong,
          fmt::format("{}; it has version {} of timeline {}, and says nothing", so_far.how, made->version,
                      timeline)};
}

} // namespace dlrun::flipped_bits
