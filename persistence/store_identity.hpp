/// Who a store is: what the file FORMAT in its folder says (docs/formats.md).
#pragma once

#include "persistence/file_system.hpp"
#include "persistence/format_file.hpp"

#include <cstdint>
#include <dlrun/error.hpp>
#include <optional>
#include <string>

namespace dlrun::persistence {

/// What the folder of a store is. Format 1 had no identity.
inline constexpr folder_format store_format{"dlrun-shard-store", 2};

/// Under one identity a store never lacks what it has acknowledged (R24).
struct store_identity {
  std::uint64_t number = 0; ///< random; 0: it has none
  /// The start of the machine's kernel under which it was written without syncs; "" when all that
  /// it has acknowledged survives the end of that.
  std::string boot;

  /// The number, or 0 where what it has acknowledged may have been lost with another boot.
  std::uint64_t under(const std::string& boot_now) const {
    return boot.empty() || boot == boot_now ? number : 0;
  }
  bool operator==(const store_identity&) const = default;
};

/// Another one than any before.
std::uint64_t random_identity();
/// Of the machine's kernel; where that does not tell, a text that never comes again.
std::string boot_of_machine();

/// nullopt when there is no file FORMAT. @returns storage_damaged for another format, or when it
/// cannot be read.
result<std::optional<store_identity>> read_identity(file_system& files, const std::string& directory);
/// Durable when it returns.
result<void> write_identity(file_system& files, const std::string& directory, const store_identity& identity);

} // namespace dlrun::persistence
