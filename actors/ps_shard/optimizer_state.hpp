/// The optimizer's state of a PS shard's range.
#pragma once

#include "kernels/cpu/update.hpp"
#include "transport/parameter_segment.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dlrun::ps_shard {

/// In one buffer that each step changes, or, in memory that outlives the process, in two: then that
/// of the version published last stays whole while the next one is made (R36). Used by one thread.
class optimizer_state {
public:
  /// One buffer of `floats`.
  static optimizer_state in_place(std::size_t floats);
  /// Two, each with room for `beside_bytes_max` bytes of what goes beside a version.
  /// @returns as parameter_writer::create_in().
  static result<optimizer_state> retained_in(base::unique_fd memory, std::size_t floats,
                                             std::size_t beside_bytes_max);

  bool is_retained() const { return writer_.has_value(); }
  /// Of the version published last.
  std::span<const float> current() const;
  /// State before and after a step that makes `version`: valid until publish() or abandon(), one of
  /// which follows. Before the first version there is none before.
  kernels::cpu::update_state begin(timeline_id timeline, version_id version);
  /// That version is there, with `beside`, which is of no use in one buffer.
  void publish(std::string_view beside);
  void abandon();
  /// Nothing is there.
  void withdraw();

private:
  std::size_t floats_ = 0;
  std::vector<float> own_;
  std::optional<transport::parameter_writer> writer_; ///< none: in place
  std::span<float> beside_;                           ///< of the version that is begun
  bool has_current_ = false;                          ///< of the writer
};

/// A state with what is beside it, as optimizer_state::publish() wrote them.
struct retained_state {
  std::span<const float> floats;
  std::string_view beside; ///< empty: it was published without
};

/// Floats of a segment that holds states in two versions.
std::size_t retained_state_floats(std::size_t floats, std::size_t beside_bytes_max);
/// Of what such a segment has. @returns storage_damaged when it cannot be one.
result<retained_state> retained_state_of(std::span<const float> values, std::size_t floats);

} // namespace dlrun::ps_shard
