#include "actors/keeper/store_mirror.hpp"

#include "actors/common/history_conversion.hpp"
#include "base/crc32c.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <span>
#include <utility>
#include <vector>

namespace dlrun::keeper {
namespace {

using protocol::copy_kind;
using protocol::copy_part;

/// As persistence keeps it with a snapshot.
constexpr std::uint64_t snapshot_extra_bytes_max = std::uint64_t{16} << 20;
constexpr std::uint64_t read_bytes_max = std::uint64_t{1} << 20;

result<void> refuse(const copy_part& part, const std::string& why) {
  return fail(error_code::protocol, fmt::format("part {} of stream {} of ps_shard {}: {}", part.number,
                                                part.stream, part.role.index, why));
}

bool is_whole(const copy_part& part) { return part.offset + part.bytes == part.total_bytes; }

bool is_of_one_piece(const copy_part& one, const copy_part& other) {
  return one.kind == other.kind && one.timeline == other.timeline && one.version == other.version &&
         one.content_bytes == other.content_bytes && one.total_bytes == other.total_bytes;
}

/// What can be checked before anything is kept of it.
result<void> check_part(const copy_part& part, std::uint64_t had) {
  const bool fits = part.offset == had && part.offset <= part.total_bytes &&
                    part.content_bytes <= part.total_bytes && part.bytes <= part.total_bytes - part.offset;
  return fits ? result<void>{} : refuse(part, "it does not go on where the one before ended");
}

/// Of a part, what is of the content, and what is kept with it.
struct halves {
  std::span<const std::byte> content, rest;
};

halves split(const copy_part& part, std::span<const std::byte> bytes) {
  const auto left = part.content_bytes - std::min(part.content_bytes, part.offset);
  const auto count = std::min<std::uint64_t>(left, bytes.size());
  return {bytes.first(count), bytes.subspan(count)};
}

std::uint32_t checksum_begin(const copy_part& part) {
  return protocol::piece_checksum(part.kind, part.version, part.content_bytes, part.total_bytes);
}

/// Whether a snapshot, read back from its file, is what `last`, its last part, says.
result<void> compare(const copy_part& last, result<persistence::snapshot_reader> written) {
  constexpr std::string_view other = "its file is not what was sent: ";
  if (!written) return refuse(last, fmt::format("{}{}", other, written.error().message));
  auto crc32c = checksum_begin(last);
  std::vector<std::byte> bytes(std::min(read_bytes_max, last.content_bytes));
  for (std::uint64_t left = last.content_bytes; left > 0;) {
    const auto had = written->read(std::span(bytes).first(std::min<std::uint64_t>(left, bytes.size())));
    if (!had) return refuse(last, fmt::format("{}{}", other, had.error().message));
    if (*had == 0) break;
    crc32c = base::crc32c_extend(crc32c, std::span(bytes).first(*had));
    left -= *had;
  }
  const auto& info = written->info();
  const bool is_of_it = info.version == last.version && info.timeline == last.timeline &&
                        info.payload_bytes == last.content_bytes;
  if (is_of_it && base::crc32c_extend(crc32c, written->metadata()) == last.piece_crc32c) return {};
  return refuse(last, fmt::format("{}its checksum is wrong", other));
}

/// All of it: the reader verifies it as it reads.
result<void> read_through(const persistence::shard_store& store, version_id version) {
  auto reader = store.open_snapshot(version);
  if (!reader) return tl::unexpected(reader.error());
  std::vector<std::byte> bytes(std::min(read_bytes_max, reader->info().payload_bytes));
  for (;;) {
    const auto had = reader->read(bytes);
    if (!had) return tl::unexpected(had.error());
    if (*had == 0) return {};
  }
}

/// Whether the rest can be appended to it. What is damaged of its end, or of its snapshots, comes
/// again.
result<void> make_whole(persistence::shard_store& store, const std::string& directory) {
  if (store.found().has_gap)
    return fail(error_code::storage_damaged,
                fmt::format("{} lacks a record in the middle, which is unreadable", directory));
  for (const auto& one : store.snapshots()) {
    auto read = read_through(store, one.version);
    if (read) continue;
    // One that is kept below the floor is never sent again, so the copy begins anew.
    if (read.error().code != error_code::storage_damaged || one.version < store.floor()) return read;
    if (auto dropped = store.discard_snapshot(one.version); !dropped) return dropped;
  }
  return {};
}

void append_to(std::string& text, std::span<const std::byte> bytes) {
  text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

/// No room, or not this time: another stream may do better.
bool can_be_tried_again(const error& why) {
  return why.code == error_code::disk_full || why.code == error_code::limit_exceeded ||
         why.code == error_code::protocol || why.code == error_code::bad_usage ||
         why.code == error_code::in_use;
}

timeline_id timeline_of(const persistence::shard_store& store) {
  const auto history = store.history();
  return history.empty() ? timeline_id{0} : history.back().timeline;
}

bool has_snapshot(const persistence::shard_store& store, version_id version) {
  const auto all = store.snapshots();
  return std::ranges::any_of(all, [&](const auto& one) { return one.version == version; });
}

} // namespace

result<std::optional<protocol::copy_standing>> store_mirror::take(const copy_part& part,
                                                                  const part_bytes& bytes) {
  if (!protocol::is_sealed(part)) // nothing of it can be believed, so the stream begins anew
    return failure_.empty() ? give_up("a part's fields are not what was sent") : std::nullopt;
  if (part.incarnation < shard_) return std::nullopt; // R25: an older start of it commits no more
  const bool begins = part.incarnation > shard_ || part.stream > stream_;
  if (begins) {
    if (part.kind != copy_kind::hello || part.number != 0) return std::nullopt; // its begin was lost
    drop_pieces();
    failure_.clear();
    shard_ = part.incarnation;
    stream_ = part.stream;
    taken_ = 0;
  }
  if (part.stream != stream_ || part.number != taken_ || !failure_.empty()) return std::nullopt;
  if (const auto done = follow(part, bytes); !done) {
    if (!can_be_tried_again(done.error())) return tl::unexpected(done.error());
    return give_up(done.error().message);
  }
  ++taken_;
  return standing();
}

/// Of this stream nothing more is taken.
std::optional<protocol::copy_standing> store_mirror::give_up(std::string why) {
  drop_pieces();
  failure_ = std::move(why);
  return store_ ? std::optional(standing()) : std::nullopt;
}

result<void> store_mirror::follow(const copy_part& part, const part_bytes& bytes) {
  if (auto opened = open(part.incarnation); !opened) return opened;
  switch (part.kind) {
  case copy_kind::hello: return {};
  case copy_kind::rewind: return go_back(part);
  case copy_kind::floor: return drop_below(part);
  case copy_kind::record:
  case copy_kind::snapshot: return add(part, bytes);
  }
  return refuse(part, "its kind is not known");
}

result<void> store_mirror::open(dlrun::incarnation opener) {
  if (store_) return {};
  auto options = options_.store;
  options.opener = opener;
  auto opened = persistence::shard_store::open(options);
  if (!opened) return tl::unexpected(opened.error());
  if (auto whole = make_whole(**opened, options.directory); !whole) return whole;
  store_ = std::move(*opened);
  return {};
}

bool store_mirror::set_aside_damaged(const error& why) const {
  if (store_ || why.code != error_code::storage_damaged) return false;
  const std::filesystem::path folder{options_.store.directory};
  const std::filesystem::path aside{options_.store.directory + ".damaged"};
  std::error_code failed;
  std::filesystem::remove_all(aside, failed);
  std::filesystem::rename(folder, aside, failed);
  return !failed;
}

// ---- records and snapshots

result<void> store_mirror::add(const copy_part& part, const part_bytes& bytes) {
  auto& in_hand = piece_of(part);
  if (auto fine = check_part(part, in_hand.had); !fine) return fine;
  if (part.offset == 0) {
    if (auto begun = begin(part); !begun) return begun;
  } else if (!is_of_one_piece(part, in_hand.head)) {
    return refuse(part, "it is of another piece than the one before");
  }
  const auto come = bytes();
  if (!come) return refuse(part, "its bytes have not come: " + come.error().message);
  if (come->size() != part.bytes) return refuse(part, "it has another number of bytes");
  if (!protocol::is_sealed(part)) return refuse(part, "its fields have changed meanwhile");
  if (base::crc32c(*come) != part.crc32c) return refuse(part, "its checksum is wrong");
  const auto [content, rest] = split(part, *come);
  in_hand.had += come->size();
  if (part.kind == copy_kind::snapshot) {
    if (auto added = add_to_snapshot(content, rest); !added) return added;
  } else {
    append_to(in_hand.bytes, *come);
  }
  return is_whole(part) ? finish(part) : result<void>{};
}

result<void> store_mirror::begin(const copy_part& part) {
  auto& in_hand = piece_of(part);
  in_hand.head = part;
  in_hand.bytes.clear();
  if (part.timeline != timeline_of(*store_)) return refuse(part, "it is of another timeline");
  if (part.kind == copy_kind::record) {
    if (part.total_bytes > options_.record_bytes_max) return refuse(part, "the record is too large");
    if (step_from(part.version) > store_->next_step()) return refuse(part, "steps before it are missing");
    in_hand.bytes.reserve(part.total_bytes); // that of the record before, as a rule
    return {};
  }
  if (part.total_bytes - std::min(part.content_bytes, part.total_bytes) > snapshot_extra_bytes_max)
    return refuse(part, "too much is kept with the snapshot");
  if (has_snapshot(*store_, part.version)) return refuse(part, "that snapshot is there");
  auto begun = store_->begin_snapshot(part.version, part.timeline);
  if (!begun) return tl::unexpected(begun.error());
  writer_.emplace(std::move(*begun));
  return {};
}

result<void> store_mirror::add_to_snapshot(std::span<const std::byte> content,
                                           std::span<const std::byte> rest) {
  if (!content.empty())
    if (auto written = writer_->write(content); !written) return written;
  append_to(snapshot_.bytes, rest);
  return {};
}

result<void> store_mirror::finish(const copy_part& part) {
  if (part.kind == copy_kind::record) return append(part);
  const auto written = writer_->commit(
      std::as_bytes(std::span(snapshot_.bytes)),
      [&](result<persistence::snapshot_reader> file) { return compare(part, std::move(file)); });
  snapshot_ = {};
  writer_.reset();
  if (!written) return tl::unexpected(written.error());
  return {};
}

/// What is written is compared as a whole: a part may have changed since its checksum was right.
/// Nothing is done for a step that is there: it has the same bits (R1). The memory stays for the
/// next record.
result<void> store_mirror::append(const copy_part& part) {
  record_.had = 0;
  const auto all = std::string_view(record_.bytes);
  if (all.size() != part.total_bytes) return refuse(part, "the record has another number of bytes");
  const auto content = std::as_bytes(std::span(all.substr(0, part.content_bytes)));
  const auto rest = all.substr(part.content_bytes);
  const auto content_crc32c = base::crc32c(content);
  const auto whole = base::crc32c_combine(checksum_begin(part), content_crc32c, content.size());
  if (base::crc32c_extend(whole, std::as_bytes(std::span(rest))) != part.piece_crc32c)
    return refuse(part, "the record is not what was sent: its checksum is wrong");
  const auto step = step_from(part.version);
  if (step < store_->next_step()) return {};
  const persistence::log_record record{step, part.timeline, rest, content, content_crc32c};
  if (record.extra.size() > persistence::extra_bytes_max) return refuse(part, "too much is kept with it");
  return store_->append(std::span(&record, 1));
}

void store_mirror::drop_pieces() {
  record_ = snapshot_ = {};
  writer_.reset();
}

result<void> store_mirror::drop_below(const copy_part& part) {
  if (writer_ && snapshot_.head.version < part.version)
    return refuse(part, "a snapshot below it is on its way");
  return store_->drop_below(part.version, part.has_kept ? std::optional(part.kept) : std::nullopt);
}

result<void> store_mirror::go_back(const copy_part& part) {
  drop_pieces();
  if (!protocol::is_valid(part.history) || protocol::newest_timeline(part.history) != part.timeline)
    return refuse(part, "its history is none");
  if (timeline_of(*store_) == part.timeline) return {};
  return store_->rewind(common::history_to_store(part.history), part.version);
}

// ---- what there is

protocol::copy_standing store_mirror::standing() const {
  protocol::copy_standing now{.role = options_.role,
                              .incarnation = options_.self,
                              .shard = shard_,
                              .stream = stream_,
                              .taken = taken_,
                              .timeline = timeline_of(*store_),
                              .end = {store_->next_step().value},
                              .floor = store_->floor(),
                              .restorable = {{{0}, {0}}},
                              .snapshots = {},
                              .record_bytes = record_.had,
                              .snapshot_bytes = snapshot_.had,
                              .failure = failure_};
  for (const auto& range : store_->restorable()) protocol::insert(now.restorable, range);
  for (const auto& one : store_->snapshots()) now.snapshots.push_back(one.version);
  protocol::seal(now);
  return now;
}

} // namespace dlrun::keeper
