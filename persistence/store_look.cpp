#include "persistence/store_look.hpp"

#include "persistence/database.hpp"
#include "persistence/store_codec.hpp"
#include "persistence/store_ground.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace dlrun::persistence {
namespace {

tl::unexpected<error> unreadable(const std::string& directory) {
  return fail(error_code::storage_damaged, fmt::format("what {} says of itself is unreadable", directory));
}

/// The step behind the log's last record; 0 when there is none.
step_id end_of_log(const database& of) {
  const auto records = of.iterate(table::log);
  records->SeekToLast();
  const auto last = records->Valid() ? keys::to_step(records->key().ToStringView()) : std::nullopt;
  return last ? step_id{last->value + 1} : step_id{0};
}

/// The newest snapshot; 0 when there is none.
step_id newest_snapshot(const database& of) {
  step_id newest{0};
  const std::string prefix{keys::snapshot_prefix};
  const auto facts = of.iterate(table::facts);
  for (facts->Seek(prefix); facts->Valid() && facts->key().starts_with(prefix); facts->Next())
    if (const auto snapshot = decode_snapshot(facts->key().ToStringView(), facts->value().ToStringView()))
      newest = std::max(newest, step_from(snapshot->version));
  return newest;
}

} // namespace

result<store_summary> look_at_store(const std::string& directory, std::uint64_t run) {
  const auto files = default_file_system();
  const auto known = read_identity(*files, directory);
  if (!known) return tl::unexpected(known.error());
  if (!*known) return fail(error_code::bad_usage, fmt::format("there is no store in {}", directory));
  if (auto own = check_is_of(**known, run, directory); !own) return tl::unexpected(own.error());
  if (auto unheld = database::check_unheld(*files, directory + "/log"); !unheld)
    return tl::unexpected(unheld.error());
  bool has_lost = false;
  const auto opened = database::open({.directory = directory + "/log",
                                      .files = files,
                                      .create = false,
                                      .strict = false,
                                      .read_only = true,
                                      .way_out = "move the folder away",
                                      .before_loss = [&has_lost] {
                                        has_lost = true;
                                        return result<void>{};
                                      }});
  if (!opened) return tl::unexpected(opened.error());
  const auto& store = **opened;
  const auto opener = store.get(table::facts, keys::opener);
  if (!opener) return tl::unexpected(opener.error());
  const auto history = store.get(table::facts, keys::history);
  if (!history) return tl::unexpected(history.error());
  const auto floor = store.get(table::facts, keys::floor);
  if (!floor) return tl::unexpected(floor.error());
  const auto who = decode_opener(opener->value_or(""));
  const auto timelines = decode_history(history->value_or(""));
  const auto lowest = decode_floor(floor->value_or(""));
  if (!who || !timelines || !lowest) return unreadable(directory);
  return store_summary{*who, timelines->empty() ? timeline_id{0} : timelines->back().timeline,
                       std::max(end_of_log(store), newest_snapshot(store)),
                       has_lost ? 0 : (*known)->under(boot_of_machine()), *lowest};
}

} // namespace dlrun::persistence
