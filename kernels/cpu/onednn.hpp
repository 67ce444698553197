/// What every oneDNN kernel of a compute thread shares.
#pragma once

#include <cstdint>
#include <dlrun/check.hpp>
#include <dnnl.hpp>
#include <map>
#include <string_view>

namespace dlrun::kernels::cpu {

/// Whether oneDNN may use AVX2 here, and nothing wider.
inline bool is_avx2_the_widest() {
  const auto isa = dnnl::get_effective_cpu_isa();
  return isa == dnnl::cpu_isa::avx2 || isa == dnnl::cpu_isa::avx2_vnni;
}

/// Engine and stream of one compute thread. Not to be used by two threads at a time.
struct onednn {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  /// Whether what oneDNN's code for AVX2 is slow at is computed by our own. It follows the
  /// instruction set that oneDNN uses, which is in the fingerprint: one switch, ONEDNN_MAX_CPU_ISA,
  /// for both.
  bool own_avx2_code = is_avx2_the_widest();

  /// A view of caller-owned memory.
  dnnl::memory view(const dnnl::memory::desc& layout, const float* data) {
    return {layout, engine,
            const_cast<float*>(data)}; // oneDNN has one memory type for what it reads and writes
  }
};

/// True for oneDNN's portable loops, which are hundreds of times slower than its generated code.
inline bool is_reference(std::string_view implementation) { return implementation.starts_with("ref"); }

/// Primitives by batch size: creating one costs more than running it, and the last microbatch of an
/// epoch is smaller. Holds at most `capacity` entries; the smallest batch size makes room.
template <class Primitives>
class batch_cache {
public:
  /// The entry for `batch`, made by `make(batch)` when it is not there yet.
  template <class Make>
  Primitives& get(std::int64_t batch, Make&& make) {
    if (auto found = entries_.find(batch); found != entries_.end()) return found->second;
    if (entries_.size() == capacity) entries_.erase(entries_.begin());
    return entries_.emplace(batch, make(batch)).first->second;
  }

private:
  static constexpr std::size_t capacity = 8;
  std::map<std::int64_t, Primitives> entries_;
};

} // namespace dlrun::kernels::cpu
