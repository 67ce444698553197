#include "kernels/cpu/inner_product.hpp"

#include <unordered_map>

namespace dlrun::kernels::cpu {
namespace {

using tag = dnnl::memory::format_tag;

// Fewer records are multiplied faster without packing the weights for it.
constexpr std::int64_t product_records_min = 16;

dnnl::memory::desc plain(dnnl::memory::dims dims, tag layout) {
  return {std::move(dims), dnnl::memory::data_type::f32, layout};
}

template <class Description>
void check_fast(const Description& description) {
  DLRUN_CHECK(!is_reference(description.impl_info_str()), "oneDNN offers only {} for a plain inner product",
              description.impl_info_str());
}

} // namespace

inner_product::inner_product(onednn& context, std::int64_t in, std::int64_t out, bool bias)
    : context_(context)
    , in_(in)
    , out_(out)
    , bias_(bias)
    , w_(plain({out, in}, tag::ab))
    , b_(plain({out}, tag::a)) {}

/// The forward pass as a product of matrices. Its code packs the weights as it goes, which takes no
/// longer than what oneDNN has for plain inner products, and for some widths, as 3136, a third of
/// the time; for few records it takes longer. Nothing where that code is not there.
std::optional<inner_product::primitives> inner_product::try_matmul(const dnnl::memory::desc& x,
                                                                   const dnnl::memory::desc& y) const {
  if (x.dims()[0] < product_records_min) return std::nullopt;
  const auto w = plain({in_, out_}, tag::ba), b = plain({1, out_}, tag::ab);
  const auto d = bias_ ? dnnl::matmul::desc(x, w, b, y) : dnnl::matmul::desc(x, w, y);
  const dnnl::matmul::primitive_desc description(d, context_.engine);
  if (!std::string_view(description.impl_info_str()).starts_with("brg")) return std::nullopt;
  return primitives{dnnl::matmul(description), w, b, std::nullopt, std::nullopt, x, y};
}

dnnl::inner_product_forward::primitive_desc
inner_product::describe_forward(const dnnl::memory::desc& x, const dnnl::memory::desc& y) const {
  using forward = dnnl::inner_product_forward;
  const auto kind = dnnl::prop_kind::forward_training;
  const auto d = bias_ ? forward::desc(kind, x, w_, b_, y) : forward::desc(kind, x, w_, y);
  return {d, context_.engine};
}

inner_product::primitives inner_product::make(std::int64_t batch) const {
  const auto x = plain({batch, in_}, tag::ab);
  const auto y = plain({batch, out_}, tag::ab);
  if (auto product = try_matmul(x, y)) return std::move(*product);
  const auto description = describe_forward(x, y);
  check_fast(description);
  return {dnnl::inner_product_forward(description), w_, b_, std::nullopt, std::nullopt, x, y};
}

void inner_product::make_backward(primitives& p) const {
  using data = dnnl::inner_product_backward_data;
  using weights = dnnl::inner_product_backward_weights;
  const auto hint = describe_forward(p.x, p.y);
  const data::primitive_desc data_description({p.x, w_, p.y}, context_.engine, hint);
  const auto d = bias_ ? weights::desc(p.x, w_, b_, p.y) : weights::desc(p.x, w_, p.y);
  const weights::primitive_desc weights_description(d, context_.engine, hint);
  check_fast(data_description);
  check_fast(weights_description);
  p.backward_data.emplace(data_description);
  p.backward_weights.emplace(weights_description);
}

bool inner_product::is_own(std::int64_t batch) const {
  return context_.own_avx2_code && batch >= product_records_min;
}

void inner_product::own_forward(std::int64_t batch, const float* x, const float* w, const float* b,
                                float* y) {
  product_(batch, out_, in_, {x, in_, 1}, {w, 1, in_}, y);
  if (!bias_) return;
  for (std::int64_t record = 0; record < batch; ++record)
    for (std::int64_t o = 0; o < out_; ++o) y[record * out_ + o] += b[o];
}

void inner_product::own_backward(std::int64_t batch, const float* x, const float* w, const float* dy,
                                 float* dw, float* db, float* dx) {
  product_(out_, in_, batch, {dy, 1, out_}, {x, in_, 1}, dw);
  if (dx) product_(batch, in_, out_, {dy, out_, 1}, {w, in_, 1}, dx);
  if (!bias_) return;
  column_sums_.assign(static_cast<std::size_t>(out_), 0.0);
  double* const sums = column_sums_.data();
  for (std::int64_t record = 0; record < batch; ++record)
    for (std::int64_t o = 0; o < out_; ++o) sums[o] += static_cast<double>(dy[record * out_ + o]);
  for (std::int64_t o = 0; o < out_; ++o) db[o] = static_cast<float>(sums[o]);
}

void inner_product::forward(std::int64_t batch, const float* x, const float* w, const float* b, float* y) {
  if (is_own(batch)) return own_forward(batch, x, w, b, y);
  auto& p = cache_.get(batch, [this](std::int64_t n) { return make(n); });
  std::unordered_map<int, dnnl::memory> arguments = {{DNNL_ARG_SRC, context_.view(p.x, x)},
                                                     {DNNL_ARG_WEIGHTS, context_.view(p.w, w)},
                                                     {DNNL_ARG_DST, context_.view(p.y, y)}};
  if (bias_) arguments.emplace(DNNL_ARG_BIAS, context_.view(p.b, b));
  p.forward.execute(context_.stream, arguments);
}

void inner_product::backward(std::int64_t batch, const float* x, const float* w, const float* dy, float* dw,
                             float* db, float* dx) {
  if (is_own(batch)) return own_backward(batch, x, w, dy, dw, db, dx);
  auto& p = cache_.get(batch, [this](std::int64_t n) { return make(n); });
  if (!p.backward_data) make_backward(p);
  const auto y_gradient = context_.view(p.y, dy);
  std::unordered_map<int, dnnl::memory> arguments = {{DNNL_ARG_SRC, context_.view(p.x, x)},
                                                     {DNNL_ARG_DIFF_DST, y_gradient},
                                                     {DNNL_ARG_DIFF_WEIGHTS, context_.view(w_, dw)}};
  if (bias_) arguments.emplace(DNNL_ARG_DIFF_BIAS, context_.view(b_, db));
  p.backward_weights->execute(context_.stream, arguments);
  if (!dx) return;
  p.backward_data->execute(context_.stream, {{DNNL_ARG_DIFF_DST, y_gradient},
                                             {DNNL_ARG_WEIGHTS, context_.view(w_, w)},
                                             {DNNL_ARG_DIFF_SRC, context_.view(p.x, dx)}});
}

} // namespace dlrun::kernels::cpu
