#include "persistence/store_identity.hpp"

#include "base/own_machine.hpp"
#include "base/random.hpp"

#include <charconv>
#include <fmt/format.h>
#include <string_view>

namespace dlrun::persistence {
namespace {

constexpr folder_format without_identity{"dlrun-shard-store", 1};
constexpr std::string_view number_line = "identity ";
constexpr std::string_view boot_line = "boot ";
constexpr std::string_view run_line = "run ";
constexpr std::size_t number_digits = 16;

std::string first_line(const folder_format& format) {
  return fmt::format("{} {}\n", format.kind, format.number);
}

/// The rest of the line that `text` begins with, which is taken from it; nullopt when it begins
/// otherwise.
std::optional<std::string_view> take_line(std::string_view& text, std::string_view begin) {
  const auto end = text.find('\n');
  if (!text.starts_with(begin) || end == std::string_view::npos) return std::nullopt;
  const auto rest = text.substr(begin.size(), end - begin.size());
  text.remove_prefix(end + 1);
  return rest;
}

/// A number of 16 hexadecimal digits that is not 0.
std::optional<std::uint64_t> to_number(std::string_view digits) {
  std::uint64_t number = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  const bool is_whole = digits.size() == number_digits && end == digits.data() + digits.size();
  return failure == std::errc{} && is_whole && number != 0 ? std::optional(number) : std::nullopt;
}

/// What follows the first line. nullopt when it is no identity.
std::optional<store_identity> parse(std::string_view text) {
  const auto number = to_number(take_line(text, number_line).value_or(""));
  if (!number) return std::nullopt;
  store_identity read{.number = *number, .boot = {}};
  if (const auto boot = take_line(text, boot_line)) read.boot = *boot;
  if (const auto digits = take_line(text, run_line)) {
    const auto run = to_number(*digits);
    if (!run) return std::nullopt;
    read.run = *run;
  }
  return text.empty() ? std::optional(std::move(read)) : std::nullopt;
}

} // namespace

result<void> check_is_of(const store_identity& store, std::uint64_t run, const std::string& directory) {
  if (store.run == 0 || run == 0 || store.run == run) return {};
  return fail(error_code::bad_usage,
              fmt::format("{} is the store of another run ({:016x}, and this run is {:016x}): put back the "
                          "one of this run, or move the folder away, and the shard begins anew with what "
                          "the others can compute again",
                          directory, store.run, run));
}

result<void> check_is_of(file_system& files, const std::string& directory, std::uint64_t run) {
  const auto known = read_identity(files, directory);
  if (!known) return tl::unexpected(known.error());
  return *known ? check_is_of(**known, run, directory) : result<void>();
}

std::uint64_t random_identity() {
  std::uint64_t made = 0;
  while (made == 0) made = base::random_number();
  return made;
}

std::string boot_of_machine() {
  const auto known = base::kernel_boot();
  return known.empty() ? fmt::format("unknown {:016x}", random_identity()) : known;
}

result<std::optional<store_identity>> read_identity(file_system& files, const std::string& directory) {
  const auto content = read_format(files, directory);
  if (!content) return tl::unexpected(content.error());
  if (!*content) return std::nullopt;
  std::string_view text = **content;
  if (text == first_line(without_identity)) return store_identity{};
  const auto begin = first_line(store_format);
  if (!text.starts_with(begin)) return fail_format(directory, text, store_format);
  text.remove_prefix(begin.size());
  auto read = parse(text);
  if (read) return std::move(*read);
  return fail(error_code::storage_damaged,
              fmt::format("{}/FORMAT: what it says of the store's identity is unreadable: restore the file "
                          "from a copy, or move the folder away, and the shard begins anew",
                          directory));
}

result<void> write_identity(file_system& files, const std::string& directory,
                            const store_identity& identity) {
  auto lines = fmt::format("{}{:016x}\n", number_line, identity.number);
  if (!identity.boot.empty()) lines += fmt::format("{}{}\n", boot_line, identity.boot);
  if (identity.run != 0) lines += fmt::format("{}{:016x}\n", run_line, identity.run);
  return write_format(files, directory, store_format, lines);
}

} // namespace dlrun::persistence
