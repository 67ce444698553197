#include "job/host_mark.hpp"

#include "base/utf8.hpp"
#include "job/run_layout.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>

namespace dlrun::job {
namespace {

constexpr std::size_t digits = 16;
constexpr std::size_t mark_bytes_max = 64 * 1024;

std::string shown(const std::string& text) { return base::printable(text, mark_bytes_max); }

} // namespace

std::string to_text(const host_mark& mark) {
  const nlohmann::ordered_json where{{"host", mark.host}, {"root", mark.root}, {"run_dir", mark.root_dir}};
  return fmt::format("{:016x}\n{}\n", mark.run,
                     where.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::optional<host_mark> read_host_mark(const std::filesystem::path& folder) {
  std::ifstream stream(folder / run_layout::host_mark, std::ios::binary);
  std::string text(mark_bytes_max, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  host_mark mark;
  const auto* const end = text.data() + std::min(digits, text.size());
  if (text.size() <= digits || text[digits] != '\n') return std::nullopt;
  if (const auto read = std::from_chars(text.data(), end, mark.run, 16);
      read.ec != std::errc{} || read.ptr != end)
    return std::nullopt;
  const auto where = nlohmann::json::parse(text.substr(digits + 1), nullptr, false);
  if (!where.is_object()) return mark;
  try {
    where.at("host").get_to(mark.host);
    where.at("root").get_to(mark.root);
    where.at("run_dir").get_to(mark.root_dir);
  } catch (const nlohmann::json::exception&) { // a later version's
    return host_mark{.run = mark.run};
  }
  return mark;
}

std::string tell_host_folder(const std::filesystem::path& folder) {
  const auto mark = read_host_mark(folder);
  if (!mark) return "";
  if (mark->host.empty())
    return fmt::format(
        "'{}' is the folder of a host that is not the root's: call this command on the host of "
        "the root, with the run folder there",
        folder.string());
  return fmt::format(
      "'{}' is the folder of host {} in a run whose root is on host {}: call this command there, "
      "with the run folder '{}'",
      folder.string(), shown(mark->host), shown(mark->root), shown(mark->root_dir));
}

} // namespace dlrun::job
