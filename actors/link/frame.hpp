/// The unit of what travels on a control connection: one message, one answer, or the end of an
/// actor.
#pragma once

#include <cstdint>
#include <dlrun/error.hpp>
#include <functional>
#include <span>
#include <vector>

namespace dlrun::link {

/// Header included. What is longer is refused before memory is taken for it.
inline constexpr std::size_t frame_bytes_max = std::size_t{64} << 10;

enum class frame_kind : std::uint8_t {
  message = 1, ///< for `actor` of the receiver; nobody answers
  request,     ///< the same, to be answered with the same `call`
  answer,      ///< of a request of the receiver
  failure,     ///< instead of an answer: the payload is the reason, as text
  gone         ///< `actor` of the sender has ended: the payload is the reason, as text
};

/// Travels as it lies in memory, in the byte order of x86-64: processes of one job are of one build
/// on one kind of processor (I2).
struct frame_header {
  std::uint32_t bytes = 0; ///< of the frame, header included
  frame_kind kind = frame_kind::message;
  std::uint8_t reserved = 0;
  std::uint16_t message = 0; ///< place of the message in its receiver's handle (message_table.hpp)
  std::uint64_t actor = 0;   ///< whom it is for or about; 0 = the role of the process
  std::uint64_t call = 0;    ///< number of a request
};
static_assert(sizeof(frame_header) == 24);

struct frame {
  frame_header header;
  std::span<const char> payload; ///< valid until its reader's next call
};

/// Appends a frame to `out`. @returns limit_exceeded, and leaves `out` alone, when it is too long.
result<void> append_frame(std::vector<char>& out, frame_header header, std::span<const char> payload);

/// Cuts what comes from a connection into frames. Holds less than one frame.
class frame_reader {
public:
  /// Calls `take` for every frame that is whole, in order, until it returns an error.
  /// @returns that error, or protocol for what is no frame.
  result<void> add(std::span<const char> bytes, const std::function<result<void>(const frame&)>& take);

private:
  std::vector<char> rest_;
};

} // namespace dlrun::link
