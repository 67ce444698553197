/// Keys that take one of a few words, as enums: the one place where those words are read. A key
/// that is not set has its default. A word that no key has is a broken invariant where nothing else
/// is said: validate() refuses it.
#pragma once

#include "proto/job_spec.pb.h"

#include <cstdint>
#include <dlrun/batch.hpp>
#include <optional>
#include <span>
#include <string_view>

namespace dlrun::job {

// Enumerators are in the order of `one_of` (proto/job_spec.proto), the default first.

/// `cluster.placement`: where the roles run.
enum class placement : std::uint8_t { processes, threads };
placement placement_of(const spec::JobSpec& spec);

/// cluster.determinism: whether a host may compute other bits than the host on which the run began.
bool is_relaxed(const spec::JobSpec& spec);

/// `cluster.workers_max`. If the job does not set it: K, since more workers than slots have nothing
/// to do, or `cluster.workers` if that is more.
std::uint32_t workers_max_of(const spec::JobSpec& spec);

/// `cluster.tensor_channel`: how parameters and gradients travel between processes of one host.
enum class tensor_channel : std::uint8_t { shared_memory, tcp };
tensor_channel tensor_channel_of(const spec::JobSpec& spec);

/// `cluster.device`: what workers compute on. `automatic` is "auto", until a run begins and
/// decides.
enum class device : std::uint8_t { automatic, cpu, cuda };
device device_of(const spec::JobSpec& spec);

/// `data.share`: whether hosts send the data to hosts that lack it.
enum class data_share : std::uint8_t { automatic, off };
data_share data_share_of(const spec::DataSpec& spec);

/// `durability.log`: what PS shards write to disk. `automatic` is "auto", until a run begins and
/// measures.
enum class durability_log : std::uint8_t { automatic, every_step, snapshots, off };
durability_log durability_log_of(const spec::JobSpec& spec);

/// `durability.sync`: what the written survives, the death of processes or a power cut too.
enum class durability_sync : std::uint8_t { process, power };
durability_sync durability_sync_of(const spec::JobSpec& spec);

/// `durability.replicas`: stores of each PS shard, on as many hosts. Nothing, "auto", until it is
/// known on which hosts the job runs.
std::optional<std::uint32_t> replicas_of(const spec::JobSpec& spec);

/// `observability.log_format`.
enum class log_format : std::uint8_t { text, json };
log_format log_format_of(const spec::JobSpec& spec);

// Of the model and its training.

/// `train.precision`: how GPUs compute products of matrices and convolutions, and store
/// activations.
enum class precision : std::uint8_t { fp32, tf32, bf16 };
precision precision_of(const spec::JobSpec& spec);

/// `gelu.approximate`. Nothing for another word, which the layer itself refuses.
enum class gelu_approximation : std::uint8_t { none, tanh };
std::optional<gelu_approximation> approximation_of(const spec::Gelu& gelu);

/// `train.lr_schedule.unit`: what a schedule counts.
enum class lr_unit : std::uint8_t { step, epoch };
lr_unit unit_of(const spec::LrScheduleSpec& schedule);

/// How a learning rate gets from one value to another.
enum class anneal_strategy : std::uint8_t { cos, linear };
anneal_strategy anneal_strategy_of(const spec::OneCycleLr& schedule);

/// Which values of a metric are better. `automatic` is "auto": it follows from the metric.
enum class metric_mode : std::uint8_t { automatic, min, max };
metric_mode mode_of(const spec::KeepBestSpec& wanted);
metric_mode mode_of(const spec::EarlyStoppingSpec& wanted);

// Of a data set.

/// `format`: which reader reads a data set. Any word that is not one of dlrun's own names a reader
/// that the program registered.
enum class data_format : std::uint8_t { idx, csv, image_folder, npy, tfrecord, registered };
data_format format_of(const spec::DatasetSpec& data);
/// The formats of dlrun's own, in the order of the enumerators.
std::span<const std::string_view> built_in_formats();

/// `targets`: classes where it is not set.
target_kind target_kind_of(const spec::DatasetSpec& data);
void set_target_kind(target_kind kind, spec::DatasetSpec& data);

/// `csv.delimiter`: what separates the cells of a line.
enum class csv_delimiter : std::uint8_t { comma, semicolon, tab, bar };
csv_delimiter delimiter_of(const spec::CsvSpec& csv);

// Of a column of a table.

enum class column_type : std::uint8_t { numeric, categorical };
column_type type_of(const spec::CsvColumn& column);

/// How categories become floats.
enum class category_encoding : std::uint8_t { index, one_hot };
category_encoding encoding_of(const spec::CsvColumn& column);

/// The order of the words of a learnt vocabulary.
enum class vocabulary_order : std::uint8_t { appearance, sorted };
vocabulary_order order_of(const spec::CsvColumn& column);

/// What becomes of a word that is not in the vocabulary.
enum class unknown_word : std::uint8_t { error, bucket };
unknown_word unknown_of(const spec::CsvColumn& column);

} // namespace dlrun::job
