#include "actors/common/job_journal.hpp"

#include <thread>

namespace dlrun::common {
namespace {

constexpr auto open_retry = std::chrono::milliseconds(20);

} // namespace

result<std::shared_ptr<job_journal>> job_journal::open(const std::filesystem::path& run_dir,
                                                       incarnation owner,
                                                       std::chrono::milliseconds patience) {
  const auto give_up = std::chrono::steady_clock::now() + patience;
  for (;;) {
    auto journal = persistence::journal::open({(run_dir / journal_directory).string(), owner, nullptr});
    if (journal) return std::shared_ptr<job_journal>{new job_journal(std::move(*journal))};
    if (journal.error().code != error_code::in_use || std::chrono::steady_clock::now() > give_up)
      return tl::unexpected(journal.error());
    std::this_thread::sleep_for(open_retry);
  }
}

void job_journal::write(writes changes, std::function<void(result<void>)> done) {
  thread_.run([this, changes = std::move(changes), done = std::move(done)] {
    auto written = journal_->write(changes);
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
