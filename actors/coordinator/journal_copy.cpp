#include "actors/coordinator/journal_copy.hpp"

#include "base/crc32c.hpp"
#include "proto/journal_records.pb.h"

#include <algorithm>
#include <span>

namespace dlrun::coordinator {

protocol::journal_part part_of_journal(const std::map<std::string, std::string>& entries,
                                       std::uint64_t offset) {
  records::JournalCopy copy;
  for (const auto& [key, value] : entries) {
    auto& entry = *copy.add_entries();
    entry.set_key(key);
    entry.set_value(value);
  }
  const auto bytes = copy.SerializeAsString();
  const auto from = std::min<std::uint64_t>(offset, bytes.size());
  return {{},
          bytes.size(),
          base::crc32c(std::as_bytes(std::span{bytes})),
          bytes.substr(from, protocol::journal_part_bytes_max)};
}

std::optional<std::map<std::string, std::string>> journal_from(const std::string& bytes) {
  records::JournalCopy copy;
  if (!copy.ParseFromString(bytes)) return std::nullopt;
  std::map<std::string, std::string> entries;
  for (const auto& one : copy.entries()) entries[one.key()] = one.value();
  return entries;
}

} // namespace dlrun::coordinator
