/// What happened, as it is told to the user, to events.jsonl and to whoever watches a run.
#pragma once

#include "actors/protocol/roles.hpp"

#include <bit>
#include <cstdint>
#include <dlrun/ids.hpp>
#include <string>
#include <utility>
#include <vector>

namespace dlrun::protocol {

/// A number with its name; a double travels as a bit pattern.
struct named_bits {
  std::string name;
  std::uint64_t bits = 0;

  bool operator==(const named_bits&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, named_bits& x) {
    return f(x.name, x.bits);
  }
};
inline named_bits named_number(std::string name, double value) {
  return {std::move(name), std::bit_cast<std::uint64_t>(value)};
}

/// What a job_event says in numbers, for programs; its text says it for people.
struct event_numbers {
  bool has_step = false;
  std::uint64_t step = 0;     ///< evaluated, stopped-early: of which version; rewind: to which
  std::uint64_t after_us = 0; ///< role-exited: since the last sign of life; what follows a loss: since it was
                              ///< noticed; 0 = not said
  std::vector<named_bits> values{}; ///< evaluated: loss and metrics; workers-scaled: workers that are
                                    ///< wanted; run-resumed: hosts in the list, where there is one;
                                    ///< data-fetched: bytes and seconds; store-short: acknowledged,
                                    ///< found; gpu-avoided: its number

  bool operator==(const event_numbers&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, event_numbers& x) {
    return f(x.has_step, x.step, x.after_us, x.values);
  }
};

/// The host that a job_event is about, and why what it says of it is so; "" where it says neither.
struct event_place {
  std::string host;
  std::string reason;

  bool operator==(const event_place&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, event_place& x) {
    return f(x.host, x.reason);
  }
};

/// Coordinator, PS shard -> agent: a decision worth a line to the user and to events.jsonl. `event`
/// is a stable name that can be searched for ever.
struct job_event {
  std::string event;
  role_name role;
  dlrun::incarnation incarnation;
  std::string text;
  event_numbers numbers{};
  event_place place{};
  /// When the agent heard of it, by CLOCK_MONOTONIC of its host in microseconds. It does not
  /// travel: another host's clock says nothing here.
  std::uint64_t at_us = 0;

  template <class Inspector>
  friend auto inspect(Inspector& f, job_event& x) {
    return f(x.event, x.role, x.incarnation, x.text, x.numbers, x.place);
  }
};

/// Coordinator -> agent: a part of the report, where its own host may not have the run folder.
/// Repeated until answered.
struct report_part {
  dlrun::incarnation coordinator;
  std::uint64_t offset = 0;
  std::uint64_t size = 0; ///< of the whole report
  std::string bytes;

  template <class Inspector>
  friend auto inspect(Inspector& f, report_part& x) {
    return f(x.coordinator, x.offset, x.size, x.bytes);
  }
};

/// Agent -> coordinator: up to where it is there, or why it is not taken. With its end it is in the
/// run folder.
struct report_taken {
  std::uint64_t end = 0;
  std::string failure;

  template <class Inspector>
  friend auto inspect(Inspector& f, report_taken& x) {
    return f(x.end, x.failure);
  }
};

} // namespace dlrun::protocol
