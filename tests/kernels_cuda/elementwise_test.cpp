#include "kernels/cpu/activations.hpp"
#include "kernels/cpu/elementwise.hpp"
#include "kernels/cpu/reduce.hpp"
#include "tests/kernels_cuda/on_device.hpp"

#include <algorithm>

namespace dlrun::kernels::cuda {
namespace {

class elementwise : public on_each_device {};
DLRUN_ON_EACH_DEVICE(elementwise);

TEST_P(elementwise, fill_writes_one_value_everywhere) {
  for (const auto size : awkward_sizes()) {
    on_device there(GetParam());
    float* const to = there.room<float>(size);
    there.run(fill{to, size, -0.0F});
    expect_same_bits(there.get(to, size), std::vector<float>(static_cast<std::size_t>(size), -0.0F));
  }
}

TEST_P(elementwise, copy_moves_every_bit) {
  for (const auto size : awkward_sizes()) {
    on_device there(GetParam());
    const auto from = some_floats(size, 1);
    float* const to = there.room<float>(size);
    there.run(copy{there.put(from), to, size});
    expect_same_bits(there.get(to, size), from);
  }
}

TEST_P(elementwise, add_and_multiply_have_the_bits_of_their_twins) {
  for (const auto size : awkward_sizes()) {
    on_device there(GetParam());
    const auto a = some_floats(size, 1), b = some_floats(size, 2);
    std::vector<float> sum(a.size()), product(a.size());
    cpu::add(a, b, sum);
    cpu::multiply(a, b, product);
    float *const x = there.put(a), *const y = there.put(b), *const to = there.room<float>(size);
    there.run(add{x, y, to, size});
    expect_same_bits(there.get(to, size), sum);
    there.run(multiply{x, y, to, size});
    expect_same_bits(there.get(to, size), product);
    there.run(add{x, y, x, size}); // in place
    expect_same_bits(there.get(x, size), sum);
  }
}

TEST_P(elementwise, relu_and_its_gradient_have_the_bits_of_their_twins) {
  for (const auto size : awkward_sizes()) {
    on_device there(GetParam());
    const auto x = some_floats(size, 1), dy = some_floats(size, 2);
    std::vector<float> y(x.size()), dx(x.size());
    cpu::relu(x, y);
    cpu::relu_backward(y, dy, dx);
    float *const at = there.put(x), *const gradient = there.put(dy);
    there.run(relu_forward{at, at, size});
    expect_same_bits(there.get(at, size), y);
    there.run(relu_backward{at, gradient, gradient, size});
    expect_same_bits(there.get(gradient, size), dx);
  }
}

constexpr cpu::activation all_kinds[] = {cpu::activation::gelu, cpu::activation::gelu_tanh,
                                         cpu::activation::silu, cpu::activation::sigmoid,
                                         cpu::activation::tanh, cpu::activation::leaky_relu};

TEST_P(elementwise, activations_are_those_of_their_twins) {
  for (const auto kind : all_kinds)
    for (const auto size : awkward_sizes()) {
      on_device there(GetParam());
      const auto x = some_floats(size, 1);
      std::vector<float> y(x.size());
      cpu::activate(kind, 0.1F, x, y);
      float* const at = there.put(x);
      there.run(activate_forward{kind, 0.1F, at, at, size});
      expect_same_functions(there.get(at, size), y);
    }
}

TEST_P(elementwise, gradients_of_activations_are_those_of_their_twins) {
  for (const auto kind : all_kinds)
    for (const auto size : awkward_sizes()) {
      on_device there(GetParam());
      const auto x = some_floats(size, 1), dy = some_floats(size, 2);
      std::vector<float> y(x.size()), dx(x.size());
      cpu::activate(kind, 0.1F, x, y);
      cpu::activate_backward(kind, 0.1F, x, y, dy, dx);
      // What the twin does not read may not be read here either.
      const bool of_output = cpu::slope_follows_from_output(kind);
      const float* const value = there.put(of_output ? y : x);
      float* const gradient = there.put(dy);
      there.run(activate_backward{kind, 0.1F, of_output ? nullptr : value, of_output ? value : nullptr,
                                  gradient, gradient, size});
      expect_same_functions(there.get(gradient, size), dx, dy);
    }
}

/// As the layer dropout draws its mask.
std::vector<float> masked(const random_stream& stream, float p, float scale, const std::vector<float>& from) {
  std::vector<float> mask(from.size()), to(from.size());
  for (std::size_t i = 0; i < mask.size(); ++i)
    mask[i] = random_stream::uniform(stream.words(i / 4)[i % 4]) < p ? 0.0F : scale;
  cpu::multiply(from, mask, to);
  return to;
}

TEST_P(elementwise, dropout_has_the_bits_of_the_layer) {
  const random_stream stream(7, random_purpose::dropout, 3, 4, 5);
  for (const auto size : awkward_sizes()) {
    on_device there(GetParam());
    const auto from = some_floats(size, 1);
    float* const at = there.put(from);
    there.run(dropout{there.put(std::vector<slot_key>{{7, 3, 4}}), 5, 0.4F, 1.0F / 0.6F, at, at, size});
    expect_same_bits(there.get(at, size), masked(stream, 0.4F, 1.0F / 0.6F, from));
  }
}

/// Two vectors and their sum, each with floats before its first.
struct shifts {
  std::int64_t a, b, to;
};

TEST_P(elementwise, vectors_may_begin_at_any_float) {
  for (const auto& shift : std::vector<shifts>{{1, 0, 0}, {0, 2, 0}, {0, 0, 3}, {1, 1, 1}})
    for (const std::int64_t size : {0, 1, 6, 1025}) {
      on_device there(GetParam());
      const auto a = some_floats(size, 1), b = some_floats(size, 2);
      float* const x = there.room<float>(size + shift.a) + shift.a;
      float* const y = there.room<float>(size + shift.b) + shift.b;
      float* const to = there.put(std::vector<float>(static_cast<std::size_t>(size + shift.to), 5.0F));
      there.run(copy{there.put(a), x, size});
      there.run(copy{there.put(b), y, size});
      there.run(add{x, y, to + shift.to, size});
      std::vector<float> sum(a.size());
      cpu::add(a, b, sum);
      expect_same_bits(there.get(to + shift.to, size), sum);
      expect_same_bits(there.get(to, shift.to), std::vector<float>(static_cast<std::size_t>(shift.to), 5.0F));
    }
}

TEST_P(elementwise, what_lies_behind_the_last_element_stays) {
  for (std::int64_t size = 0; size < 9; ++size) {
    on_device there(GetParam());
    auto wanted = some_floats(12, 1);
    float* const to = there.put(wanted);
    there.run(fill{to, size, 3.0F});
    std::fill_n(wanted.begin(), size, 3.0F);
    expect_same_bits(there.get(to, 12), wanted);
  }
}

TEST_P(elementwise, more_elements_than_threads_of_a_grid_are_all_computed) {
  const std::int64_t size = std::int64_t{4} * 132 * 16 * 256 + 5;
  on_device there(GetParam());
  float* const to = there.room<float>(size);
  there.run(fill{to, size, 3.0F});
  expect_same_bits(there.get(to, size), std::vector<float>(static_cast<std::size_t>(size), 3.0F));
}

} // namespace
} // namespace dlrun::kernels::cuda
