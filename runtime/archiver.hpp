/// Makes archives of the run while it trains (rule R45).
#pragma once

#include "actors/agent/run_board.hpp"
#include "actors/protocol/event_messages.hpp"
#include "runtime/archive_folder.hpp"
#include "runtime/archive_source.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

namespace dlrun::runtime {

struct archiver_options {
  std::filesystem::path run_dir; ///< with the record of the run
  std::filesystem::path folder;  ///< of the archives
  /// From the beginning of one archive to that of the next. Its bytes are spread over a quarter of
  /// that, so that they take as little as can be of the disk and the network.
  std::chrono::duration<double> every{};
  std::uint32_t ps_shards = 1;
  std::set<version_id> evaluated{};                       ///< versions that are evaluated
  std::function<void(protocol::job_event)> tell{};        ///< any thread
  std::function<std::uint64_t()> step = [] { return 0; }; ///< to which the run has come; any thread
};

/// A thread of its own makes the first archive as soon as there is something to archive, and waits
/// for disk and network in place of everybody else. What fails is told once, and tried again.
/// Nothing that goes wrong here ends the run.
class archiver {
public:
  archiver(archiver_options options, std::unique_ptr<archive_source> source);
  archiver(const archiver&) = delete;
  archiver& operator=(const archiver&) = delete;
  /// Gives up the one in the making.
  ~archiver();

  /// Any thread.
  agent::archive_view view() const;

private:
  using clock = std::chrono::steady_clock;
  enum class outcome { made, nothing_new, not_yet, failed };

  void run();
  outcome try_once();
  result<outcome> make();
  result<void> write(records::ArchiveRecord about, const std::vector<snapshot_name>& chosen,
                     std::uint64_t bytes);
  result<std::string> read(ps_shard_id shard, const snapshot_name& name, std::uint64_t offset);
  result<void> copy(archive_writer& writer, const std::vector<snapshot_name>& chosen, std::uint64_t bytes);
  void tell(const char* event, std::string text) const;
  void note_step();
  void take_over_folder();
  bool wait(std::chrono::duration<double> time);

  archiver_options options_;
  std::unique_ptr<archive_source> source_; ///< this and the next are of the thread
  std::uint64_t noted_step_ = 0;
  std::optional<snapshot_name> newest_{}; ///< that this process has made or found
  std::optional<clock::time_point> late_since_{};
  mutable std::mutex mutex_; ///< of what is below
  std::condition_variable changed_;
  agent::archive_view view_{};
  bool is_over_ = false;
  std::thread thread_; ///< last
};

} // namespace dlrun::runtime
