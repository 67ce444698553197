#include "runtime/journal_choice.hpp"

#include "base/random.hpp"
#include "job/choices.hpp"

#include <algorithm>

namespace dlrun::runtime {
namespace {

/// Changes of one write, at least: for what only the report needs.
constexpr std::size_t changes_min = 64;

/// An entry: which run has begun the journal.
constexpr auto run_key = "begun-by-run";

/// The fences of all roles are written at once: those of workers, PS shards, their keepers and the
/// coordinator.
std::size_t most_changes(const spec::JobSpec& spec) {
  const std::size_t ps_shards = spec.cluster().ps_shards();
  const auto keepers = ps_shards * (job::replicas_of(spec).value_or(2) - 1);
  return std::max(changes_min, job::workers_max_of(spec) + ps_shards + keepers + 1);
}

common::etcd_ground ground_of(const spec::JobSpec& spec) {
  return std::get<common::etcd_ground>(common::journal_place_of(spec, {}));
}

/// For whoever starts a run these are all the same: nothing was begun, and this is to be changed.
tl::unexpected<error> refused(const error& why) { return fail(error_code::bad_usage, why.message); }

std::string own_prefix(const std::string& job) {
  return fmt::format("dlrun/{}-{:016x}", job, base::random_number());
}

std::string text_of(std::uint64_t run) { return fmt::format("{:016x}", run); }

} // namespace

result<void> check_journal_here(const spec::JobSpec& spec) {
  if (!spec.cluster().journal().has_etcd()) return {};
  const auto client = persistence::etcd_client::make(ground_of(spec).place);
  if (!client) return tl::unexpected(client.error());
  return {};
}

result<void> settle_journal_again(spec::JobSpec& spec) {
  if (!spec.cluster().journal().has_etcd()) return {};
  const auto ground = ground_of(spec);
  const auto cluster = persistence::etcd_journal::probe(ground.place, ground.prefix, most_changes(spec));
  if (!cluster) return refused(cluster.error());
  spec.mutable_cluster()->mutable_journal()->mutable_etcd()->set_cluster_id(*cluster);
  return {};
}

result<void> settle_journal(spec::JobSpec& spec) {
  if (!spec.cluster().journal().has_etcd()) return {};
  auto& etcd = *spec.mutable_cluster()->mutable_journal()->mutable_etcd();
  if (etcd.prefix() == "auto") etcd.set_prefix(own_prefix(spec.name()));
  if (auto settled = settle_journal_again(spec); !settled) return settled;
  const auto ground = ground_of(spec);
  if (auto free = persistence::etcd_journal::check_free(ground.place, ground.prefix); !free)
    return refused(free.error());
  return {};
}

result<void> begin_journal(const spec::JobSpec& spec, std::uint64_t run) {
  if (!spec.cluster().journal().has_etcd()) return {};
  const auto ground = ground_of(spec);
  // Before all coordinators; of two runs one has it.
  const auto begun = persistence::etcd_journal::take({ground.place, ground.prefix, incarnation{0}});
  const persistence::journal_write number{run_key, text_of(run)};
  const auto written = begun ? (*begun)->write(std::span(&number, 1)) : tl::unexpected(begun.error());
  if (written) return {};
  if (written.error().code != error_code::fenced) return refused(written.error());
  return fail(error_code::bad_usage,
              fmt::format("another run has begun under {}/ in etcd just now: name another "
                          "cluster.journal.etcd.prefix, or leave it out",
                          ground.prefix));
}

result<void> check_journal_is_of(const common::journal_place& place, std::uint64_t run) {
  const auto* const etcd = std::get_if<common::etcd_ground>(&place);
  if (etcd == nullptr) return {};
  const auto found = common::read_journal(place);
  if (!found) return tl::unexpected(found.error());
  if (!*found) return {}; // lost, or the run died before it was there
  const auto begun = (*found)->entries.find(run_key);
  if (begun == (*found)->entries.end() || begun->second == text_of(run)) return {};
  return fail(
      error_code::bad_usage,
      fmt::format("what etcd has under {0}/ is the journal of another run, which has begun there since "
                  "that of this one was removed: when that run is not wanted any more, remove it with "
                  "'etcdctl del --prefix {0}/', and this one goes on from its PS shards' stores",
                  etcd->prefix));
}

} // namespace dlrun::runtime
