#include "actors/common/job_journal.hpp"

#include "base/look_for.hpp"
#include "job/run_layout.hpp"
#include "persistence/folder_journal.hpp"

#include <fmt/format.h>

namespace dlrun::common {

namespace {

constexpr auto before_another_try = std::chrono::milliseconds(500);

using taken_journal = result<std::unique_ptr<persistence::journal>>;

taken_journal take(const std::filesystem::path& run_dir, incarnation owner, const full_disk_watcher& watcher,
                   std::chrono::milliseconds patience) {
  return try_patiently(patience, watcher, [&]() -> taken_journal {
    return persistence::folder_journal::open({(run_dir / run_layout::journal).string(), owner, nullptr});
  });
}

/// Patient itself: what it tried before it knows again as its own.
taken_journal take(const etcd_ground& ground, incarnation owner, const full_disk_watcher& watcher,
                   std::chrono::milliseconds /*patience*/) {
  bool has_waited = false;
  auto taken = persistence::etcd_journal::take({.place = ground.place,
                                                .prefix = ground.prefix,
                                                .owner = owner,
                                                .patience = ground.patience,
                                                .keep_trying = [&](const error& why) {
                                                  if (!watcher.while_full || !watcher.while_full(why))
                                                    return false;
                                                  has_waited = true;
                                                  std::this_thread::sleep_for(before_another_try);
                                                  return true;
                                                }});
  if (taken && has_waited && watcher.when_over) watcher.when_over();
  return taken;
}

} // namespace

journal_place journal_place_of(const spec::JobSpec& spec, const std::filesystem::path& run_dir) {
  const auto& journal = spec.cluster().journal();
  if (!journal.has_etcd()) return run_dir;
  const auto& etcd = journal.etcd();
  persistence::etcd_place place{{etcd.endpoints().begin(), etcd.endpoints().end()},
                                etcd.cluster_id() == "auto" ? "" : etcd.cluster_id(),
                                etcd.ca_file(),
                                etcd.certificate_file(),
                                etcd.key_file(),
                                etcd.user_file()};
  return etcd_ground{std::move(place), etcd.prefix(), {}};
}

result<std::optional<persistence::journal_contents>> read_journal(const journal_place& place) {
  if (const auto* etcd = std::get_if<etcd_ground>(&place))
    return persistence::etcd_journal::read(etcd->place, etcd->prefix);
  const auto directory = std::get<std::filesystem::path>(place) / run_layout::journal;
  const auto is_there = base::look_for(directory);
  // One that cannot be seen is not taken for that of a run that never began.
  if (!is_there) return tl::unexpected(is_there.error());
  if (!*is_there) return std::nullopt;
  auto contents = persistence::folder_journal::read(directory.string());
  // Somebody died while making it: nothing was written yet.
  if (!contents && contents.error().code == error_code::bad_usage) return std::nullopt;
  if (!contents) return tl::unexpected(contents.error());
  return *std::move(contents);
}

result<std::shared_ptr<job_journal>> job_journal::open(const journal_place& place, incarnation owner,
                                                       full_disk_watcher watcher,
                                                       std::chrono::milliseconds patience) {
  auto journal =
      std::visit([&](const auto& ground) { return take(ground, owner, watcher, patience); }, place);
  if (!journal) return tl::unexpected(journal.error());
  return std::shared_ptr<job_journal>{new job_journal(std::move(*journal), std::move(watcher))};
}

void job_journal::write(writes changes, std::function<void(result<void>)> done) {
  thread_.run([this, changes = std::move(changes), done = std::move(done)] {
    auto written =
        try_patiently(std::chrono::milliseconds(0), watcher_, [&] { return journal_->write(changes); });
    {
      const std::scoped_lock lock{mutex_};
      if (written)
        persistence::apply(changes, entries_);
      else
        broken_ = true;
    }
    done(std::move(written));
  });
}

std::map<std::string, std::string> job_journal::entries() const {
  const std::scoped_lock lock{mutex_};
  return entries_;
}

bool job_journal::is_broken() const {
  const std::scoped_lock lock{mutex_};
  return broken_;
}

} // namespace dlrun::common
