#include "persistence/folder_journal.hpp"

#include "persistence/database.hpp"
#include "persistence/format_file.hpp"
#include "persistence/store_codec.hpp"

namespace dlrun::persistence {

namespace {

/// Of format 1 the results of all evaluations were one value with the course (docs/formats.md).
constexpr folder_format journal_format{"dlrun-journal", 2, 1};
constexpr const char* journal_way_out =
    "nothing was changed: restore the folder from a copy, or start the job in another run folder";

constexpr std::size_t journal_buffer_bytes = std::size_t{4} << 20;
/// Beside the entries, which have a prefix, so that no key of the user can be taken for it.
constexpr const char* owner_key = "owner";
constexpr std::string_view entry_prefix = "entry/";

result<std::unique_ptr<database>> open_database(const std::string& directory,
                                                const std::shared_ptr<file_system>& files, bool create,
                                                bool read_only) {
  return database::open(
      {directory + "/log", files, create, true, read_only, journal_buffer_bytes, journal_way_out});
}

result<journal_contents> load(const database& from, const std::string& directory, bool is_new) {
  journal_contents contents;
  const auto owner = from.get(table::facts, owner_key);
  if (!owner) return tl::unexpected(owner.error());
  const auto decoded = decode_opener(owner->value_or(""));
  if (!decoded || (!*owner && !is_new))
    return fail(error_code::storage_damaged,
                fmt::format("{}: its owner is unreadable; {}", directory, journal_way_out));
  contents.owner = *decoded;
  const auto entries = from.iterate(table::facts);
  for (entries->SeekToFirst(); entries->Valid(); entries->Next())
    if (auto key = entries->key(); key.starts_with(entry_prefix)) {
      key.remove_prefix(entry_prefix.size());
      contents.entries.emplace(key.ToString(), entries->value().ToString());
    }
  if (auto whole = from.verify(*entries); !whole) return tl::unexpected(whole.error());
  return contents;
}

} // namespace

class folder_journal::implementation {
public:
  result<void> open(const journal_options& options) {
    const auto files = options.files != nullptr ? options.files : default_file_system();
    if (auto made = create_directories(*files, options.directory); !made) return made;
    const auto known = check_format(*files, options.directory, journal_format);
    if (!known) return tl::unexpected(known.error());
    auto opened = open_database(options.directory, files, !known->has_value(), false);
    if (!opened) return tl::unexpected(opened.error());
    database_ = std::move(*opened);
    // Before anything that an earlier version could not read.
    if (*known && **known != journal_format.number)
      if (auto now = write_format(*files, options.directory, journal_format); !now) return now;
    // One that died before it had written FORMAT never owned it: nobody was told that the journal
    // was open.
    if (auto owned = own(options, !known->has_value()); !owned) return owned;
    if (known->has_value()) return {};
    if (!contents_.empty())
      return fail(error_code::storage_damaged, fmt::format("{} holds data, but its file FORMAT is gone; {}",
                                                           options.directory, journal_way_out));
    return write_format(*files, options.directory, journal_format);
  }

  result<void> write(std::span<const journal_write> changes) {
    if (ended_) return tl::unexpected(*ended_);
    auto written = write_now(changes);
    if (!written && written.error().code != error_code::disk_full) ended_ = written.error();
    return written;
  }

  const std::map<std::string, std::string>& contents() const { return contents_; }

private:
  result<void> write_now(std::span<const journal_write> changes) {
    if (auto ready = recover(); !ready) return ready;
    rocksdb::WriteBatch batch;
    auto* const facts = database_->handle(table::facts);
    for (const auto& change : changes) {
      const auto key = std::string(entry_prefix) + change.key;
      if (change.value)
        batch.Put(facts, key, *change.value);
      else
        batch.Delete(facts, key);
    }
    if (auto written = database_->write(batch, true); !written) return written;
    apply(changes, contents_);
    return {};
  }

  result<void> own(const journal_options& options, bool is_new) {
    auto found = load(*database_, options.directory, is_new);
    if (!found) return tl::unexpected(found.error());
    if (!is_new && found->owner >= options.owner)
      return fail(error_code::fenced,
                  fmt::format("{} was opened by incarnation {}: incarnation {} comes too late",
                              options.directory, found->owner, options.owner));
    rocksdb::WriteBatch batch;
    batch.Put(database_->handle(table::facts), owner_key, encode_opener(options.owner));
    contents_ = std::move(found->entries);
    directory_ = options.directory;
    owner_ = options.owner;
    return database_->write(batch, true);
  }

  /// After a write for which there was no room.
  result<void> recover() {
    if (!database_->broken()) return {};
    if (auto opened = database_->recover(); !opened) return opened;
    const auto owner = database_->get(table::facts, owner_key);
    if (!owner) return tl::unexpected(owner.error());
    if (decode_opener(owner->value_or("")) == owner_) return {};
    return fail(error_code::fenced,
                fmt::format("{} was opened by another incarnation meanwhile", directory_));
  }

  std::unique_ptr<database> database_;
  std::string directory_;
  incarnation owner_;
  std::optional<error> ended_; ///< why there are no more writes
  std::map<std::string, std::string> contents_;
};

folder_journal::folder_journal(std::unique_ptr<implementation> parts)
    : parts_(std::move(parts)) {}
folder_journal::~folder_journal() = default;

result<std::unique_ptr<folder_journal>> folder_journal::open(const journal_options& options) {
  auto parts = std::make_unique<implementation>();
  if (auto opened = parts->open(options); !opened) return tl::unexpected(opened.error());
  return std::unique_ptr<folder_journal>(new folder_journal(std::move(parts)));
}

result<journal_contents> folder_journal::read(const std::string& directory,
                                              const std::shared_ptr<file_system>& files) {
  const auto through = files != nullptr ? files : default_file_system();
  const auto known = check_format(*through, directory, journal_format);
  if (!known) return tl::unexpected(known.error());
  if (!known->has_value())
    return fail(error_code::bad_usage, fmt::format("there is no journal in {}", directory));
  if (auto unheld = database::check_unheld(*through, directory + "/log"); !unheld)
    return tl::unexpected(unheld.error());
  const auto opened = open_database(directory, through, false, true);
  if (!opened) return tl::unexpected(opened.error());
  return load(**opened, directory, false);
}

const std::map<std::string, std::string>& folder_journal::contents() const { return parts_->contents(); }
result<void> folder_journal::write(std::span<const journal_write> changes) { return parts_->write(changes); }

} // namespace dlrun::persistence
