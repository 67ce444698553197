#include "runtime/journal_choice.hpp"

#include "actors/common/job_journal.hpp"
#include "base/random.hpp"
#include "job/choices.hpp"

#include <algorithm>

namespace dlrun::runtime {
namespace {

/// Changes of one write, at least: for what only the report needs.
constexpr std::size_t changes_min = 64;

/// The fences of all roles are written at once: those of workers, PS shards and the coordinator.
std::size_t most_changes(const spec::JobSpec& spec) {
  return std::max(changes_min,
                  job::workers_max_of(spec) + static_cast<std::size_t>(spec.cluster().ps_shards()) + 1);
}

common::etcd_ground ground_of(const spec::JobSpec& spec) {
  return std::get<common::etcd_ground>(common::journal_place_of(spec, {}));
}

/// For whoever starts a run these are all the same: nothing was begun, and this is to be changed.
tl::unexpected<error> refused(const error& why) { return fail(error_code::bad_usage, why.message); }

std::string own_prefix(const std::string& job) {
  return fmt::format("dlrun/{}-{:016x}", job, base::random_number());
}

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

} // namespace dlrun::runtime
