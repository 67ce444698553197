#include "actors/common/job_journal.hpp"

namespace dlrun::common {

result<std::shared_ptr<job_journal>> job_journal::open(const std::filesystem::path& run_dir,
                                                       incarnation owner, full_disk_watcher watcher,
                                                       std::chrono::milliseconds patience) {
  auto journal = try_patiently(patience, watcher, [&] {
    return persistence::journal::open({(run_dir / journal_directory).string(), owner, nullptr});
  });
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
        entries_ = journal_->contents();
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
