#include "job/choices.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <dlrun/check.hpp>
#include <string_view>

namespace dlrun::job {
namespace {

/// The place of `text` among `words`, as an enumerator; that of the first where it is not set.
template <class Choice, std::size_t Count>
std::optional<Choice> find(std::string_view text, const std::array<std::string_view, Count>& words) {
  if (text.empty()) return Choice{};
  for (std::size_t i = 0; i < Count; ++i)
    if (text == words[i]) return static_cast<Choice>(i);
  return std::nullopt;
}

template <class Choice, std::size_t Count>
Choice choose(std::string_view key, std::string_view text, const std::array<std::string_view, Count>& words) {
  const auto found = find<Choice>(text, words);
  DLRUN_CHECK(found, "{} is '{}', which is no word of it", key, text);
  return *found;
}

metric_mode mode_from(std::string_view text) {
  constexpr std::array<std::string_view, 3> words{"auto", "min", "max"};
  return choose<metric_mode>("mode", text, words);
}

constexpr std::array<std::string_view, 5> format_words{"idx", "csv", "image_folder", "npy", "tfrecord"};
constexpr std::array<std::string_view, 2> target_words{"classes", "values"};

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

std::optional<std::uint32_t> replicas_of(const spec::JobSpec& spec) {
  const auto& text = spec.durability().replicas();
  if (text.empty() || text == "auto") return std::nullopt;
  std::uint32_t count = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), count);
  DLRUN_CHECK(failed == std::errc{} && end == text.data() + text.size() && count > 0,
              "durability.replicas is '{}', which is no number of stores", text);
  return count;
}

log_format log_format_of(const spec::JobSpec& spec) {
  constexpr std::array<std::string_view, 2> words{"text", "json"};
  return choose<log_format>("observability.log_format", spec.observability().log_format(), words);
}

precision precision_of(const spec::JobSpec& spec) {
  constexpr std::array<std::string_view, 3> words{"fp32", "tf32", "bf16"};
  return choose<precision>("train.precision", spec.train().precision(), words);
}

std::optional<gelu_approximation> approximation_of(const spec::Gelu& gelu) {
  constexpr std::array<std::string_view, 2> words{"none", "tanh"};
  return find<gelu_approximation>(gelu.approximate(), words);
}

lr_unit unit_of(const spec::LrScheduleSpec& schedule) {
  constexpr std::array<std::string_view, 2> words{"step", "epoch"};
  return choose<lr_unit>("train.lr_schedule.unit", schedule.unit(), words);
}

anneal_strategy anneal_strategy_of(const spec::OneCycleLr& schedule) {
  constexpr std::array<std::string_view, 2> words{"cos", "linear"};
  return choose<anneal_strategy>("train.lr_schedule.one_cycle.anneal_strategy", schedule.anneal_strategy(),
                                 words);
}

metric_mode mode_of(const spec::KeepBestSpec& wanted) { return mode_from(wanted.mode()); }
metric_mode mode_of(const spec::EarlyStoppingSpec& wanted) { return mode_from(wanted.mode()); }

data_format format_of(const spec::DatasetSpec& data) {
  return find<data_format>(data.format(), format_words).value_or(data_format::registered);
}

std::span<const std::string_view> built_in_formats() { return format_words; }

target_kind target_kind_of(const spec::DatasetSpec& data) {
  return choose<target_kind>("targets", data.targets(), target_words);
}

void set_target_kind(target_kind kind, spec::DatasetSpec& data) {
  data.set_targets(std::string(target_words.at(static_cast<std::size_t>(kind))));
}

csv_delimiter delimiter_of(const spec::CsvSpec& csv) {
  constexpr std::array<std::string_view, 4> words{"comma", "semicolon", "tab", "bar"};
  return choose<csv_delimiter>("csv.delimiter", csv.delimiter(), words);
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
