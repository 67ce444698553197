#include "actors/worker/subtree_sum.hpp"

namespace dlrun::worker {

subtree_sum::subtree_sum(engine::computer& computer, std::size_t floats)
    : computer_{computer}
    , floats_{floats} {}

result<void> subtree_sum::run(protocol::slot_range slots, const slot_gradient& compute,
                              engine::computer_vector& out, std::size_t depth, const progress& tell) {
  if (slots.size() == 1) return compute(slots.begin, out, tell);
  const auto [left, right] = protocol::reduction_tree::children(slots);
  if (auto done = run(left, compute, out, depth, nullptr); !done) return done;
  const auto other = beside(depth);
  if (!other) return tl::unexpected(other.error());
  std::uint64_t end = floats_; // of what is not added yet
  const auto add_from = [this, &out, &other, &end](std::uint64_t from) {
    computer_.add(out, **other, from, end);
    end = from;
  };
  const auto on_part = [&add_from, &tell](std::uint64_t from) {
    add_from(from);
    tell(from);
  };
  if (auto done = run(right, compute, **other, depth + 1, tell ? on_part : progress{}); !done) return done;
  add_from(0);
  return {};
}

result<engine::computer_vector*> subtree_sum::beside(std::size_t depth) {
  while (beside_.size() <= depth) {
    auto made = computer_.make_vector(floats_);
    if (!made) return tl::unexpected(made.error());
    beside_.push_back(std::move(*made));
  }
  return beside_[depth].get();
}

} // namespace dlrun::worker
