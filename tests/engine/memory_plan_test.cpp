#include "engine/memory_plan.hpp"

#include <gtest/gtest.h>
#include <random>

namespace dlrun::engine {
namespace {

using kind = memory_plan::pass_kind;
constexpr auto model_input = planned_stage::reads_records;
constexpr memory_use needs_nothing{.inputs_on_way_back = false, .output_on_way_back = false};
constexpr memory_use in_place{.inputs_on_way_back = false, .output_on_way_back = false, .in_place = true};

planned_stage stage(std::vector<std::int32_t> reads, std::size_t floats, memory_use use = {}) {
  return {.reads = std::move(reads), .output_floats = floats, .learns = true, .use = use};
}

TEST(memory_plan, an_evaluation_needs_no_more_than_two_outputs_at_a_time) {
  const std::vector<planned_stage> chain = {stage({model_input}, 64), stage({0}, 64), stage({1}, 64),
                                            stage({2}, 64)};
  EXPECT_EQ(memory_plan(chain, kind::forward, 0).floats(), 128U);
}

TEST(memory_plan, the_way_back_keeps_the_outputs_that_it_reads_and_no_others) {
  const std::vector<planned_stage> keeps_all = {stage({model_input}, 64), stage({0}, 64), stage({1}, 64)};
  EXPECT_EQ(memory_plan(keeps_all, kind::forward_backward, 0).floats(), 3 * 64U + 2 * 64U);
  const std::vector<planned_stage> keeps_none = {
      stage({model_input}, 64, needs_nothing), stage({0}, 64, needs_nothing), stage({1}, 64, needs_nothing)};
  EXPECT_EQ(memory_plan(keeps_none, kind::forward_backward, 0).floats(), 2 * 64U);
}

TEST(memory_plan, a_stage_works_in_place_where_nobody_else_needs_its_input) {
  std::vector<planned_stage> stages = {stage({model_input}, 64, needs_nothing), stage({0}, 64, in_place),
                                       stage({1}, 64, needs_nothing)};
  const memory_plan alone(stages, kind::forward_backward, 0);
  EXPECT_EQ(alone.output(1), alone.output(0));
  EXPECT_EQ(alone.part(1, 0), alone.output_gradient(1)) << "nor on the way back";
  stages[2].reads = {0, 1}; // reads what was there before as well
  const memory_plan shared(stages, kind::forward_backward, 0);
  EXPECT_NE(shared.output(1), shared.output(0));
  stages = {stage({model_input}, 64), stage({0}, 64, in_place)};
  stages[0].use.inputs_on_way_back = false; // but its own output, which it reads on the way back
  const memory_plan kept(stages, kind::forward_backward, 0);
  EXPECT_NE(kept.output(1), kept.output(0));
}

TEST(memory_plan, a_stage_that_reads_an_output_twice_does_not_write_over_it) {
  const std::vector<planned_stage> stages = {stage({model_input}, 64, needs_nothing),
                                             stage({0, 0, 0}, 64, in_place)};
  const memory_plan plan(stages, kind::forward_backward, 0);
  EXPECT_NE(plan.output(1), plan.output(0));
  EXPECT_TRUE(plan.is_first_part(1, 2));
  EXPECT_FALSE(plan.is_first_part(1, 1));
  EXPECT_FALSE(plan.is_first_part(1, 0));
}

TEST(memory_plan, all_lies_at_boundaries_of_64_bytes) {
  const std::vector<planned_stage> stages = {stage({model_input}, 3), stage({0}, 17), stage({1}, 1)};
  const memory_plan plan(stages, kind::forward_backward, 5);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    EXPECT_EQ(plan.output(s) % 16, 0U);
    EXPECT_EQ(plan.output_gradient(s) % 16, 0U);
  }
  EXPECT_EQ(plan.records() % 16, 0U);
  EXPECT_EQ(plan.floats() % 16, 0U);
}

/// Random graphs whose pass is played through: each float in memory remembers what was written
/// there last, so that whoever reads what another has overwritten finds out.
class played_pass {
public:
  explicit played_pass(unsigned seed)
      : random_(seed)
      , stages_(make_stages())
      , plan_(stages_, kind::forward_backward, record_floats)
      , owner_(plan_.floats(), 0) {}

  void play() {
    write(plan_.records(), record_floats, mark_of_output(model_input));
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      read_inputs(s);
      write(plan_.output(s), stages_[s].output_floats, mark_of_output(static_cast<std::int32_t>(s)));
    }
    const auto outputs = stages_.size() - 1;
    read(plan_.output(outputs), stages_[outputs].output_floats,
         mark_of_output(static_cast<std::int32_t>(outputs)));
    write_gradient(outputs, plan_.output_gradient(outputs));
    for (std::size_t s = stages_.size(); s-- > 0;)
      if (stages_[s].learns) pass_back(s);
  }

private:
  static constexpr std::size_t record_floats = 40;

  std::vector<planned_stage> make_stages() {
    std::vector<planned_stage> stages;
    const auto count = 2 + random_() % 8;
    for (std::size_t s = 0; s < count; ++s) {
      planned_stage made;
      // The stage before is always read, so that none is left over.
      made.reads = {static_cast<std::int32_t>(s) - 1};
      while (random_() % 3 == 0) made.reads.push_back(static_cast<std::int32_t>(random_() % (s + 1)) - 1);
      std::ranges::shuffle(made.reads, random_);
      made.output_floats = 16 * (1 + random_() % 4);
      made.use = {random_() % 2 == 0, random_() % 2 == 0, random_() % 2 == 0};
      made.learns = random_() % 3 != 0;
      for (const auto input : made.reads)
        made.learns = made.learns || (input != model_input && stages[static_cast<std::size_t>(input)].learns);
      stages.push_back(std::move(made));
    }
    stages.back().learns = true;
    return stages;
  }

  int mark_of_output(std::int32_t position) const { return position + 2; }
  int mark_of_gradient(std::size_t position) const { return 1000 + static_cast<int>(position); }
  int mark_of_part(std::size_t reader, std::size_t input) const {
    return 2000 + 100 * static_cast<int>(reader) + static_cast<int>(input);
  }

  void write(std::size_t offset, std::size_t floats, int mark) {
    ASSERT_LE(offset + floats, owner_.size());
    std::fill_n(owner_.begin() + static_cast<std::ptrdiff_t>(offset), floats, mark);
  }
  void read(std::size_t offset, std::size_t floats, int mark) const {
    for (std::size_t i = offset; i < offset + floats; ++i) ASSERT_EQ(owner_[i], mark);
  }
  void read_inputs(std::size_t s) const {
    for (const auto input : stages_[s].reads)
      if (input == model_input)
        read(plan_.records(), record_floats, mark_of_output(model_input));
      else
        read(plan_.output(static_cast<std::size_t>(input)),
             stages_[static_cast<std::size_t>(input)].output_floats, mark_of_output(input));
  }
  void write_gradient(std::size_t s, std::size_t offset) {
    write(offset, stages_[s].output_floats, mark_of_gradient(s));
  }
  void pass_back(std::size_t s) {
    const auto& stage = stages_[s];
    if (stage.use.inputs_on_way_back) read_inputs(s);
    if (stage.use.output_on_way_back)
      read(plan_.output(s), stage.output_floats, mark_of_output(static_cast<std::int32_t>(s)));
    read(plan_.output_gradient(s), stage.output_floats, mark_of_gradient(s));
    // All parts are there at the same time.
    const auto floats_of = [&](std::size_t i) {
      return stages_[static_cast<std::size_t>(stage.reads[i])].output_floats;
    };
    const auto learns = [&](std::size_t i) {
      return stage.reads[i] != model_input && stages_[static_cast<std::size_t>(stage.reads[i])].learns;
    };
    for (std::size_t i = 0; i < stage.reads.size(); ++i)
      if (learns(i)) write(plan_.part(s, i), floats_of(i), mark_of_part(s, i));
    for (std::size_t i = 0; i < stage.reads.size(); ++i)
      if (learns(i)) read(plan_.part(s, i), floats_of(i), mark_of_part(s, i));
    for (std::size_t i = stage.reads.size(); i-- > 0;) {
      if (!learns(i)) continue;
      const auto read_stage = static_cast<std::size_t>(stage.reads[i]);
      if (plan_.is_first_part(s, i))
        EXPECT_EQ(plan_.part(s, i), plan_.output_gradient(read_stage));
      else
        read(plan_.output_gradient(read_stage), floats_of(i), mark_of_gradient(read_stage));
      write_gradient(read_stage, plan_.output_gradient(read_stage));
    }
  }

  std::mt19937 random_;
  std::vector<planned_stage> stages_;
  memory_plan plan_;
  std::vector<int> owner_; ///< of each float: the mark of what it belongs to
};

TEST(memory_plan, of_random_graphs_nothing_is_overwritten_that_is_still_needed) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    played_pass(seed).play();
    ASSERT_FALSE(::testing::Test::HasFatalFailure()) << "seed " << seed;
  }
}

} // namespace
} // namespace dlrun::engine
