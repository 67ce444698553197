#include "engine/cuda/cuda_computer.hpp"

#include "engine/cuda/device_backend.hpp"
#include "engine/cuda/graph_device.hpp"
#include "engine/cuda/host_copies.hpp"
#include "engine/cuda/memory_shortage.hpp"
#include "engine/fingerprint.hpp"
#include "engine/network.hpp"

#include <dlrun/check.hpp>
#include <fmt/format.h>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace dlrun::engine {
namespace {

namespace cuda = kernels::cuda;
using cuda::lane;

/// Memory of the device for vectors. What a vector had, the next one of its size has: to ask the
/// device for memory takes longer than a step.
class vector_memory {
public:
  explicit vector_memory(cuda::device& on)
      : on_{on} {}
  ~vector_memory() {
    for (const auto& [floats, memory] : free_) on_.release(memory);
  }
  vector_memory(const vector_memory&) = delete;
  vector_memory& operator=(const vector_memory&) = delete;

  result<float*> take(std::size_t floats) {
    if (const auto found = free_.find(floats); found != free_.end()) {
      auto* const memory = found->second;
      free_.erase(found);
      return memory;
    }
    const auto memory = on_.allocate(floats * sizeof(float));
    if (!memory) return tl::unexpected(memory.error());
    bytes_ += floats * sizeof(float);
    return static_cast<float*>(*memory);
  }
  /// Of all vectors so far.
  std::size_t bytes() const { return bytes_; }
  void give_back(std::size_t floats, float* memory) { free_.emplace(floats, memory); }

private:
  cuda::device& on_;
  std::multimap<std::size_t, float*> free_;
  std::size_t bytes_ = 0;
};

class device_vector final : public computer_vector {
public:
  device_vector(vector_memory& from, std::size_t floats, float* data)
      : from_{from}
      , floats_{data, floats} {}
  ~device_vector() override { from_.give_back(floats_.size(), floats_.data()); }

  std::size_t size() const override { return floats_.size(); }
  std::span<float> host() override { return {}; }
  std::span<float> floats() { return floats_; }

private:
  vector_memory& from_;
  std::span<float> floats_;
};

std::span<float> floats_of(computer_vector& vector) { return dynamic_cast<device_vector&>(vector).floats(); }

class cuda_computer final : public computer {
public:
  cuda_computer(std::shared_ptr<const model> model, int threads, std::unique_ptr<cuda::device> device,
                host_watch::clock now)
      : model_{std::move(model)}
      , device_{std::make_unique<graph_device>(std::move(device))}
      , fingerprint_{fmt::format("{} | {}", device_fingerprint(*device_), processor_fingerprint(threads))}
      , free_before_{device_->free_bytes()}
      , copies_{*device_}
      , vectors_{*device_}
      , parameters_{*device_}
      , network_{model_, make_backend(threads, now)} {}

  result<std::unique_ptr<computer_vector>> make_vector(std::size_t floats) override {
    const auto memory = vectors_.take(floats);
    if (!memory) return tl::unexpected(explained(memory.error(), floats * sizeof(float)));
    return std::make_unique<device_vector>(vectors_, floats, *memory);
  }

  result<std::unique_ptr<computer_vector>> lend(std::span<float> memory) override {
    return make_vector(memory.size());
  }

  void clear(computer_vector& into, std::size_t begin, std::size_t end) override {
    device_->run(lane_,
                 cuda::fill{floats_of(into).data() + begin, static_cast<std::int64_t>(end - begin), 0.0F});
  }

  void add(computer_vector& into, computer_vector& other, std::size_t begin, std::size_t end) override {
    float* const sum = floats_of(into).data() + begin;
    device_->run(lane_, cuda::add_floats{floats_of(other).data() + begin, sum,
                                         static_cast<std::int64_t>(end - begin)});
  }

  result<void> copy(computer_vector& from, std::size_t begin, std::span<float> to) override {
    return copies_.download(lane_, floats_of(from).data() + begin, to);
  }

  std::shared_ptr<void> announce_parameters(std::span<const float> memory) override {
    return copies_.announce(std::as_bytes(memory), cuda::host_access::read);
  }
  std::shared_ptr<void> announce_gradient(std::span<float> memory) override {
    return copies_.announce(std::as_bytes(memory), cuda::host_access::write);
  }

  result<void> read(version_id, std::span<const float> parameters) override {
    if (auto room = parameters_.resize(parameters.size()); !room)
      return tl::unexpected(explained(room.error(), parameters.size_bytes()));
    return copies_.upload(parameters, parameters_.data());
  }

  result<void> forward_backward(const batch& batch, const slot_key& key, computer_vector& gradient,
                                const progress& tell) override {
    // What is told of is done, but what comes before it is not: copies of it need not wait for
    // that.
    const graph_device::pass under_way{*device_};
    const auto beside = [&](std::uint64_t first_final) {
      lane_ = lane::side;
      tell(first_final);
      lane_ = lane::compute;
    };
    return explained(network_.forward_backward(parameters(), batch, key, floats_of(gradient),
                                               tell ? beside : network::progress{}),
                     batch.size, pass_kind::forward_and_back);
  }

  result<void> evaluate(const batch& batch, std::span<float> metrics) override {
    const graph_device::pass under_way{*device_};
    return explained(network_.evaluate(parameters(), batch, metrics), batch.size, pass_kind::forward);
  }

  result<void> predict(std::span<const float> records, std::int64_t size, std::span<float> outputs) override {
    const graph_device::pass under_way{*device_};
    return explained(network_.predict(parameters(), records, size, outputs), size, pass_kind::forward);
  }

  std::string fingerprint() const override { return fingerprint_; }
  std::vector<std::string> host_layers() const override { return backend_->host_layers(); }
  std::chrono::nanoseconds host_time() const override { return backend_->host_time(); }
  std::vector<std::string> take_remarks() override {
    auto remarks = copies_.take_remarks();
    if (!device_->refused().empty() && !std::exchange(is_refusal_told_, true))
      remarks.push_back(
          fmt::format("gpu-graphs: steps are started one by one, since the driver makes no graph "
                      "of them: {}",
                      device_->refused()));
    return remarks;
  }

private:
  /// What there is and was, `more` bytes of vectors that were to come beside.
  memory_account account(std::size_t more) const {
    return {.vectors = parameters_.bytes() + vectors_.bytes() + more,
            .libraries = device_->library_bytes(),
            .free = free_before_,
            .arithmetic = device_->arithmetic()};
  }
  /// An error of a pass, of memory with what the pass needs. What the pass has asked for is done by
  /// then, so that whatever it needs may go.
  result<void> explained(result<void> done, std::int64_t records, pass_kind kind) {
    if (done) return done;
    for (const auto one : {lane::compute, lane::side}) std::ignore = device_->finish(one);
    if (done.error().code != error_code::limit_exceeded) return done;
    return tl::unexpected(explain_pass(done.error(), account(0), model_, records, kind));
  }
  /// An error of a vector.
  error explained(const error& why, std::size_t bytes) const {
    return why.code == error_code::limit_exceeded ? explain_vectors(why, account(bytes)) : why;
  }
  std::unique_ptr<backend> make_backend(int threads, host_watch::clock now) {
    auto made = std::make_unique<device_backend>(model_, threads, *device_, now);
    backend_ = made.get();
    return made;
  }
  std::span<const float> parameters() const { return {parameters_.data(), model_->layout().flat_size()}; }

  std::shared_ptr<const model> model_;
  std::unique_ptr<graph_device> device_; ///< outlives all that follows
  std::string fingerprint_;
  std::size_t free_before_; ///< of the device, in bytes, before anything of this
  host_copies copies_;
  vector_memory vectors_;
  device_array<float> parameters_;
  device_backend* backend_ = nullptr; ///< the network's
  network network_;
  bool is_refusal_told_ = false;
  lane lane_ = lane::compute; ///< where vectors are worked on
};

} // namespace

std::unique_ptr<computer> make_cuda_computer(std::shared_ptr<const model> model, int threads,
                                             std::unique_ptr<cuda::device> device, host_watch::clock now) {
  return std::make_unique<cuda_computer>(std::move(model), threads, std::move(device), now);
}

std::string device_fingerprint(const cuda::device& device) {
  const auto what = device.properties();
  return fmt::format("{}, {} multiprocessors | {} | {}", what.name, what.multiprocessors, what.libraries,
                     name_of(device.arithmetic()));
}

} // namespace dlrun::engine
