#include "actors/coordinator/coordinator_disk.hpp"

#include "actors/coordinator/coordinator_journal.hpp"

#include <algorithm>

namespace dlrun::coordinator {

void coordinator_disk::open(const std::shared_ptr<const common::job_facts>& job, incarnation owner,
                            std::function<void(const result<journaled_job>&)> done) {
  opener_.run([this, post = post_, job, owner, watcher = watcher(), done = std::move(done)] {
    const auto place = common::journal_place_of(job->spec, job->run_dir);
    const auto opened = common::job_journal::open(place, owner, watcher);
    const bool has_begun = std::holds_alternative<common::etcd_ground>(place) && owner > incarnation{1};
    const auto journaled = opened ? find_job((*opened)->entries(), job->run_dir, job->ps_shards(), has_begun)
                                  : result<journaled_job>{tl::unexpected(opened.error())};
    post([this, journal = opened.value_or(nullptr), journaled, done] {
      journal_ = journal;
      done(journaled);
    });
  });
}

void coordinator_disk::write(common::job_journal::writes changes,
                             std::function<void(const result<void>&)> done) {
  journal_->write(std::move(changes), [post = post_, done = std::move(done)](const result<void>& written) {
    post([done, written] { done(written); });
  });
}

void coordinator_disk::write_lazily(const common::job_journal::writes& changes) {
  constexpr std::ptrdiff_t piece_max = 64;
  for (auto from = changes.begin(); from != changes.end();) {
    const auto to = from + std::min(piece_max, changes.end() - from);
    write({from, to}, [](const result<void>&) {});
    from = to;
  }
}

common::full_disk_watcher coordinator_disk::watcher() {
  return {[this, post = post_, waits = waits_](const error& why) {
            post([this, why] { on_stalled(why); });
            return waits->load();
          },
          [this, post = post_] { post([this] { on_stalled(std::nullopt); }); }};
}

void coordinator_disk::on_stalled(const std::optional<error>& why) {
  is_full_ = why.has_value();
  stalled_(why);
}

} // namespace dlrun::coordinator
