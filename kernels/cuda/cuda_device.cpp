#include "kernels/cuda/cuda_device.hpp"

#include "kernels/cuda/cuda_call.hpp"
#include "kernels/cuda/patience.hpp"
#include "kernels/cuda/run_kernels.hpp"
#include "kernels/cuda/scratch.hpp"
#include "kernels/cuda/step_name.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace dlrun::kernels::cuda {
namespace {

/// Convolutions of a lane may compute in a part of memory, one in this many: a large one needs as
/// much as its tensors to be fast, and what follows needs some too.
constexpr std::size_t workspace_share = 8;

class cuda_event final : public event {
public:
  explicit cuda_event(cudaEvent_t raw)
      : raw_(raw) {}
  ~cuda_event() override { static_cast<void>(cudaEventDestroy(raw_)); }
  cudaEvent_t raw() const { return raw_; }

private:
  cudaEvent_t raw_;
};

/// All devices of the process know of it.
class cuda_registration final : public host_registration {
public:
  cuda_registration(int number, void* begin)
      : number_(number)
      , begin_(begin) {}
  ~cuda_registration() override {
    static_cast<void>(cudaSetDevice(number_)); // of the thread that this happens to be
    static_cast<void>(cudaHostUnregister(begin_));
  }

private:
  int number_;
  void* begin_;
};

cudaEvent_t raw(const event& at) { return static_cast<const cuda_event&>(at).raw(); }

} // namespace

cuda_device::cuda_device(int number, device_properties properties, precision arithmetic)
    : number_(number)
    , properties_(std::move(properties))
    , arithmetic_(arithmetic) {}

result<std::unique_ptr<device>> cuda_device::open(int number, device_properties properties,
                                                  precision arithmetic) {
  std::unique_ptr<cuda_device> opened(new cuda_device(number, std::move(properties), arithmetic));
  const auto started = opened->start();
  if (!started)
    return fail(started.error().code, fmt::format("GPU {} ({}) cannot be opened: {}", number,
                                                  opened->properties_.name, started.error().message));
  return opened;
}

result<void> cuda_device::start() {
  if (auto chosen = cuda_call(cudaSetDevice(number_), "choosing it"); !chosen) return chosen;
  for (auto& one : queues_) {
    auto made = cuda_lane::make();
    if (!made) return tl::unexpected(made.error());
    one.lane = std::move(*made);
  }
  auto products_made = products::make(arithmetic_);
  if (!products_made) return tl::unexpected(products_made.error());
  products_ = std::move(*products_made);
  auto convolutions_made =
      convolutions::make(static_cast<std::int64_t>(properties_.memory_bytes / workspace_share), arithmetic_);
  if (!convolutions_made) return tl::unexpected(convolutions_made.error());
  convolutions_ = std::move(*convolutions_made);
  return {};
}

cuda_device::~cuda_device() { static_cast<void>(cudaSetDevice(number_)); }

bool cuda_device::ready() {
  note(cudaSetDevice(number_), "choosing it");
  return !failed_;
}

void cuda_device::note(cudaError_t code, std::string_view doing) {
  if (code != cudaSuccess) note(cuda_call(code, doing));
}

void cuda_device::note(const result<void>& done) {
  if (done || failed_) return;
  const bool memory = done.error().code == error_code::limit_exceeded;
  failed_ = error{memory ? error_code::limit_exceeded : error_code::system,
                  fmt::format("GPU {} ({}) failed: {}", number_, properties_.name, done.error().message)};
}

std::size_t cuda_device::free_bytes() const {
  std::size_t free = 0, total = 0;
  if (cudaSetDevice(number_) != cudaSuccess || cudaMemGetInfo(&free, &total) != cudaSuccess) return 0;
  return free;
}

std::size_t cuda_device::library_bytes() const {
  std::size_t sum = 0;
  for (const auto& one : queues_)
    sum += one.for_products.wanted() + one.for_convolutions.wanted() + one.scratch.wanted();
  return sum;
}

// ---- memory

result<void*> cuda_device::allocate(std::size_t bytes) {
  if (!ready()) return tl::unexpected(*failed_);
  void* memory = nullptr;
  const auto got = cuda_call(cudaMalloc(&memory, std::max<std::size_t>(bytes, 1)),
                             fmt::format("{} bytes of GPU {}", bytes, number_));
  if (!got) return tl::unexpected(got.error());
  return memory;
}

void cuda_device::release(void* memory) {
  static_cast<void>(cudaSetDevice(number_));
  note(cudaFree(memory), "giving memory back");
}

result<void*> cuda_device::allocate_host(std::size_t bytes) {
  if (!ready()) return tl::unexpected(*failed_);
  void* memory = nullptr;
  const auto got = cuda_call(cudaMallocHost(&memory, std::max<std::size_t>(bytes, 1)),
                             fmt::format("{} bytes of the host for copies to GPU {}", bytes, number_));
  if (!got) return tl::unexpected(got.error());
  return memory;
}

void cuda_device::release_host(void* memory) {
  static_cast<void>(cudaSetDevice(number_));
  note(cudaFreeHost(memory), "giving memory of the host back");
}

result<std::unique_ptr<host_registration>> cuda_device::register_host(std::span<const std::byte> memory,
                                                                      host_access how) {
  if (!ready()) return tl::unexpected(*failed_);
  auto flags = static_cast<unsigned>(cudaHostRegisterPortable);
  if (how == host_access::read) {
    int can = 0;
    const auto asked =
        cuda_call(cudaDeviceGetAttribute(&can, cudaDevAttrHostRegisterReadOnlySupported, number_),
                  "asking about memory that is read-only");
    if (!asked) return tl::unexpected(asked.error());
    if (can == 0) return fail(error_code::system, "it takes no memory that is mapped read-only");
    flags |= static_cast<unsigned>(cudaHostRegisterReadOnly);
  }
  auto* const begin = const_cast<std::byte*>(memory.data());
  if (const auto done = cuda_call(cudaHostRegister(begin, memory.size(), flags), "cudaHostRegister"); !done)
    return fail(error_code::system, done.error().message);
  return std::make_unique<cuda_registration>(number_, begin);
}

void cuda_device::copy(lane on, const void* from, void* to, std::size_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0 || !ready()) return;
  auto& queue = *state(on).lane;
  note(cudaMemcpyAsync(to, from, bytes, kind, queue.stream()), "copying");
  queue.count_steps(1);
}

void cuda_device::upload(lane on, const void* from, void* to, std::size_t bytes) {
  copy(on, from, to, bytes, cudaMemcpyHostToDevice);
}

void cuda_device::download(lane on, const void* from, void* to, std::size_t bytes) {
  copy(on, from, to, bytes, cudaMemcpyDeviceToHost);
}

// ---- computation

/// Gives a step to the stream.
result<void> cuda_device::put(queue_state& here, const step& what) {
  const auto stream = here.lane->stream();
  if (const auto* one = std::get_if<product>(&what)) return products_->run(stream, here.for_products, *one);
  if (const auto* other = std::get_if<convolution>(&what))
    return convolutions_->run(stream, here.for_convolutions, *other);
  const auto doubles = scratch_of_step(what);
  const auto room = here.scratch.room(stream, static_cast<std::size_t>(doubles) * sizeof(double));
  if (!room) return tl::unexpected(room.error());
  if (doubles == 0)
    run_kernels(stream, arithmetic_, what);
  else
    run_kernels(stream, arithmetic_, with_scratch(what, static_cast<double*>(*room)));
  return {};
}

void cuda_device::run(lane on, const step& what) {
  if (!ready()) return;
  auto& here = state(on);
  note(put(here, what));
  last_step_ = step_name(what);
  if (const auto status = cudaGetLastError(); status != cudaSuccess)
    note(status, fmt::format("in or before the step {}", last_step_));
  here.lane->count_steps(1);
}

/// With the variable, CUDA says at each launch what went wrong with it: of a graph it would say
/// that of the whole.
result<std::unique_ptr<graph>> cuda_device::make_graph(lane on, std::span<const step> steps) {
  if (!ready()) return tl::unexpected(*failed_);
  const char* const blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  if (blocking != nullptr && std::string_view{blocking} != "0")
    return fail(error_code::system, "CUDA_LAUNCH_BLOCKING is set");
  auto made = std::make_unique<cuda_graph>(on, steps);
  auto& here = state(on);
  auto done =
      made->capture(here.lane->stream(), here.rooms(), [&](const step& one) { return put(here, one); });
  if (!done) return tl::unexpected(done.error());
  return made;
}

/// What a lane computes in may have moved when another step wanted more of it: then the graph is
/// made anew.
void cuda_device::run(graph& what) {
  if (!ready()) return;
  auto& one = static_cast<cuda_graph&>(what);
  auto& here = state(one.on());
  const auto put_one = [&](const step& step) { return put(here, step); };
  if (!one.fits(here.rooms()) && !one.capture(here.lane->stream(), here.rooms(), put_one)) {
    for (const auto& step : one.steps()) run(one.on(), step);
    return;
  }
  last_step_ = one.name();
  note(one.launch(here.lane->stream()));
  here.lane->count_steps(static_cast<int>(one.steps().size()));
}

// ---- order

result<std::unique_ptr<event>> cuda_device::make_event() {
  if (!ready()) return tl::unexpected(*failed_);
  cudaEvent_t made = nullptr;
  const auto done = cuda_call(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "making an event");
  if (!done) return tl::unexpected(done.error());
  return std::make_unique<cuda_event>(made);
}

void cuda_device::record(lane on, event& at) {
  if (ready()) note(cudaEventRecord(raw(at), state(on).lane->stream()), "marking a moment");
}

void cuda_device::wait(lane on, event& at) {
  if (ready()) note(cudaStreamWaitEvent(state(on).lane->stream(), raw(at), 0), "waiting for the other lane");
}

result<void> cuda_device::finish(event& at) {
  return wait_for([&] { return cudaEventQuery(raw(at)); });
}

result<void> cuda_device::finish(lane on) {
  return wait_for([&] { return cudaStreamQuery(state(on).lane->stream()); });
}

result<void> cuda_device::wait_for(const std::function<cudaError_t()>& query) {
  using clock = std::chrono::steady_clock;
  patience waiting(clock::now());
  while (ready()) {
    const auto status = query();
    if (status == cudaSuccess) return {};
    if (status != cudaErrorNotReady) {
      note(status, fmt::format("in or before the step {}", last_step_));
      break;
    }
    bool moved = false;
    for (auto& one : queues_) moved |= one.lane->moved();
    switch (waiting.next(clock::now(), moved)) {
    case patience::verdict::look_again: break;
    case patience::verdict::sleep: std::this_thread::sleep_for(patience::nap); break;
    case patience::verdict::give_up:
      note(fail(error_code::system, fmt::format("nothing moved for {} s, in or before the step {}",
                                                patience::longest.count(), last_step_)));
    }
  }
  return tl::unexpected(*failed_);
}

} // namespace dlrun::kernels::cuda
