/// Readers turn files into records, for formats that dlrun does not read itself.
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
  std::filesystem::path records;              ///< a file or folder; may not exist
  std::filesystem::path labels;               ///< empty if the job file names none
  option_map options;                         ///< `options:` of the job file, as they stand there
  target_kind targets = target_kind::classes; ///< what the model's loss takes
  bool with_targets = true;                   ///< false for a prediction: the files need no targets
};

/// Number, shape and type of the records that a reader found.
struct record_layout {
  std::uint64_t records = 0; ///< how many
  /// Shape of one record, without the record dimension; images with their channels first.
  std::vector<std::uint32_t> shape;
  /// True: records are bytes, which normalisation divides by 255. False: records are floats.
  bool bytes = false;
  /// Floats of the target of one record, when targets are values.
  std::int64_t target_values = 1;
};

/// Memory of the caller for `count` records, which a reader fills row by row. Spans that do not
/// apply are empty.
struct record_buffers {
  std::span<std::uint8_t> bytes;   ///< (count, shape...), for records that are bytes
  std::span<float> floats;         ///< (count, shape...), for records that are floats
  std::span<std::int32_t> classes; ///< (count), class numbers from 0
  std::span<float> values;         ///< (count, target_values)
};

/// Reads one data set. One thread uses it once, before a job starts: the records stay in memory
/// that all processes of the job share, and errors in the files are reported before anything else
/// begins.
class reader {
public:
  virtual ~reader() = default;
  reader() = default;
  reader(const reader&) = delete;
  reader& operator=(const reader&) = delete;

  /// Looks at the files. The caller then allocates memory for the records, or refuses when they
  /// need too much.
  /// @returns bad_data naming the file, the place in it and what was expected there.
  virtual result<record_layout> open(const reader_request& request) = 0;

  /// Reads the records [first, first + count) into `out`. Called with consecutive ranges, from 0 to
  /// the end, each once. @returns bad_data as open().
  virtual result<void> read(std::uint64_t first, std::uint64_t count, const record_buffers& out) = 0;
};

/// Makes a reader; called once for each data set. @returns not null.
using reader_factory = std::function<std::unique_ptr<reader>()>;

/// Lets a job file use a reader of the program as `format: <name>`. Thread-safe; call it before
/// run_role(). Names are those that register_layer() takes as types.
/// @returns bad_usage when the name is taken, by a format of dlrun or an earlier call, or is no
/// such name, or run_role() was called before.
result<void> register_reader(const std::string& name, reader_factory factory);

} // namespace dlrun
