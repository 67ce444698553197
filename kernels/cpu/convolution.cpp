#include "kernels/cpu/convolution.hpp"

#include <array>

namespace dlrun::kernels::cpu {
namespace {

using tag = dnnl::memory::format_tag;
using data_type = dnnl::memory::data_type;

/// Whether oneDNN 2.6 miscomputes with channels last. The generated code for strided kernels of one
/// pixel gathers the pixels first, in whole vectors of channels, and where the channels do not fill
/// them it writes beyond its memory: the results are wrong and the heap is damaged.
bool gathers_beyond_its_memory(const convolution_geometry& g) {
  constexpr std::int64_t vector_channels = 16; // of the widest instruction set
  return g.kernel == 1 && g.stride > 1 &&
         (g.in_channels % vector_channels != 0 || g.out_channels % vector_channels != 0);
}

} // namespace

struct convolution::layouts {
  tag x, y;

  /// Channels of y that lie together, 0 for all.
  std::int64_t block() const { return y == tag::nChw16c ? 16 : y == tag::nChw8c ? 8 : 0; }
};

convolution::convolution(onednn& context, const convolution_geometry& geometry, bool input_gradient,
                         output_layout output)
    : context_(context)
    , geometry_(geometry)
    , input_gradient_(input_gradient)
    , output_(output)
    , w_({geometry.out_channels, geometry.in_channels, geometry.kernel_height(), geometry.kernel},
         data_type::f32, tag::oihw)
    , b_({geometry.out_channels}, data_type::f32, tag::x) {
  if (context.own_avx2_code) weights_gradient_.emplace(geometry);
}

/// The three passes with activations in the given layouts, or nothing where oneDNN has no generated
/// code for one of them.
std::optional<convolution::primitives> convolution::try_layouts(std::int64_t batch,
                                                                const layouts& layouts) const try {
  using forward = dnnl::convolution_forward;
  using weights = dnnl::convolution_backward_weights;
  using data = dnnl::convolution_backward_data;
  const auto& g = geometry_;
  const auto direct = dnnl::algorithm::convolution_direct;
  const dnnl::memory::dims s{g.stride_height(), g.stride}, pad{g.padding_height(), g.padding};
  const dnnl::memory::dims x_dims{batch, g.in_channels, g.height, g.width};
  const dnnl::memory::dims y_dims{batch, g.out_channels, g.out_height, g.out_width};
  const dnnl::memory::desc x(x_dims, data_type::f32, layouts.x), y(y_dims, data_type::f32, layouts.y);
  const dnnl::memory::desc w(w_.dims(), data_type::f32, tag::any);
  const dnnl::memory::desc b = g.bias ? b_ : dnnl::memory::desc();

  const forward::primitive_desc f({dnnl::prop_kind::forward_training, direct, x, w, b, y, s, pad, pad},
                                  context_.engine);
  const weights::primitive_desc dw({direct, x, w, b, y, s, pad, pad}, context_.engine, f);
  if (is_reference(f.impl_info_str()) || is_reference(dw.impl_info_str())) return std::nullopt;
  // With one channel these are the same floats.
  const auto x_outside = g.in_channels == 1 && layouts.x == tag::nchw ? tag::nchw : tag::nhwc;
  const auto block = layouts.block();
  const bool blocked = output_ == output_layout::fastest && block != 0 && g.out_channels % block == 0;
  primitives p{.forward = forward(f),
               .backward_weights = weights(dw),
               .backward_data = std::nullopt,
               .x = {x_dims, data_type::f32, x_outside},
               .y = {y_dims, data_type::f32, blocked ? layouts.y : tag::nhwc},
               .block = blocked ? block : g.out_channels,
               .x_inside = {.layout = x},
               .y_inside = {.layout = y},
               .w_forward = {.layout = f.weights_desc()},
               .dw = {.layout = dw.diff_weights_desc()},
               .w_data = {}};
  if (input_gradient_) {
    const data::primitive_desc dx({direct, x, w, y, s, pad, pad}, context_.engine, f);
    if (is_reference(dx.impl_info_str())) return std::nullopt;
    p.backward_data.emplace(dx);
    p.w_data.layout = dx.weights_desc();
  }
  return p;
} catch (const dnnl::error& e) {
  if (e.status == dnnl_unimplemented) return std::nullopt;
  throw;
}

/// Whether code for blocks of 16 channels is the fastest: products of patches with channels last
/// want many channels. With few they take up to half as long again, and with one twice as long.
bool convolution::prefers_blocks() const {
  constexpr std::int64_t few = 32, block = 16;
  const auto& g = geometry_;
  return output_ == output_layout::fastest && !gathers_beyond_its_memory(g) && g.out_channels % block == 0 &&
         (g.in_channels == 1 || (g.in_channels % block == 0 && g.in_channels <= few));
}

convolution::primitives convolution::make(std::int64_t batch) const {
  // Channels last first, since that is what the caller has. Which of them has generated code
  // depends on the instruction set and the number of channels; the last, a matrix product on
  // unrolled patches, has on all.
  constexpr std::array<layouts, 6> candidates{{{tag::nhwc, tag::nhwc},
                                               {tag::nchw, tag::nhwc},
                                               {tag::nchw, tag::nChw16c},
                                               {tag::nChw16c, tag::nChw16c},
                                               {tag::nChw8c, tag::nChw8c},
                                               {tag::nchw, tag::nchw}}};
  constexpr std::array<layouts, 2> blocks{{{tag::nchw, tag::nChw16c}, {tag::nChw16c, tag::nChw16c}}};
  if (prefers_blocks())
    for (const auto& candidate : blocks)
      if (auto made = try_layouts(batch, candidate)) return std::move(*made);
  for (const auto& candidate : candidates) {
    if (gathers_beyond_its_memory(geometry_) && candidate.x != tag::nchw) continue;
    if (auto made = try_layouts(batch, candidate)) return std::move(*made);
  }
  throw dnnl::error(dnnl_unimplemented, "no generated code for this convolution in any layout");
}

convolution::primitives& convolution::for_batch(std::int64_t batch) {
  return cache_.get(batch, [this](std::int64_t n) { return make(n); });
}

std::int64_t convolution::block(std::int64_t batch) { return for_batch(batch).block; }

/// Where a pass finds or leaves the tensor: the caller's memory if that has the layout, else memory
/// of its own.
dnnl::memory convolution::room(inside& tensor, const dnnl::memory& outside) const {
  if (outside.get_desc() == tensor.layout) return outside;
  if (!tensor.memory) tensor.memory = dnnl::memory(tensor.layout, context_.engine);
  return tensor.memory;
}

dnnl::memory convolution::bring_in(inside& tensor, dnnl::memory outside) {
  auto memory = room(tensor, outside);
  copy(outside, memory);
  return memory;
}

/// Into the layout of `to`, unless they are one.
void convolution::copy(dnnl::memory from, dnnl::memory to) {
  if (from.get_data_handle() != to.get_data_handle())
    dnnl::reorder(from, to).execute(context_.stream, from, to);
}

void convolution::set_weights(const float* w) {
  weights_ = w;
  ++version_;
}

/// The weights as a pass wants them, reordered once for all passes of this batch size.
dnnl::memory convolution::weights(inside& layout) {
  DLRUN_CHECK(weights_ != nullptr, "a convolution without weights");
  const auto outside = context_.view(w_, weights_);
  if (layout.version == version_) return room(layout, outside);
  layout.version = version_;
  return bring_in(layout, outside);
}

void convolution::forward(std::int64_t batch, const float* x, const float* b, float* y) {
  auto& p = for_batch(batch);
  const auto out = context_.view(p.y, y);
  const auto inside_y = room(p.y_inside, out);
  std::unordered_map<int, dnnl::memory> arguments = {
      {DNNL_ARG_SRC, bring_in(p.x_inside, context_.view(p.x, x))},
      {DNNL_ARG_WEIGHTS, weights(p.w_forward)},
      {DNNL_ARG_DST, inside_y}};
  if (geometry_.bias) arguments.emplace(DNNL_ARG_BIAS, context_.view(b_, b));
  p.forward.execute(context_.stream, arguments);
  copy(inside_y, out);
}

void convolution::backward(std::int64_t batch, const float* x, const float* dy, float* dw, float* db,
                           float* dx) {
  if (weights_gradient_) {
    backward_weights(batch, x, dy, dw, db);
    if (dx) backward_data(batch, dy, dx);
    return;
  }
  auto& p = for_batch(batch);
  const auto y_gradient = bring_in(p.y_inside, context_.view(p.y, dy));
  weights_pass(p, x, y_gradient, dw, db);
  if (dx) data_pass(p, y_gradient, dx);
}

void convolution::backward_weights(std::int64_t batch, const float* x, const float* dy, float* dw,
                                   float* db) {
  auto& p = for_batch(batch);
  if (weights_gradient_) return (*weights_gradient_)(batch, x, dy, p.block, dw, db);
  weights_pass(p, x, bring_in(p.y_inside, context_.view(p.y, dy)), dw, db);
}

void convolution::backward_data(std::int64_t batch, const float* dy, float* dx) {
  auto& p = for_batch(batch);
  data_pass(p, bring_in(p.y_inside, context_.view(p.y, dy)), dx);
}

void convolution::weights_pass(primitives& p, const float* x, const dnnl::memory& y_gradient, float* dw,
                               float* db) {
  const auto w_out = context_.view(w_, dw);
  const auto w_inside = room(p.dw, w_out);
  std::unordered_map<int, dnnl::memory> arguments = {
      {DNNL_ARG_SRC, bring_in(p.x_inside, context_.view(p.x, x))},
      {DNNL_ARG_DIFF_DST, y_gradient},
      {DNNL_ARG_DIFF_WEIGHTS, w_inside}};
  if (geometry_.bias) arguments.emplace(DNNL_ARG_DIFF_BIAS, context_.view(b_, db));
  p.backward_weights.execute(context_.stream, arguments);
  copy(w_inside, w_out);
}

void convolution::data_pass(primitives& p, const dnnl::memory& y_gradient, float* dx) {
  DLRUN_CHECK(p.backward_data.has_value(), "this convolution was made without input gradient");
  const auto x_out = context_.view(p.x, dx);
  const auto inside_x = room(p.x_inside, x_out);
  p.backward_data->execute(context_.stream, {{DNNL_ARG_DIFF_DST, y_gradient},
                                             {DNNL_ARG_WEIGHTS, weights(p.w_data)},
                                             {DNNL_ARG_DIFF_SRC, inside_x}});
  copy(inside_x, x_out);
}

} // namespace dlrun::kernels::cpu
