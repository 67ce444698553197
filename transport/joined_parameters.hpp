/// The parameters of several PS shards as one span, without a copy.
#pragma once

#include "transport/parameter_segment.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace dlrun::transport {

/// A version of all parts in place, in memory that their writers will use again.
struct joined_view {
  struct part {
    std::shared_ptr<const parameter_reader> reader;
    parameter_view view;
  };
  std::span<const float> values;
  std::vector<part> parts;

  /// Whether all parts are what they were when the view was taken. Call it after reading.
  bool unchanged() const;
};

/// Shows the parameters of several parameter_readers as one span. It maps the whole pages of each
/// part a second time, behind those of the part before, and copies what does not fill a page: less
/// than two pages a part. It has room for two versions. It looks up the place of a part in its own
/// segment each time, and maps the part again only when that has changed. With one part it maps
/// nothing. Not thread-safe.
class joined_parameters {
public:
  using readers = std::vector<std::shared_ptr<const parameter_reader>>;

  /// Called before what is mapped of even (0) or odd (1) versions becomes other memory.
  using remapping_listener = std::function<void(std::size_t parity)>;

  /// Floats of each part, in their order. Whether there may be more than one, is_possible() says.
  /// `remaps` may be null.
  explicit joined_parameters(std::vector<std::size_t> part_floats, remapping_listener remaps = nullptr);
  ~joined_parameters();
  joined_parameters(const joined_parameters&) = delete;
  joined_parameters& operator=(const joined_parameters&) = delete;

  /// Whether the pages of this machine are small enough for segments to be mapped in parts.
  static bool is_possible();

  /// `version` of all parts, from `readers` in their order, null where there is none. Valid until
  /// the call after the next. @returns role_lost when a part does not serve it; system when the OS
  /// refuses.
  result<joined_view> view(timeline_id timeline, version_id version, const readers& readers);

private:
  /// What is mapped at a part's place.
  struct mapped_part {
    std::shared_ptr<const parameter_reader> reader;
    int buffer = 0;
  };
  struct area {
    std::byte* address = nullptr;
    std::vector<mapped_part> parts;
  };
  result<void> make_room(area& into) const;
  result<std::span<const float>> join(std::size_t parity, const joined_view& view);

  std::vector<std::size_t> part_floats_;
  std::size_t floats_ = 0;
  remapping_listener remaps_;
  std::array<area, 2> areas_; ///< of even and odd versions; without an address until it is needed
};

} // namespace dlrun::transport
