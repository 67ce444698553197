#include "kernels/cuda/product.hpp"

#include "kernels/cuda/alignment.hpp"
#include "kernels/cuda/cuda_call.hpp"
#include "kernels/cuda/run_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace dlrun::kernels::cuda {
namespace {

/// What cuBLAS recommends for Hopper; plenty for sums that are split and added in order.
constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

result<void> lt_call(cublasStatus_t status, const product& what) {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  const bool memory = status == CUBLAS_STATUS_ALLOC_FAILED;
  return fail(memory ? error_code::limit_exceeded : error_code::system,
              fmt::format("product of ({}, {}) and ({}, {}): cuBLASLt says {}", what.m, what.k, what.k,
                          what.n, cublasLtGetStatusString(status)));
}

/// Sets `attribute` of a description, by one of cuBLASLt's functions for that.
template <class Setter, class Description, class Attribute, class Value>
void put(cublasStatus_t& status, Setter setter, Description description, Attribute attribute, Value value) {
  if (status == CUBLAS_STATUS_SUCCESS) status = setter(description, attribute, &value, sizeof value);
}

struct preference {
  cublasLtMatmulPreference_t raw = nullptr;
  preference() = default;
  ~preference() {
    if (raw != nullptr) static_cast<void>(cublasLtMatmulPreferenceDestroy(raw));
  }
  preference(const preference&) = delete;
  preference& operator=(const preference&) = delete;
};

/// Whether cuBLASLt adds the row: to bf16 it adds only bf16. Without a row there is nothing that it
/// could take relu of in the same step.
bool row_inside(const product& what, precision arithmetic) {
  return what.row != nullptr && arithmetic != precision::bf16;
}

/// In the workspace of this size, with pointers so aligned; parts of a sum are added as floats, in
/// one order.
cublasStatus_t describe(preference& wanted, std::uint32_t alignment) {
  auto status = cublasLtMatmulPreferenceCreate(&wanted.raw);
  const auto set = cublasLtMatmulPreferenceSetAttribute;
  put(status, set, wanted.raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace_bytes});
  put(status, set, wanted.raw, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  for (const auto operand :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    put(status, set, wanted.raw, operand, alignment);
  return status;
}

} // namespace

/// cuBLASLt's matrices are column-major: what is (rows, columns) here is (columns, rows) there. So
/// it is asked for c' (n, m) = b' a', and what is `first` there is b here.
struct products::plan {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, to = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  const bool relu_inside; ///< with the row

  explicit plan(bool relu)
      : relu_inside(relu) {}
  ~plan() {
    for (const auto layout : {first, second, to})
      if (layout != nullptr) static_cast<void>(cublasLtMatrixLayoutDestroy(layout));
    if (operation != nullptr) static_cast<void>(cublasLtMatmulDescDestroy(operation));
  }
  plan(const plan&) = delete;
  plan& operator=(const plan&) = delete;

  cublasStatus_t describe_operation(const product& what, std::uint32_t alignment, precision arithmetic) {
    const auto compute = arithmetic == precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    auto status = cublasLtMatmulDescCreate(&operation, compute, CUDA_R_32F);
    const auto set = cublasLtMatmulDescSetAttribute;
    put(status, set, operation, CUBLASLT_MATMUL_DESC_TRANSA, what.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    put(status, set, operation, CUBLASLT_MATMUL_DESC_TRANSB, what.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (!row_inside(what, arithmetic)) return status;
    put(status, set, operation, CUBLASLT_MATMUL_DESC_EPILOGUE,
        relu_inside ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS);
    // The suggestion depends on how the pointer is aligned: it sees no more than that.
    put(status, set, operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, std::uintptr_t{alignment});
    return status;
  }

  cublasStatus_t describe_layouts(const product& what, precision arithmetic) {
    const auto factors = arithmetic == precision::bf16 ? CUDA_R_16BF : CUDA_R_32F;
    const auto make = [](cublasLtMatrixLayout_t& layout, cudaDataType_t type, std::int64_t rows,
                         std::int64_t columns) {
      return cublasLtMatrixLayoutCreate(&layout, type, static_cast<std::uint64_t>(columns),
                                        static_cast<std::uint64_t>(rows), columns);
    };
    auto status =
        what.transpose_b ? make(first, factors, what.n, what.k) : make(first, factors, what.k, what.n);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    status = what.transpose_a ? make(second, factors, what.k, what.m) : make(second, factors, what.m, what.k);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    return make(to, what.c_is_floats ? CUDA_R_32F : factors, what.m, what.n);
  }

  cublasStatus_t choose(cublasLtHandle_t handle, std::uint32_t alignment) {
    preference wanted;
    auto status = describe(wanted, alignment);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    cublasLtMatmulHeuristicResult_t suggestion{};
    int found = 0;
    status = cublasLtMatmulAlgoGetHeuristic(handle, operation, first, second, to, to, wanted.raw, 1,
                                            &suggestion, &found);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (found == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
    algorithm = suggestion.algo;
    return suggestion.state;
  }
};

result<std::unique_ptr<products>> products::make(precision arithmetic) {
  cublasLtHandle_t handle = nullptr;
  const auto status = cublasLtCreate(&handle);
  if (status != CUBLAS_STATUS_SUCCESS)
    return fail(error_code::system,
                fmt::format("cuBLASLt does not start: {}", cublasLtGetStatusString(status)));
  return std::unique_ptr<products>(new products(handle, arithmetic));
}

products::products(cublasLtHandle_t handle, precision arithmetic)
    : handle_(handle)
    , arithmetic_(arithmetic) {}

products::~products() {
  plans_.clear();
  static_cast<void>(cublasLtDestroy(handle_));
}

result<std::unique_ptr<products::plan>> products::make_plan(const product& what, std::uint32_t alignment,
                                                            bool relu_inside) {
  auto made = std::make_unique<plan>(relu_inside);
  auto status = made->describe_operation(what, alignment, arithmetic_);
  if (status == CUBLAS_STATUS_SUCCESS) status = made->describe_layouts(what, arithmetic_);
  if (status == CUBLAS_STATUS_SUCCESS) status = made->choose(handle_, alignment);
  if (const auto done = lt_call(status, what); !done) return tl::unexpected(done.error());
  return made;
}

result<products::plan*> products::plan_for(cudaStream_t on, void* room, const product& what) {
  const auto alignment = common_alignment({what.a, what.b, what.row, what.c});
  auto& kept = plans_[{what.m, what.n, what.k, what.transpose_a, what.transpose_b, what.row != nullptr,
                       what.c_is_floats, alignment, what.relu}];
  if (kept) return kept.get();
  if (what.relu && row_inside(what, arithmetic_)) {
    if (auto made = make_plan(what, alignment, true)) {
      const auto kept_nan = keeps_nan(on, room, **made, what);
      if (!kept_nan) return tl::unexpected(kept_nan.error());
      if (*kept_nan) kept = std::move(*made);
    }
  }
  if (kept) return kept.get();
  auto made = make_plan(what, alignment, false);
  if (!made) return tl::unexpected(made.error());
  kept = std::move(*made);
  return kept.get();
}

/// Of a row of NaN, relu is to leave it in each column. cuBLASLt says of its relu that it is
/// max(x, 0), and not what that is of NaN; and where NaN became 0, nobody would hear of a record or
/// a parameter that is no number. Writes c, and waits for the stream.
result<bool> products::keeps_nan(cudaStream_t on, void* room, const plan& with, const product& what) {
  constexpr auto doing = "trying what a product makes of NaN";
  const auto columns = static_cast<std::size_t>(what.n);
  void* row = nullptr;
  if (auto got = cuda_call(cudaMalloc(&row, columns * sizeof(float)), doing); !got)
    return tl::unexpected(got.error());
  run_kernels(on, precision::fp32, fill{static_cast<float*>(row), what.n, std::nanf("")});
  auto done = lt_call(multiply(on, room, with, what, static_cast<const float*>(row)), what);
  std::vector<float> first(columns), last(columns);
  const auto* const c = static_cast<const float*>(what.c);
  for (auto [to, at] : {std::pair{&first, std::int64_t{0}}, {&last, (what.m - 1) * what.n}})
    if (done)
      done = cuda_call(
          cudaMemcpyAsync(to->data(), c + at, columns * sizeof(float), cudaMemcpyDeviceToHost, on), doing);
  const auto ended = cuda_call(cudaStreamSynchronize(on), doing);
  static_cast<void>(cudaFree(row));
  if (!done || !ended) return tl::unexpected(done ? ended.error() : done.error());
  const auto is_nan = [](float value) { return std::isnan(value); };
  return std::ranges::all_of(first, is_nan) && std::ranges::all_of(last, is_nan);
}

cublasStatus_t products::multiply(cudaStream_t on, void* room, const plan& with, const product& what,
                                  const float* row) {
  auto status = CUBLAS_STATUS_SUCCESS;
  if (row_inside(what, arithmetic_))
    put(status, cublasLtMatmulDescSetAttribute, with.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, row);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const float one = 1, zero = 0;
  return cublasLtMatmul(handle_, with.operation, &one, what.b, with.first, what.a, with.second, &zero, what.c,
                        with.to, what.c, with.to, &with.algorithm, room, workspace_bytes, on);
}

result<void> products::run(cudaStream_t on, workspace& room, const product& what) {
  if (what.m == 0 || what.n == 0) return {};
  bool is_row_added = false, is_relu_taken = false;
  if (what.k == 0) {
    if (what.c_is_floats)
      run_kernels(on, arithmetic_, fill{static_cast<float*>(what.c), what.m * what.n, 0});
    else
      run_kernels(on, arithmetic_, clear_activations{what.c, what.m * what.n});
  } else {
    const auto memory = room.room(on, workspace_bytes);
    if (!memory) return tl::unexpected(memory.error());
    const auto found = plan_for(on, *memory, what);
    if (!found) return tl::unexpected(found.error());
    if (auto done = lt_call(multiply(on, *memory, **found, what, what.row), what); !done) return done;
    is_row_added = row_inside(what, arithmetic_);
    is_relu_taken = (*found)->relu_inside;
  }
  if (what.row != nullptr && !is_row_added)
    run_kernels(on, arithmetic_, add_row{what.m, what.n, what.row, what.c, what.relu});
  else if (what.relu && !is_relu_taken)
    run_kernels(on, arithmetic_, relu_forward{what.c, what.c, what.m * what.n});
  return {};
}

} // namespace dlrun::kernels::cuda
