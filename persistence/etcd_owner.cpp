#include "persistence/etcd_owner.hpp"

#include <charconv>
#include <fmt/format.h>
#include <string_view>

namespace dlrun::persistence {
namespace {

/// Takes `word` and the number behind it from the front of `text`.
bool take_number(std::string_view& text, std::string_view word, int base, std::uint64_t& number) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return failed == std::errc{};
}

} // namespace

bool is_older(const etcd_owner& found, const etcd_owner& self) {
  return found.term < self.term || (found.taker == self.taker && found.write < self.write);
}

std::string key_of_owner(const std::string& prefix) { return prefix + "/owner"; }
std::string key_of_entry(const std::string& prefix, const std::string& key) {
  return fmt::format("{}/entry/{}", prefix, key);
}

std::string to_text(const etcd_owner& owner) {
  return fmt::format("dlrun-journal {} term {} taker {:x} write {}", owner.format, owner.term.value,
                     owner.taker, owner.write);
}

std::optional<etcd_owner> etcd_owner_from(const std::string& text) {
  etcd_owner owner;
  std::string_view left = text;
  owner.format = text.starts_with("dlrun-journal 1 ") ? 1 : 2;
  const bool whole =
      take_number(left, fmt::format("dlrun-journal {} term ", owner.format), 10, owner.term.value) &&
      take_number(left, " taker ", 16, owner.taker) && take_number(left, " write ", 10, owner.write);
  return whole && to_text(owner) == text ? std::optional(owner) : std::nullopt;
}

} // namespace dlrun::persistence
