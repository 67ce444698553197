/// Archives of a run with one PS shard, and the bytes of the snapshots in them.
#pragma once

#include "persistence/shard_store.hpp"
#include "runtime/archive_folder.hpp"
#include "tests/data/files.hpp"

#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <vector>

namespace dlrun::test {

class small_archives {
public:
  static constexpr std::size_t payload_bytes = 100'000;

  small_archives() { record.set_run(7); }

  /// The bytes of a snapshot file, as a store writes it.
  std::string snapshot(std::uint64_t version) {
    const auto directory = folder.path() / std::to_string(++stores_);
    auto store =
        persistence::shard_store::open({.directory = directory.string(), .opener = {1}, .files = nullptr});
    EXPECT_TRUE(store);
    auto writer = (*store)->begin_snapshot({version}, {});
    EXPECT_TRUE(writer && writer->write(std::vector<std::byte>(payload_bytes, std::byte{7})));
    EXPECT_TRUE(writer->commit({}));
    std::ifstream file{directory / "snapshots" / (std::to_string(version) + "-0.snap"), std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
  }
  result<void> archive(std::uint64_t version, const std::string& bytes) {
    auto writer = runtime::archive_writer::begin(archives, record);
    if (!writer) return tl::unexpected(writer.error());
    auto done = writer->begin_snapshot({0}, {{version}, {}});
    if (done) done = writer->write(bytes);
    if (done) done = writer->end_snapshot();
    if (!done) return done;
    records::ArchiveRecord about;
    *about.mutable_record() = record;
    about.set_version(version);
    if (auto finished = writer->finish(about); !finished) return finished;
    return writer->remove_older();
  }
  /// Newest first.
  std::vector<std::filesystem::path> all() const {
    std::vector<std::filesystem::path> found;
    const auto listed = runtime::list_archives(archives);
    EXPECT_TRUE(listed);
    for (const auto& one : *listed) found.push_back(one.path);
    return found;
  }

  temporary_folder folder;
  std::filesystem::path archives = folder.path() / "archives";
  records::RunRecord record;

private:
  int stores_ = 0;
};

} // namespace dlrun::test
