// Steps that a device has prepared, against the same one by one.
#include "tests/kernels_cuda/same_on_all.hpp"

#include <dlrun/random.hpp>

namespace dlrun::kernels::cuda {
namespace {

class graphs : public on_each_device {};
DLRUN_ON_EACH_DEVICE(graphs);

/// A vector and what steps make of it: some of them need room for partial sums, some a library.
struct small_chain {
  static constexpr std::int64_t rows = 40, columns = 12, out = 5;
  static constexpr cpu::convolution_geometry geometry{4, 6, 4, 3, 6, 4, 3, 1, 1}; ///< of 5 records
  static constexpr std::int64_t filter = 3 * 3 * 3 * 4, pixels = 5 * 6 * 4 * 3;

  explicit small_chain(on_device& there)
      : x{there.put(ordinary_floats(rows * columns, 1))}
      , w{there.put(ordinary_floats(out * columns, 2))}
      , row{there.put(ordinary_floats(out, 3))}
      , v{there.put(ordinary_floats(filter, 4))}
      , key{there.put(std::vector<slot_key>{{7, 3, 4}})}
      , masked{there.room<float>(rows * columns)}
      , y{there.room<float>(rows * out)}
      , z{there.room<float>(pixels)}
      , sums{there.room<float>(out)} {}

  std::vector<step> steps() const {
    return {dropout{key, 5, 0.4F, 1.0F / 0.6F, x, masked, rows * columns},
            convolution{convolution::pass::forward, geometry, 5, masked, v, z},
            product{rows, out, columns, false, true, masked, w, row, y, false, true},
            sum_columns{rows, out, y, sums}};
  }
  std::vector<float> all(on_device& there) const {
    return joined({there.get(masked, rows * columns), there.get(y, rows * out), there.get(z, pixels),
                   there.get(sums, out)});
  }
  /// So that nothing is left of a run.
  void spoil(on_device& there) const {
    there.run(fill{masked, rows * columns, NAN});
    there.run(fill{y, rows * out, NAN});
    there.run(fill{z, pixels, NAN});
    there.run(fill{sums, out, NAN});
  }

  float *x, *w, *row, *v;
  slot_key* key;
  float *masked, *y, *z, *sums;
};

void run_each(on_device& there, lane on, const std::vector<step>& steps) {
  for (const auto& one : steps) there.get().run(on, one);
  ASSERT_TRUE(there.get().finish(on));
}

std::unique_ptr<graph> graph_of(on_device& there, lane on, const std::vector<step>& steps) {
  auto made = there.get().make_graph(on, steps);
  EXPECT_TRUE(made) << (made ? "" : made.error().message);
  return made ? std::move(*made) : nullptr;
}

void run_graph(on_device& there, lane on, graph& what) {
  there.get().run(what);
  ASSERT_TRUE(there.get().finish(on));
}

TEST_P(graphs, give_the_bits_of_their_steps_in_either_lane_and_as_often_as_wanted) {
  for (const auto on : {lane::compute, lane::side}) {
    on_device there(GetParam());
    const small_chain chain(there);
    run_each(there, on, chain.steps());
    const auto wanted = chain.all(there);
    const auto made = graph_of(there, on, chain.steps());
    for (int i = 0; i < 3; ++i) {
      chain.spoil(there);
      run_graph(there, on, *made);
      expect_same_bits(chain.all(there), wanted);
    }
  }
}

TEST_P(graphs, do_nothing_when_they_are_made) {
  on_device there(GetParam());
  const small_chain chain(there);
  run_each(there, lane::compute, chain.steps());
  chain.spoil(there);
  const auto before = chain.all(there);
  const auto made = graph_of(there, lane::compute, chain.steps());
  ASSERT_TRUE(there.get().finish(lane::compute));
  expect_same_bits(chain.all(there), before);
}

/// Of values, and of the key that random numbers are drawn with.
TEST_P(graphs, read_what_lies_at_their_addresses_when_they_run) {
  on_device there(GetParam());
  const small_chain chain(there);
  run_each(there, lane::compute, chain.steps());
  const auto before = chain.all(there);
  const auto made = graph_of(there, lane::compute, chain.steps());
  const slot_key other{7, 3, 5};
  const auto values = ordinary_floats(small_chain::rows * small_chain::columns, 9);
  there.get().upload(lane::compute, &other, chain.key, sizeof(other));
  there.get().upload(lane::compute, values.data(), chain.x, values.size() * sizeof(float));
  run_graph(there, lane::compute, *made);
  const auto got = chain.all(there);
  run_each(there, lane::compute, chain.steps());
  expect_same_bits(got, chain.all(there));
  EXPECT_NE(got, before);
}

/// Later steps may want more room for partial sums, or for a library: then it moves.
TEST_P(graphs, stay_good_when_the_memory_that_steps_compute_in_moves) {
  on_device there(GetParam());
  const small_chain chain(there);
  run_each(there, lane::compute, chain.steps());
  const auto wanted = chain.all(there);
  const auto made = graph_of(there, lane::compute, chain.steps());
  const std::int64_t rows = 3000, columns = 700;
  float *const much = there.put(ordinary_floats(rows * columns, 4)), *const sums = there.room<float>(columns);
  for (int i = 1; i <= 3; ++i) {
    there.run(sum_columns{rows / 3 * i, columns, much, sums});
    chain.spoil(there);
    run_graph(there, lane::compute, *made);
    expect_same_bits(chain.all(there), wanted);
  }
}

TEST_P(graphs, are_as_far_as_events_say) {
  on_device there(GetParam());
  auto& device = there.get();
  constexpr std::int64_t count = 5000;
  float *const a = there.room<float>(count), *const b = there.room<float>(count),
               *const c = there.room<float>(count);
  const std::vector<step> doubled{fill{a, count, 1.0F}, add_floats{a, a, count}, add_floats{a, a, count}};
  const std::vector<step> taken{copy{a, b, count}, add_floats{b, b, count}};
  run_each(there, lane::compute, doubled);
  run_each(there, lane::side, taken);
  const auto first = graph_of(there, lane::compute, doubled), second = graph_of(there, lane::side, taken);
  const auto made = std::move(device.make_event().value()), read = std::move(device.make_event().value());
  for (int i = 0; i < 10; ++i) {
    device.wait(lane::compute, *read);
    device.run(*first);
    device.record(lane::compute, *made);
    device.wait(lane::side, *made);
    device.run(*second);
    device.record(lane::side, *read);
    device.wait(lane::compute, *read);
    device.run(lane::compute, copy{b, c, count});
    device.run(lane::compute, fill{a, count, 77.0F});
  }
  ASSERT_TRUE(device.finish(lane::side));
  ASSERT_TRUE(device.finish(lane::compute));
  expect_same_bits(there.get(c, count), std::vector<float>(count, 8.0F));
}

TEST_P(graphs, may_be_made_while_others_wait_in_the_lane) {
  on_device there(GetParam());
  const small_chain chain(there);
  run_each(there, lane::compute, chain.steps());
  const auto wanted = chain.all(there);
  std::vector<std::unique_ptr<graph>> all;
  for (int i = 0; i < 5; ++i) {
    all.push_back(graph_of(there, lane::compute, chain.steps()));
    there.get().run(lane::compute, fill{chain.sums, small_chain::out, NAN});
    there.get().run(*all.back());
  }
  ASSERT_TRUE(there.get().finish(lane::compute));
  expect_same_bits(chain.all(there), wanted);
}

} // namespace
} // namespace dlrun::kernels::cuda
