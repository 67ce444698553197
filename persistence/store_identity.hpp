/// Who a store is: what the file FORMAT in its folder says (docs/formats.md).
#pragma once

#include "persistence/file_system.hpp"
#include "persistence/format_file.hpp"

#include <cstdint>
#include <dlrun/error.hpp>
#include <optional>
#include <string>

namespace dlrun::persistence {

/// The format of a store's folder. Format 1 had no identity.
inline constexpr folder_format store_format{"dlrun-shard-store", 2};

/// Identifies a store. Under one identity a store never lacks what it has acknowledged (R24).
struct store_identity {
  std::uint64_t number = 0; ///< random; 0: it has none
  /// The boot of the machine during which it was written without syncs; "" when everything that it
  /// has acknowledged survives a reboot.
  std::string boot;
  /// Number of the run that it is of; 0: it was written before runs had one.
  std::uint64_t run = 0;

  /// The number, or 0 when a reboot may have lost something that the store has acknowledged.
  std::uint64_t under(const std::string& boot_now) const {
    return boot.empty() || boot == boot_now ? number : 0;
  }
  bool operator==(const store_identity&) const = default;
};

/// Is the store in that folder of this run? Where one of both numbers is 0 nobody knows.
/// @returns bad_usage, naming both numbers and the way out.
result<void> check_is_of(const store_identity& store, std::uint64_t run, const std::string& directory);
/// The same for whatever is in the folder, which may be nothing. @returns as read_identity() too.
result<void> check_is_of(file_system& files, const std::string& directory, std::uint64_t run);

/// A new random number, not 0.
std::uint64_t random_identity();
/// Id of the machine's boot; a text that never comes again when the kernel does not tell.
std::string boot_of_machine();

/// nullopt when there is no file FORMAT. @returns storage_damaged for another format, or when it
/// cannot be read.
result<std::optional<store_identity>> read_identity(file_system& files, const std::string& directory);
/// Durable when it returns.
result<void> write_identity(file_system& files, const std::string& directory, const store_identity& identity);

} // namespace dlrun::persistence
