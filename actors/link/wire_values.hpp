/// Messages as bytes. A handle travels as a number, and must be of an actor of the sender's
/// process.
#pragma once

#include "actors/link/connection.hpp"

#include <dlrun/check.hpp>

namespace dlrun::link {

/// In place of a handle that is null.
inline constexpr std::uint64_t no_actor = ~std::uint64_t{0};

namespace detail {

template <class Value>
caf::error write_value(connection& to, caf::binary_serializer& sink, const Value& value) {
  if constexpr (caf::is_typed_actor<Value>::value) {
    auto number =
        value ? to.lend(caf::actor_cast<caf::strong_actor_ptr>(value), table_of<Value>()) : no_actor;
    return sink(number);
  } else {
    return sink(const_cast<Value&>(value)); // CAF's inspectors take references; a serializer only reads
  }
}

template <class Value>
caf::error read_value(connection& from, caf::binary_deserializer& source, Value& value) {
  if constexpr (caf::is_typed_actor<Value>::value) {
    std::uint64_t number = no_actor;
    if (auto why = source(number)) return why;
    if (number == no_actor) return {};
    auto borrowed = from.borrow<Value>(number);
    if (!borrowed) return caf::make_error(caf::sec::invalid_argument, borrowed.error().message);
    value = std::move(*borrowed);
    return {};
  } else {
    return source(value);
  }
}

} // namespace detail

template <class... Values>
std::vector<char> write_values(connection& to, const Values&... values) {
  std::vector<char> bytes;
  caf::binary_serializer sink{to.broker().system(), bytes};
  caf::error why;
  static_cast<void>(((why = detail::write_value(to, sink, values), !why) && ...));
  DLRUN_CHECK(!why, "a message cannot be written: {}", to_string(why));
  return bytes;
}

/// @returns protocol for what is too short, too long, or no such values.
template <class... Values>
result<void> read_values(connection& from, std::span<const char> bytes, Values&... values) {
  caf::binary_deserializer source{from.broker().system(), bytes.data(), bytes.size()};
  caf::error why;
  static_cast<void>(((why = detail::read_value(from, source, values), !why) && ...));
  if (why || source.remaining() != 0)
    return fail(error_code::protocol, fmt::format("a payload of {} bytes that is no such message: {}",
                                                  bytes.size(), why ? to_string(why) : "it is too long"));
  return {};
}

} // namespace dlrun::link
