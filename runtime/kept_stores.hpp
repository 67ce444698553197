/// The stores of a run's PS shards, as the run knew them last.
#pragma once

#include "actors/coordinator/store_book.hpp"

#include <dlrun/error.hpp>
#include <filesystem>

namespace dlrun::runtime {

/// From the journal of a run that nobody trains; empty where nothing was kept on disk. Waits some
/// seconds for a coordinator that is ending. @returns as read_record() and common::read_journal()
/// do: in_use while somebody trains it.
result<coordinator::store_book::stores> kept_stores(const std::filesystem::path& run_dir);

} // namespace dlrun::runtime
