#include "kernels/cuda/elementwise.hpp"

#include "kernels/cuda/fours.hpp"

#include <cmath>
#include <cstdint>

namespace dlrun::kernels::cuda {
namespace {

/// What takes single floats, for four.
template <class Function>
struct one_by_one {
  Function function;
  __device__ four operator()(std::int64_t, const four& a, const four& b) const {
    four out;
    for (int k = 0; k < 4; ++k) out.v[k] = function(a.v[k], b.v[k]);
    return out;
  }
};

template <class Function>
void run_floats(queue on, const Function& function, const float* a, const float* b, float* to,
                std::int64_t count) {
  run_fours<float>(on, one_by_one<Function>{function}, a, b, to, count);
}
template <class Function>
void run_each(queue on, precision stored, const Function& function, const void* a, const void* b, void* to,
              std::int64_t count) {
  run_fours(on, stored, one_by_one<Function>{function}, a, b, to, count);
}

// Functions of one or two floats are plain structs and no lambdas, so that both compilers take
// them.

struct constant {
  float value;
  __device__ float operator()(float, float) const { return value; }
};
struct itself {
  __device__ float operator()(float x, float) const { return x; }
};
struct sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct times {
  __device__ float operator()(float a, float b) const { return a * b; }
};
struct relu {
  __device__ float operator()(float x, float) const { return x <= 0.0F ? 0.0F : x; }
};
struct relu_slope {
  __device__ float operator()(float y, float dy) const { return y <= 0.0F ? 0.0F : dy; }
};

/// Of dropout: a group's four numbers come from one call of the stream.
struct masked {
  const slot_key* key;
  std::uint32_t layer;
  float p, scale;
  random_stream stream{0, random_purpose::dropout, 0, 0, 0}; ///< since begin() the one of *key
  __device__ void begin() {
    stream = random_stream(key->seed, random_purpose::dropout, key->step, key->slot, layer);
  }
  __device__ four operator()(std::int64_t group, const four& from, const four&) const {
    const auto words = stream.words(static_cast<std::uint64_t>(group));
    four out;
    for (std::size_t k = 0; k < 4; ++k)
      out.v[k] = from.v[k] * (random_stream::uniform(words[k]) < p ? 0.0F : scale);
    return out;
  }
};

// ---- smooth activations: the functions of kernels/cpu/activations.cpp

constexpr float root_half = 0.70710678F;       // sqrt(1/2)
constexpr float density_at_zero = 0.39894228F; // 1 / sqrt(2 pi)
constexpr float tanh_scale = 0.79788456F;      // sqrt(2 / pi)
constexpr float tanh_cubic = 0.044715F;

__device__ float logistic(float x) { return 1.0F / (1.0F + std::exp(-x)); }

/// Of the standard normal distribution.
__device__ float normal_cumulative(float x) { return 0.5F * (1.0F + std::erf(x * root_half)); }

__device__ float tanh_inside(float x) { return std::tanh(tanh_scale * (x + tanh_cubic * x * x * x)); }

struct activated {
  cpu::activation kind;
  float slope;
  __device__ float operator()(float v, float) const {
    switch (kind) {
    case cpu::activation::gelu: return v * normal_cumulative(v);
    case cpu::activation::gelu_tanh: return 0.5F * v * (1.0F + tanh_inside(v));
    case cpu::activation::silu: return v * logistic(v);
    case cpu::activation::sigmoid: return logistic(v);
    case cpu::activation::tanh: return std::tanh(v);
    case cpu::activation::leaky_relu: return v > 0.0F ? v : slope * v;
    }
    return v;
  }
};

__device__ float gelu_tanh_slope(float x) {
  const float t = tanh_inside(x);
  const float inner = tanh_scale * (1.0F + 3.0F * tanh_cubic * x * x);
  return 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * inner;
}

__device__ float silu_slope(float x) {
  const float s = logistic(x);
  return s * (1.0F + x * (1.0F - s));
}

/// dy times the slope at x; or, where cpu::slope_follows_from_output(), the one where y is `v`.
struct activated_slope {
  cpu::activation kind;
  float slope;
  __device__ float at(float v) const {
    switch (kind) {
    case cpu::activation::gelu: return normal_cumulative(v) + v * density_at_zero * std::exp(-0.5F * v * v);
    case cpu::activation::gelu_tanh: return gelu_tanh_slope(v);
    case cpu::activation::silu: return silu_slope(v);
    case cpu::activation::sigmoid: return v * (1.0F - v);
    case cpu::activation::tanh: return 1.0F - v * v;
    case cpu::activation::leaky_relu: return v > 0.0F ? 1.0F : slope;
    }
    return v;
  }
  __device__ float operator()(float v, float dy) const { return dy * at(v); }
};

} // namespace

void run(queue on, const fill& what) {
  run_floats(on, constant{what.value}, nullptr, nullptr, what.to, what.count);
}
void run(queue on, const copy& what) { run_floats(on, itself{}, what.from, nullptr, what.to, what.count); }
void run(queue on, const add_floats& what) {
  run_floats(on, sum{}, what.sum, what.part, what.sum, what.count);
}
void run(queue on, precision stored, const narrow& what) {
  with_number(stored, [&]<class Number>(Number) {
    run_fours<float>(on, one_by_one<itself>{}, what.from, nullptr, static_cast<Number*>(what.to), what.count);
  });
}
void run(queue on, precision stored, const widen& what) {
  with_number(stored, [&]<class Number>(Number) {
    run_fours<Number>(on, one_by_one<itself>{}, static_cast<const Number*>(what.from), nullptr, what.to,
                      what.count);
  });
}
void run(queue on, precision stored, const clear_activations& what) {
  run_each(on, stored, constant{0.0F}, nullptr, nullptr, what.to, what.count);
}
void run(queue on, precision stored, const copy_activations& what) {
  run_each(on, stored, itself{}, what.from, nullptr, what.to, what.count);
}
void run(queue on, precision stored, const add& what) {
  run_each(on, stored, sum{}, what.a, what.b, what.to, what.count);
}
void run(queue on, precision stored, const multiply& what) {
  run_each(on, stored, times{}, what.a, what.b, what.to, what.count);
}
void run(queue on, precision stored, const relu_forward& what) {
  run_each(on, stored, relu{}, what.x, nullptr, what.y, what.count);
}
void run(queue on, precision stored, const relu_backward& what) {
  run_each(on, stored, relu_slope{}, what.y, what.dy, what.dx, what.count);
}
void run(queue on, precision stored, const activate_forward& what) {
  run_each(on, stored, activated{what.kind, what.slope}, what.x, nullptr, what.y, what.count);
}
void run(queue on, precision stored, const activate_backward& what) {
  const void* const value = cpu::slope_follows_from_output(what.kind) ? what.y : what.x;
  run_each(on, stored, activated_slope{what.kind, what.slope}, value, what.dy, what.dx, what.count);
}
void run(queue on, precision stored, const dropout& what) {
  run_fours(on, stored, masked{what.key, what.layer, what.p, what.scale}, what.from, nullptr, what.to,
            what.count);
}

} // namespace dlrun::kernels::cuda
