/// Readers: how the content of files becomes records. For formats that dlrun does not read itself.
#pragma once

#include <cstdint>
#include <dlrun/batch.hpp>
#include <dlrun/error.hpp>
#include <dlrun/options.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dlrun {

/// What the job file says of a data set.
struct reader_request {
  std::filesystem::path records;              ///< a file or folder; need not exist
  std::filesystem::path labels;               ///< empty where not written
  option_map options;                         ///< `options:`, as they stand
  target_kind targets = target_kind::classes; ///< what the model's loss takes
  bool with_targets = true;                   ///< false to predict: files need not have any
};

/// What there is to read.
struct record_layout {
  std::uint64_t records = 0; ///< how many
  /// Shape of one record, without the record dimension; images with their channels first.
  std::vector<std::uint32_t> shape;
  /// Records are bytes, which are normalised as byte / 255; otherwise they are floats.
  bool bytes = false;
  /// Floats of one record's target, where targets are values.
  std::int64_t target_values = 1;
};

/// Where a reader puts `count` records, row by row. Spans that do not apply are empty.
struct record_buffers {
  std::span<std::uint8_t> bytes;   ///< (count, shape...), of records that are bytes
  std::span<float> floats;         ///< (count, shape...), of others
  std::span<std::int32_t> classes; ///< (count), from 0
  std::span<float> values;         ///< (count, target_values)
};

/// Reads one data set. Used once, by one thread, before a job starts: its records are kept in
/// memory that all of the job's processes share, and what is wrong with the files is told before
/// anything else has begun.
class reader {
public:
  virtual ~reader() = default;
  reader() = default;
  reader(const reader&) = delete;
  reader& operator=(const reader&) = delete;

  /// Looks at the files. Memory for what it returns is taken (and refused, when it is too much) by
  /// the caller.
  /// @returns bad_data naming the file, the place in it and what was expected there.
  virtual result<record_layout> open(const reader_request& request) = 0;

  /// Reads the records [first, first + count). Called with consecutive ranges, from 0 to the end,
  /// each once.
  virtual result<void> read(std::uint64_t first, std::uint64_t count, const record_buffers& out) = 0;
};

/// Makes a reader; called once for each data set. @returns not null.
using reader_factory = std::function<std::unique_ptr<reader>()>;

/// Makes `format: <name>` in a job file use a reader of the program's own. Thread-safe; before
/// run_role(), as register_layer(). A name is what a job file may contain (letters, digits, '.',
/// '_', '-').
/// @returns bad_usage when the name is taken, by dlrun's own formats or an earlier call, or is no
/// name, or run_role() was called before.
result<void> register_reader(const std::string& name, reader_factory factory);

} // namespace dlrun
