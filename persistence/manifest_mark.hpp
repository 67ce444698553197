/// Whether RocksDB's list of its files is the one that it wrote.
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

/// To be called before RocksDB opens it. @returns storage_damaged, naming file and byte, when the
/// MANIFEST that CURRENT names has a damaged record, is older than the one that was marked, or is
/// that one and shorter than it was; or when CURRENT or the mark cannot be read. A newer one may be
/// of any length: a crash may come between it and its mark.
result<void> check_manifest(file_system& files, const std::string& directory);

} // namespace dlrun::persistence
