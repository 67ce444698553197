#include "engine/cuda/graph_device.hpp"

namespace dlrun::engine {

void graph_device::flush() {
  graphs_.run(pending_);
  pending_.clear();
}

void graph_device::run(lane on, const step& what) {
  if (!in_pass_ || on != lane::compute) return inner_->run(on, what);
  pending_.push_back(what);
  if (pending_.size() == step_graphs::steps_max) flush();
}

void graph_device::run(graph& what) {
  flush();
  inner_->run(what);
}

void graph_device::upload(lane on, const void* from, void* to, std::size_t bytes) {
  flush(on);
  inner_->upload(on, from, to, bytes);
}

void graph_device::download(lane on, const void* from, void* to, std::size_t bytes) {
  flush(on);
  inner_->download(on, from, to, bytes);
}

void graph_device::record(lane on, event& at) {
  flush(on);
  inner_->record(on, at);
}

/// Steps that were gathered before it may wait too: what they do is part of no event yet.
void graph_device::wait(lane on, event& at) { inner_->wait(on, at); }

/// The device works while the host waits for something else.
result<void> graph_device::finish(event& at) {
  flush();
  return inner_->finish(at);
}

result<void> graph_device::finish(lane on) {
  flush();
  return inner_->finish(on);
}

} // namespace dlrun::engine
