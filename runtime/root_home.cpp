#include "runtime/root_home.hpp"

#include "actors/common/job_journal.hpp"
#include "base/atomic_file.hpp"
#include "base/output_file.hpp"
#include "base/own_machine.hpp"
#include "base/random.hpp"
#include "base/sha256.hpp"
#include "base/utf8.hpp"
#include "job/run_layout.hpp"
#include "runtime/root_secrets.hpp"
#include "runtime/run_files.hpp"
#include "runtime/run_record.hpp"
#include "runtime/secret_file.hpp"
#include "security/sealed_text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <map>
#include <sstream>
#include <unistd.h>
#include <vector>

namespace dlrun::runtime {
namespace {

using persistence::etcd_owner;
using persistence::journal_write;
using persistence::register_watch;

/// Two requests, of the renewal and of who waits for it, within the 5 s of a hanging agent.
constexpr persistence::etcd_patience patience{std::chrono::milliseconds(500),
                                              std::chrono::milliseconds(2000)};
constexpr persistence::register_rules rules{};
/// Two renewals. Who acts for so long after a write has done so long before rules.expiry is over.
constexpr auto alone_after_write = 2 * rules.renewal;
/// A standby looks for as long as the job runs, and is to lead within a second.
constexpr auto look_period = std::chrono::milliseconds(200);
/// An etcd takes 1.5 MB at once.
constexpr std::size_t piece_bytes = std::size_t{512} << 10;
constexpr std::size_t pieces_at_once = 2;

// Entries.
constexpr auto record_key = "record"; ///< the names of its pieces, a line each
constexpr auto piece_prefix = "piece/";
constexpr auto secrets_key = "secrets"; ///< sealed
constexpr auto holder_key = "holder";   ///< for people
constexpr auto given_up_key = "given-up";
constexpr auto end_key = "given-up/end"; ///< of the run; read together with the one above
/// What the key of a list of hosts is made into.
constexpr auto sealing_purpose = "dlrun root.secrets 1";

std::string prefix_of(const common::etcd_ground& ground) { return ground.prefix + "/root"; }

result<std::unique_ptr<persistence::etcd_register>> open_register(const spec::JobSpec& spec) {
  const auto ground = std::get<common::etcd_ground>(common::journal_place_of(spec, {}));
  return persistence::etcd_register::make(ground.place, prefix_of(ground), patience);
}

result<std::optional<base::hmac_key>> sealing_key(const std::optional<hosts_plan>& hosts) {
  if (!hosts || !hosts->hosts.join().has_key_file()) return std::nullopt;
  const auto key = read_key_file(hosts->hosts.join().key_file());
  if (!key) return fail(key.error().code, "join.key_file: " + key.error().message);
  return key->derived(sealing_purpose);
}

/// Pieces of what may be larger than an etcd takes at once, by their names.
std::map<std::string, std::string> pieces_of(const std::string& bytes, std::vector<std::string>& names) {
  std::map<std::string, std::string> all;
  for (std::size_t at = 0; at < bytes.size(); at += piece_bytes) {
    auto piece = bytes.substr(at, piece_bytes);
    names.push_back(base::sha256_hex(piece));
    all[names.back()] = std::move(piece);
  }
  return all;
}

/// Nothing when a piece of it is missing.
std::optional<std::string> joined_record(const std::map<std::string, std::string>& entries) {
  const auto head = entries.find(record_key);
  if (head == entries.end()) return std::nullopt;
  std::istringstream names{head->second};
  std::string bytes;
  for (std::string name; std::getline(names, name);) {
    const auto piece = entries.find(piece_prefix + name);
    if (piece == entries.end()) return std::nullopt;
    bytes += piece->second;
  }
  return bytes;
}

/// Nothing where there is none, or something else.
std::optional<etcd_owner> last_root_of(const std::filesystem::path& run_dir) {
  std::ifstream stream(run_dir / root_number_file);
  std::string line;
  std::getline(stream, line);
  return persistence::etcd_owner_from(line);
}

/// Who asks again may be told something else.
bool no_etcd_answers(const error& why) { return why.code == error_code::timed_out; }

bool is_same_root(const std::optional<etcd_owner>& a, const std::optional<etcd_owner>& b) {
  return a && b && a->term == b->term && a->taker == b->taker;
}

std::string own_name(const std::filesystem::path& run_dir) {
  return fmt::format("process {} of host {} in {}", ::getpid(), base::host_name(), run_dir.string());
}

/// Copies for people, of a root that was not the last one.
void remove_specs(const std::filesystem::path& run_dir) {
  std::error_code ignored;
  std::vector<std::filesystem::path> old;
  for (const auto& entry : std::filesystem::directory_iterator{run_dir, ignored}) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("spec.") && name.ends_with(".yaml")) old.push_back(entry.path());
  }
  for (const auto& file : old) std::filesystem::remove(file, ignored);
}

} // namespace

result<std::optional<records::RunRecord>> root_home::peek(const spec::JobSpec& asked) {
  const auto kept = open_register(asked);
  if (!kept) return tl::unexpected(kept.error());
  const auto seen = (*kept)->look();
  if (!seen) return tl::unexpected(seen.error());
  const auto bytes = joined_record(seen->entries);
  return bytes ? record_of(*bytes) : std::nullopt;
}

result<bool> root_home::exists(const spec::JobSpec& spec) {
  if (!spec.cluster().journal().has_etcd()) return false;
  const auto kept = open_register(spec);
  if (!kept) return tl::unexpected(kept.error());
  const auto seen = (*kept)->look(given_up_key);
  if (!seen) return tl::unexpected(seen.error());
  return seen->owner.has_value();
}

result<std::unique_ptr<root_home>> root_home::open(const spec::JobSpec& spec,
                                                   const std::filesystem::path& run_dir,
                                                   const std::optional<hosts_plan>& hosts) {
  auto key = sealing_key(hosts);
  if (!key) return tl::unexpected(key.error());
  auto kept = open_register(spec);
  if (!kept) return tl::unexpected(kept.error());
  const auto prefix = spec.cluster().journal().etcd().prefix();
  return std::unique_ptr<root_home>{new root_home(std::move(*kept), run_dir, *key, prefix)};
}

result<std::shared_ptr<root_home>> root_home::begin(const spec::JobSpec& spec,
                                                    const std::filesystem::path& run_dir,
                                                    const std::optional<hosts_plan>& hosts,
                                                    const records::RunRecord& record) {
  if (!hosts || !spec.cluster().journal().has_etcd()) return nullptr;
  auto made = open(spec, run_dir, hosts);
  if (!made) return tl::unexpected(made.error());
  std::vector<std::string> names;
  const auto pieces = pieces_of(bytes_of(record), names);
  std::vector<journal_write> all;
  if (pieces.size() <= pieces_at_once) { // with the register itself: a root that dies leaves both or none
    for (const auto& [name, piece] : pieces) all.push_back({piece_prefix + name, piece});
    all.push_back({record_key, fmt::format("{}", fmt::join(names, "\n"))});
    for (const auto& name : names) (*made)->pieces_.insert(name);
  }
  if (auto taken = (*made)->take(std::nullopt, 1, std::move(all)); !taken)
    return fail(error_code::bad_usage, taken.error().message);
  if (auto noted = (*made)->note_number(); !noted) return tl::unexpected(noted.error());
  if (pieces.size() > pieces_at_once)
    if (auto kept = (*made)->keep_record(record); !kept) return tl::unexpected(kept.error());
  return std::shared_ptr<root_home>{std::move(*made)};
}

error root_home::held() const {
  std::string who = "no one knows where";
  if (const auto seen = register_->look(holder_key))
    if (const auto found = seen->entries.find(holder_key); found != seen->entries.end())
      who = base::printable(found->second, 200);
  return {error_code::in_use, fmt::format("the run under {}/ in etcd has a root, {}, which has just written "
                                          "there: 'dlrun stop' there ends it",
                                          prefix_, who)};
}

/// @returns all that is there, of a register that may be taken as it is there
result<persistence::etcd_register::sight> root_home::wait_until_free(const std::optional<etcd_owner>& ended,
                                                                     root_wait& wait) {
  register_watch watch{rules, ended};
  for (;; std::this_thread::sleep_for(look_period)) {
    if (!wait.goes_on()) return fail(error_code::interrupted, "it was asked to end");
    const auto asked = std::chrono::steady_clock::now();
    const auto seen = register_->look(given_up_key);
    if (!seen && !(no_etcd_answers(seen.error()) && wait.asks_again(seen.error())))
      return tl::unexpected(seen.error());
    if (!seen) continue;
    const auto verdict = watch.look(seen->owner, seen->entries.contains(given_up_key), asked,
                                    std::chrono::steady_clock::now());
    if (verdict == register_watch::verdict::held)
      if (auto why = held(); !wait.waits(why)) return tl::unexpected(std::move(why));
    if (verdict != register_watch::verdict::free) continue;
    const auto end = seen->entries.find(end_key);
    const auto next = wait.on_free(end == seen->entries.end() ? "" : end->second);
    if (next == root_wait::verdict::end) return fail(error_code::interrupted, "the run has ended");
    if (next == root_wait::verdict::wait) continue;
    auto all = register_->look();
    if (!all && !(no_etcd_answers(all.error()) && wait.asks_again(all.error()))) return all;
    if (all && all->owner == seen->owner) return all;
  }
}

/// @returns what was there before
result<persistence::etcd_register::sight> root_home::take_when_free(const std::optional<etcd_owner>& ended,
                                                                    root_wait& wait) {
  for (;;) {
    auto found = wait_until_free(ended, wait);
    if (!found) return found;
    const auto last = std::max(found->owner ? found->owner->term.value : 0, ended ? ended->term.value : 0);
    const auto taken = take(found->owner, last + 1, {});
    if (taken) return found;
    if (taken.error().code == error_code::fenced) { // another one wrote just now
      if (auto why = held(); !wait.waits(why)) return tl::unexpected(std::move(why));
    } else if (!no_etcd_answers(taken.error()) || !wait.asks_again(taken.error())) {
      return tl::unexpected(taken.error());
    }
  }
}

result<std::shared_ptr<root_home>> root_home::take_over(const spec::JobSpec& spec,
                                                        const std::filesystem::path& run_dir,
                                                        const std::optional<hosts_plan>& hosts,
                                                        root_wait& wait) {
  auto made = open(spec, run_dir, hosts);
  if (!made) return tl::unexpected(made.error());
  auto& home = **made;
  const auto ended = last_root_of(run_dir);
  const auto found = home.take_when_free(ended, wait);
  if (!found) return tl::unexpected(found.error());
  // Older data was put back into the etcd, or it is another one: what the folder has is newer.
  const bool is_behind = ended && (!found->owner || ended->term > found->owner->term);
  home.restored_ = found->owner && !is_behind && !is_same_root(found->owner, ended);
  for (const auto& [key, value] : found->entries)
    if (key.starts_with(piece_prefix)) home.pieces_.insert(key.substr(std::string_view{piece_prefix}.size()));
  if (home.restored_)
    if (auto done = home.restore(found->entries); !done) return tl::unexpected(done.error());
  if (is_behind)
    if (auto kept = home.keep_record_of_folder(); !kept) return tl::unexpected(kept.error());
  if (auto noted = home.note_number(); !noted) return tl::unexpected(noted.error());
  return std::shared_ptr<root_home>{std::move(*made)};
}

result<void> root_home::take(const std::optional<etcd_owner>& before, std::uint64_t number,
                             std::vector<journal_write> changes) {
  const etcd_owner self{{number}, base::random_number(), 0};
  changes.push_back({holder_key, own_name(run_dir_)});
  changes.push_back({given_up_key, std::nullopt});
  changes.push_back({end_key, std::nullopt});
  const auto begin = std::chrono::steady_clock::now();
  if (auto taken = register_->take(before, self, changes); !taken) return taken;
  self_ = self;
  written_ = begin;
  renewal_ = std::thread{[this] { renew(); }};
  return {};
}

/// This folder has all that was kept: the next root in it need not wait, nor restore anything.
result<void> root_home::note_number() const {
  return base::write_file_atomically(run_dir_ / root_number_file, persistence::to_text(self_) + "\n");
}

// ---- what the last root has kept

result<void> root_home::restore(const std::map<std::string, std::string>& entries) {
  if (const auto bytes = joined_record(entries)) {
    if (!record_of(*bytes))
      return fail(error_code::storage_damaged,
                  fmt::format("the run record under {}/root/ in etcd is not what a root wrote", prefix_));
    if (auto done = base::write_file_atomically(run_dir_ / run_layout::record, *bytes); !done) return done;
    remove_specs(run_dir_);
  }
  // It is of a root that was not the last one either.
  const auto report = base::end_of_links(run_dir_ / run_layout::report);
  std::error_code why;
  if (std::filesystem::remove(report, why); why)
    return fail(error_code::system, fmt::format("cannot remove '{}': {}", report.string(), why.message()));
  return restore_secrets(entries);
}

result<void> root_home::restore_secrets(const std::map<std::string, std::string>& entries) {
  root_secrets::forget(run_dir_);
  const auto sealed = entries.find(secrets_key);
  if (sealed == entries.end()) return {};
  const auto way_out =
      fmt::format("name the key with which the run was begun as join.key_file in the list of hosts, "
                  "or remove {}/root/entry/{} from the etcd to go on without what runs on other hosts",
                  prefix_, secrets_key);
  if (!key_)
    return fail(
        error_code::bad_usage,
        fmt::format("what proves this root to the hosts of the run lies encrypted in etcd: {}", way_out));
  const auto opened = security::unseal(*key_, prefix_, sealed->second);
  if (!opened)
    return fail(opened.error().code,
                fmt::format("what proves this root to the hosts of the run cannot be decrypted: {}; {}",
                            opened.error().message, way_out));
  return root_secrets::restore(run_dir_, opened->reveal());
}

// ---- what this one keeps

result<void> root_home::write(std::span<const journal_write> changes) {
  const auto begin = std::chrono::steady_clock::now();
  auto written = register_->write(changes);
  const std::scoped_lock lock{mutex_};
  if (written)
    written_ = std::max(written_, begin);
  else if (written.error().code == error_code::fenced)
    lost_ = written.error().message;
  return written;
}

result<void> root_home::keep_record(const records::RunRecord& record) {
  const std::scoped_lock lock{record_mutex_};
  std::vector<std::string> names;
  const auto pieces = pieces_of(bytes_of(record), names);
  std::vector<journal_write> last{{record_key, fmt::format("{}", fmt::join(names, "\n"))}};
  for (const auto& name : std::set<std::string>{pieces_})
    if (!pieces.contains(name)) last.push_back({piece_prefix + name, std::nullopt});
  for (const auto& [name, piece] : pieces) {
    if (pieces_.contains(name)) continue;
    const journal_write one{piece_prefix + name, piece};
    if (auto written = write(std::span(&one, 1)); !written) return written;
    pieces_.insert(name);
  }
  if (auto written = write(last); !written) return written;
  std::erase_if(pieces_, [&](const auto& name) { return !pieces.contains(name); });
  return {};
}

result<void> root_home::keep_record_of_folder() {
  const auto record = read_record(run_dir_);
  if (!record) return tl::unexpected(record.error());
  return *record ? keep_record(**record) : result<void>{};
}

result<void> root_home::keep_secrets(const std::string& bytes) {
  if (!key_) return forget_secrets();
  auto sealed = security::seal(*key_, prefix_, security::secret_text{bytes});
  if (!sealed) return tl::unexpected(sealed.error());
  const journal_write one{secrets_key, std::move(*sealed)};
  return write(std::span(&one, 1));
}

result<void> root_home::forget_secrets() {
  const journal_write one{secrets_key, std::nullopt};
  return write(std::span(&one, 1));
}

result<void> root_home::note_end(const std::string& how) {
  const journal_write one{end_key, how};
  return write(std::span(&one, 1));
}

// ---- signs of life

std::optional<std::string> root_home::lost() const {
  const std::scoped_lock lock{mutex_};
  return lost_;
}

bool root_home::is_alone() const {
  const std::scoped_lock lock{mutex_};
  return !over_ && !lost_ && std::chrono::steady_clock::now() - written_ < alone_after_write;
}

void root_home::renew() {
  for (;;) {
    {
      std::unique_lock lock{mutex_};
      if (changed_.wait_for(lock, rules.renewal, [this] { return over_ || lost_; })) return;
    }
    static_cast<void>(write({})); // while no etcd answers nobody takes over either
  }
}

void root_home::give_up() {
  {
    const std::scoped_lock lock{mutex_};
    over_ = true;
  }
  changed_.notify_all();
  if (!renewal_.joinable()) return; // it never had it, or gave it up before
  renewal_.join();
  const journal_write one{given_up_key, ""};
  static_cast<void>(register_->write(std::span(&one, 1))); // otherwise the next root waits for 5 s
}

root_home::~root_home() { give_up(); }

} // namespace dlrun::runtime
