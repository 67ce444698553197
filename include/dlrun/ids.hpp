/// Strong ids: a step cannot be passed where a version is expected. One word, one meaning
/// (docs/architecture.md, vocabulary).
#pragma once

#include <compare>
#include <cstdint>
#include <fmt/format.h>
#include <functional>

namespace dlrun {

/// An integer with one meaning, which its `Tag` names. Compares and hashes like its representation.
/// Has no arithmetic, but for the conversions between steps and versions below.
template <class Tag, class Representation>
struct strong_id {
  using representation = Representation;
  Representation value{};

  constexpr auto operator<=>(const strong_id&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, strong_id& x) {
    return f(x.value);
  }
};

/// Number of an optimizer update, 0-based. Step u turns version u into version u + 1.
using step_id = strong_id<struct step_tag, std::uint64_t>;
/// The parameters after that many steps; version 0 is the initialisation.
using version_id = strong_id<struct version_tag, std::uint64_t>;
/// A microbatch's place 0..K-1 in its step.
using slot_id = strong_id<struct slot_tag, std::uint32_t>;
/// Index of a worker, 0-based. A restart keeps the index and gets a new incarnation.
using worker_id = strong_id<struct worker_tag, std::uint32_t>;
/// Index of a parameter-server shard, 0-based.
using ps_shard_id = strong_id<struct ps_shard_tag, std::uint32_t>;
/// Fencing number of one start of a role; grows with every start.
using incarnation = strong_id<struct incarnation_tag, std::uint64_t>;
/// Number of a history of the training; a rewind starts a new one (PostgreSQL's meaning of the
/// word).
using timeline_id = strong_id<struct timeline_tag, std::uint64_t>;

/// The version that `step` starts from.
constexpr version_id version_before(step_id step) { return {step.value}; }
/// The version that `step` produces.
constexpr version_id version_after(step_id step) { return {step.value + 1}; }
/// The step that starts from `version`.
constexpr step_id step_from(version_id version) { return {version.value}; }

} // namespace dlrun

template <class Tag, class Representation>
struct std::hash<dlrun::strong_id<Tag, Representation>> {
  std::size_t operator()(const dlrun::strong_id<Tag, Representation>& id) const noexcept {
    return std::hash<Representation>{}(id.value);
  }
};

template <class Tag, class Representation>
struct fmt::formatter<dlrun::strong_id<Tag, Representation>> : fmt::formatter<Representation> {
  template <class Context>
  auto format(const dlrun::strong_id<Tag, Representation>& id, Context& context) const {
    return fmt::formatter<Representation>::format(id.value, context);
  }
};
