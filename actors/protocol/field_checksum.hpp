/// A checksum of all fields of a message, for what is between the two ends of a connection: TLS
/// says that what came is what was sent, not that memory kept it before and after.
#pragma once

#include "base/crc32c.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace dlrun::protocol {

/// An inspector: CRC32C of the fields that inspect() names, in their order, each number as 8 bytes
/// and before a text or a list how long it is. So no field of a message can be left out.
class field_checksum {
public:
  template <class... Fields>
  int operator()(Fields&... fields) {
    (add(fields), ...);
    return 0;
  }
  std::uint32_t value() const { return crc32c_; }

private:
  template <class Number>
  requires std::is_integral_v<Number> || std::is_enum_v<Number>
  void add(Number number) {
    std::array<std::byte, sizeof(std::uint64_t)> bytes{};
    auto left = static_cast<std::uint64_t>(number);
    for (auto& byte : bytes) {
      byte = static_cast<std::byte>(left);
      left >>= 8U;
    }
    crc32c_ = base::crc32c_extend(crc32c_, bytes);
  }
  void add(std::string& text) {
    add(text.size());
    crc32c_ = base::crc32c_extend(crc32c_, std::as_bytes(std::span(text)));
  }
  template <class One>
  void add(std::vector<One>& all) {
    add(all.size());
    for (auto& one : all) add(one);
  }
  template <class Fields>
  requires std::is_class_v<Fields>
  void add(Fields& fields) { inspect(*this, fields); }

  std::uint32_t crc32c_ = 0;
};

/// Of a message with a field `fields_crc32c`, which is of all others.
template <class Message>
std::uint32_t checksum_of_fields(Message message) {
  message.fields_crc32c = 0;
  field_checksum sum;
  inspect(sum, message);
  return sum.value();
}

/// To be the last that is done to it before it is sent.
template <class Message>
void seal(Message& message) {
  message.fields_crc32c = checksum_of_fields(message);
}

/// Whether it is what was sealed.
template <class Message>
bool is_sealed(const Message& message) {
  return message.fields_crc32c == checksum_of_fields(message);
}

} // namespace dlrun::protocol
