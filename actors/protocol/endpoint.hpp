/// Where a role, and a tensor that it offers, can be reached.
#pragma once

#include <cstdint>
#include <dlrun/ids.hpp>
#include <string>

namespace dlrun::protocol {

/// Control and tensor address of one started role.
struct endpoint {
  std::string control;        ///< of its process (actors/link/process_link.hpp); empty = all roles share it
  std::uint64_t process = 0;  ///< random number of the process, so that a role knows who shares its process
  std::string tensor_address; ///< of its process's segment_offers; empty = offers none

  bool operator==(const endpoint&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, endpoint& x) {
    return f(x.control, x.process, x.tensor_address);
  }
};

/// One start of the coordinator. After the loss of a journal two may have one incarnation (R41):
/// their processes differ.
struct known_coordinator {
  dlrun::incarnation incarnation{}; ///< 0: none
  std::uint64_t process = 0;        ///< endpoint::process

  bool operator==(const known_coordinator&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, known_coordinator& x) {
    return f(x.incarnation, x.process);
  }
};

/// A segment that a role offers on its tensor address.
struct tensor_location {
  std::string address;
  std::uint64_t segment = 0;
  std::uint64_t bytes = 0;

  bool operator==(const tensor_location&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, tensor_location& x) {
    return f(x.address, x.segment, x.bytes);
  }
};

} // namespace dlrun::protocol
