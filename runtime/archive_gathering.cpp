#include "runtime/archive_gathering.hpp"

namespace dlrun::runtime {

result<std::optional<gathered_archive>> gather_archive(archive_source& source,
                                                       const std::set<version_id>& evaluated,
                                                       std::optional<snapshot_name> newest, archive_bug bug) {
  const bool is_read_first = is_planted(bug, archive_bug::journal_first);
  auto before = is_read_first ? source.journal() : journal_entries{};
  const auto listed = source.list();
  if (!listed) return tl::unexpected(listed.error());
  gathered_archive made{.chosen = choose_archived(*listed, evaluated, bug)};
  if (made.chosen.empty() || newest == made.chosen.back()) return std::nullopt;
  if (auto kept = source.keep(made.chosen); !kept) return tl::unexpected(kept.error());
  const auto journal = is_read_first ? std::move(before) : source.journal();
  if (!journal) return tl::unexpected(journal.error());
  auto archived = archive_journal(*journal, made.chosen, evaluated, bug);
  if (!archived) return tl::unexpected(archived.error());
  made.journal = std::move(*archived);
  for (const auto& its : *listed)
    for (const auto& name : made.chosen) made.bytes += its.at(name);
  return made;
}

} // namespace dlrun::runtime
