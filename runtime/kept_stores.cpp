#include "runtime/kept_stores.hpp"

#include "actors/common/job_journal.hpp"
#include "actors/common/patience.hpp"
#include "actors/coordinator/coordinator_journal.hpp"
#include "runtime/run_record.hpp"

namespace dlrun::runtime {

result<coordinator::store_book::stores> kept_stores(const std::filesystem::path& run_dir) {
  const auto record = read_record(run_dir);
  if (!record) return tl::unexpected(record.error());
  common::journal_place place = run_dir;
  if (*record && (*record)->revisions_size() > 0)
    place = common::journal_place_of(*(*record)->revisions().rbegin(), run_dir);
  const auto journal =
      common::try_patiently(common::patience_with_the_dying, {}, [&] { return common::read_journal(place); });
  if (!journal) return tl::unexpected(journal.error());
  return *journal ? coordinator::read_stores((*journal)->entries) : coordinator::store_book::stores{};
}

} // namespace dlrun::runtime
