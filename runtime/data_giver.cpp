#include "runtime/data_giver.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace dlrun::runtime {
namespace {

constexpr std::uint64_t first_array_id = giver_list_id.value + 1;

} // namespace

transport::segment_id offered_id(data::array_place place) {
  return {first_array_id + static_cast<std::uint64_t>(place)};
}

std::string written_givers(const std::map<std::string, std::string>& givers) {
  std::string text;
  for (const auto& [host, address] : givers) {
    const auto line = fmt::format("{} {}\n", host, address);
    if (text.size() + line.size() <= giver_list_bytes) text += line;
  }
  return text;
}

std::vector<data_source> read_givers(std::string_view text) {
  std::vector<data_source> all;
  for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    const auto line = text.substr(0, end);
    text.remove_prefix(end + 1);
    const auto space = line.find(' ');
    if (space == std::string_view::npos) continue;
    all.push_back({std::string{line.substr(0, space)}, std::string{line.substr(space + 1)}});
  }
  return all;
}

result<std::unique_ptr<data_giver>> data_giver::start(transport::tcp_server_options options,
                                                      std::shared_ptr<const data::job_data> data) {
  auto server = transport::tcp_server::start(std::move(options));
  if (!server) return tl::unexpected(server.error());
  std::unique_ptr<data_giver> made{new data_giver(std::move(*server))};
  for (const auto place : {data::array_place::training_records, data::array_place::training_targets,
                           data::array_place::validation_records, data::array_place::validation_targets}) {
    const auto* const array = data::array_at(*data, place);
    if (array == nullptr) continue;
    const auto bytes = std::as_bytes(array->bytes());
    if (auto offered = made->server_->offer_memory_as(offered_id(place), bytes, data); !offered)
      return tl::unexpected(offered.error());
  }
  return made;
}

void data_giver::others_are(const std::map<std::string, std::string>& givers) const {
  const auto text = std::make_shared<std::string>(written_givers(givers));
  text->resize(giver_list_bytes);
  // Of few offers: there is room for one more.
  static_cast<void>(
      server_->offer_memory_as(giver_list_id, std::as_bytes(std::span<const char>{*text}), text));
}

} // namespace dlrun::runtime
