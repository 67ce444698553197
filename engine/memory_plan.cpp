#include "engine/memory_plan.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <numeric>

namespace dlrun::engine {
namespace {

constexpr std::size_t boundary_floats = 16; // 64 bytes

/// The moments of a pass over `stages` stages: the records come at 0, then each stage's turn, then
/// the loss, then each stage's turn on the way back.
struct moments {
  std::size_t stages;

  std::uint32_t forward(std::size_t stage) const { return static_cast<std::uint32_t>(stage + 1); }
  std::uint32_t loss() const { return static_cast<std::uint32_t>(stages + 1); }
  std::uint32_t backward(std::size_t stage) const {
    return static_cast<std::uint32_t>(2 * stages + 1 - stage);
  }
};

std::size_t rounded_up(std::size_t floats) {
  return (floats + boundary_floats - 1) / boundary_floats * boundary_floats;
}

bool reads_once(const planned_stage& s, std::int32_t position) {
  return std::ranges::count(s.reads, position) == 1;
}

} // namespace

memory_plan::memory_plan(std::span<const planned_stage> stages, pass_kind kind, std::size_t record_floats)
    : outputs_(stages.size(), none)
    , gradients_(stages.size(), none)
    , parts_(stages.size()) {
  plan_forward(stages, kind, record_floats);
  if (kind == pass_kind::forward_backward) plan_backward(stages);
  place();
}

std::size_t memory_plan::add(std::size_t floats, moment first, moment last) {
  pieces_.push_back({rounded_up(floats), first, last});
  return pieces_.size() - 1;
}

std::size_t memory_plan::offset(std::size_t piece) const {
  DLRUN_CHECK(piece != none, "asked for the place of something that is not in this plan");
  return pieces_[piece].offset;
}

void memory_plan::plan_forward(std::span<const planned_stage> stages, pass_kind kind,
                               std::size_t record_floats) {
  const moments at{stages.size()};
  const bool way_back = kind == pass_kind::forward_backward;
  // The last use of what lies at a position; the outputs' is the loss.
  const auto last_use = [&](std::int32_t position, moment made) {
    auto last = made;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      if (!stages[s].computes || std::ranges::count(stages[s].reads, position) == 0) continue;
      const bool again = way_back && stages[s].learns && stages[s].use.inputs_on_way_back;
      last = std::max(last, again ? at.backward(s) : at.forward(s));
    }
    return last;
  };
  if (record_floats > 0) records_ = add(record_floats, 0, last_use(planned_stage::reads_records, 0));
  const auto piece_at = [this](std::int32_t position) {
    return position == planned_stage::reads_records ? records_ : outputs_[static_cast<std::size_t>(position)];
  };
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const auto& stage = stages[s];
    if (!stage.computes) continue;
    auto last = last_use(static_cast<std::int32_t>(s), at.forward(s));
    if (s + 1 == stages.size()) last = at.loss();
    if (way_back && stage.learns && stage.use.output_on_way_back) last = std::max(last, at.backward(s));
    // In place of an input that has its last use here.
    const auto input = piece_at(stage.reads.front());
    const bool in_place = stage.use.in_place && input != none && reads_once(stage, stage.reads.front()) &&
                          pieces_[input].last == at.forward(s) &&
                          pieces_[input].floats == rounded_up(stage.output_floats);
    outputs_[s] = in_place ? input : add(stage.output_floats, at.forward(s), last);
    if (in_place) pieces_[input].last = last;
  }
}

void memory_plan::plan_backward(std::span<const planned_stage> stages) {
  const moments at{stages.size()};
  const auto outputs = stages.size() - 1;
  gradients_[outputs] = add(stages[outputs].output_floats, at.loss(), at.backward(outputs));
  for (std::size_t s = stages.size(); s-- > 0;)
    if (stages[s].computes && stages[s].learns) plan_parts(stages, s);
}

/// The last reader of an output, and of its inputs the last, brings the first part of its gradient.
void memory_plan::plan_parts(std::span<const planned_stage> stages, std::size_t reader) {
  const moments at{stages.size()};
  const auto& stage = stages[reader];
  const auto now = at.backward(reader);
  parts_[reader].resize(stage.reads.size());
  for (std::size_t i = stage.reads.size(); i-- > 0;) {
    if (stage.reads[i] == planned_stage::reads_records) continue;
    const auto read = static_cast<std::size_t>(stage.reads[i]);
    if (!stages[read].learns) continue;
    const auto floats = stages[read].output_floats;
    if (gradients_[read] != none) {
      parts_[reader][i] = {add(floats, now, now), false};
      continue;
    }
    auto& own = pieces_[gradients_[reader]];
    const bool in_place = i == 0 && stage.use.in_place && own.last == now && own.floats == rounded_up(floats);
    if (in_place) own.last = at.backward(read);
    gradients_[read] = in_place ? gradients_[reader] : add(floats, now, at.backward(read));
    parts_[reader][i] = {gradients_[read], true};
  }
}

void memory_plan::place() {
  std::vector<std::size_t> order(pieces_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [this](std::size_t p) { return pieces_[p].floats; });
  std::vector<const piece*> placed; // by offset
  for (const auto number : order) {
    auto& p = pieces_[number];
    for (const auto* const other : placed) {
      if (other->last < p.first || p.last < other->first) continue;
      if (p.offset + p.floats <= other->offset) break;
      p.offset = std::max(p.offset, other->offset + other->floats);
    }
    floats_ = std::max(floats_, p.offset + p.floats);
    placed.insert(std::ranges::upper_bound(placed, p.offset, {}, &piece::offset), &p);
  }
}

} // namespace dlrun::engine
