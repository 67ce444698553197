/// How long RocksDB's list of its files must at least be.
#pragma once

#include "persistence/file_system.hpp"

#include <cstdint>
#include <dlrun/error.hpp>
#include <string>

namespace dlrun::persistence {

/// RocksDB takes a MANIFEST that is cut off for a shorter one, and with it an older state whose
/// logs are long gone: everything of a table that it does not list is lost in silence. So its name
/// and synced size are noted in a file beside it, MANIFEST_BYTES, each time the database was
/// opened.
result<void> mark_manifest(file_system& files, const std::string& directory, const std::string& name,
                           std::uint64_t bytes);

/// @returns storage_damaged when the MANIFEST that was marked is shorter than it was, or the mark
/// cannot be read. Nothing to say of another MANIFEST: a crash may come between a new one and its
/// mark.
result<void> check_manifest(file_system& files, const std::string& directory);

} // namespace dlrun::persistence
