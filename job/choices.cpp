#include "job/choices.hpp"

#include <algorithm>
#include <array>
#include <dlrun/check.hpp>
#include <string_view>

namespace dlrun::job {
namespace {

/// The place of `text` among `words`, as an enumerator; that of the first where it is not set.
template <class Choice, std::size_t Count>
Choice choose(std::string_view key, std::string_view text, const std::array<std::string_view, Count>& words) {
  for (std::size_t i = 0; i < Count; ++i)
    if (text == words[i]) return static_cast<Choice>(i);
  DLRUN_CHECK(text.empty(), "{} is '{}', which is no word of it", key, text);
  return Choice{};
}

} // namespace

placement placement_of(const spec::JobSpec& spec) {
  constexpr std::array<std::string_view, 2> words{"processes", "threads"};
  return choose<placement>("cluster.placement", spec.cluster().placement(), words);
}

bool is_relaxed(const spec::JobSpec& spec) {
  enum class determinism : std::uint8_t { strict, relaxed };
  constexpr std::array<std::string_view, 2> words{"strict", "relaxed"};
  return choose<determinism>("cluster.determinism", spec.cluster().determinism(), words) ==
         determinism::relaxed;
}

std::uint32_t workers_max_of(const spec::JobSpec& spec) {
  const auto& cluster = spec.cluster();
  if (cluster.workers_max() > 0) return static_cast<std::uint32_t>(cluster.workers_max());
  return static_cast<std::uint32_t>(std::max(cluster.workers(), spec.train().microbatches_per_step()));
}

tensor_channel tensor_channel_of(const spec::JobSpec& spec) {
  constexpr std::array<std::string_view, 2> words{"shared_memory", "tcp"};
  return choose<tensor_channel>("cluster.tensor_channel", spec.cluster().tensor_channel(), words);
}

device device_of(const spec::JobSpec& spec) {
  constexpr std::array<std::string_view, 3> words{"auto", "cpu", "cuda"};
  return choose<device>("cluster.device", spec.cluster().device(), words);
}

data_share data_share_of(const spec::DataSpec& spec) {
  constexpr std::array<std::string_view, 2> words{"auto", "off"};
  return choose<data_share>("data.share", spec.share(), words);
}

durability_log durability_log_of(const spec::JobSpec& spec) {
  constexpr std::array<std::string_view, 4> words{"auto", "every_step", "snapshots", "off"};
  return choose<durability_log>("durability.log", spec.durability().log(), words);
}

durability_sync durability_sync_of(const spec::JobSpec& spec) {
  constexpr std::array<std::string_view, 2> words{"process", "power"};
  return choose<durability_sync>("durability.sync", spec.durability().sync(), words);
}

log_format log_format_of(const spec::JobSpec& spec) {
  constexpr std::array<std::string_view, 2> words{"text", "json"};
  return choose<log_format>("observability.log_format", spec.observability().log_format(), words);
}

column_type type_of(const spec::CsvColumn& column) {
  constexpr std::array<std::string_view, 2> words{"numeric", "categorical"};
  return choose<column_type>("type", column.type(), words);
}

category_encoding encoding_of(const spec::CsvColumn& column) {
  constexpr std::array<std::string_view, 2> words{"index", "one_hot"};
  return choose<category_encoding>("encoding", column.encoding(), words);
}

vocabulary_order order_of(const spec::CsvColumn& column) {
  constexpr std::array<std::string_view, 2> words{"appearance", "sorted"};
  return choose<vocabulary_order>("order", column.order(), words);
}

unknown_word unknown_of(const spec::CsvColumn& column) {
  constexpr std::array<std::string_view, 2> words{"error", "bucket"};
  return choose<unknown_word>("unknown", column.unknown(), words);
}

} // namespace dlrun::job
