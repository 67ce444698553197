// Messages of a handle by name.
#pragma once

#include "actors/protocol/handles.hpp"

#include <cstdint>
#include <set>

namespace dlrun::test {

template <class Message, class Signature>
constexpr bool is_about = false;
template <class Message, class... Carried, class Results>
constexpr bool is_about<Message, caf::typed_mpi<caf::detail::type_list<Message, Carried...>, Results>> = true;

template <class Message, class... Signatures>
constexpr std::uint16_t place_in(caf::detail::type_list<Signatures...>) {
  std::uint16_t place = 0;
  (void)((is_about<Message, Signatures> || (++place, false)) || ...);
  return place;
}

/// The number of a message among those of a handle (actors/protocol/handles.hpp).
template <class Handle, class Message>
constexpr std::uint16_t place_of() {
  return place_in<Message>(typename Handle::signatures{});
}
template <class Handle, class... Messages>
std::set<std::size_t> places_of_all() {
  return {place_of<Handle, Messages>()...};
}

} // namespace dlrun::test
