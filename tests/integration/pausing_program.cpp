// A `dlrun` with a layer that takes a while: with the file that PAUSES names, so many milliseconds
// a microbatch as its line for this process says, or the line for process 0, which is for all
// others. Without the file it takes no time.
#include <cstdlib>
#include <dlrun/layer.hpp>
#include <dlrun/training.hpp>
#include <fstream>
#include <poll.h>
#include <unistd.h>

namespace {

/// Milliseconds.
int pause_of_this_process() {
  const char* file = std::getenv("PAUSES");
  std::ifstream lines(file == nullptr ? "" : file);
  int pid = 0, pause = 0, of_others = 0;
  while (lines >> pid >> pause) {
    if (pid == ::getpid()) return pause;
    if (pid == 0) of_others = pause;
  }
  return of_others;
}

class pausing_operation final : public dlrun::operation {
public:
  dlrun::result<void> forward(const dlrun::pass& now, std::span<const std::span<const float>> inputs,
                              std::span<float> output) override {
    for (std::size_t i = 0; i < output.size(); ++i) output[i] = inputs[0][i];
    if (now.training) ::poll(nullptr, 0, pause_of_this_process());
    return {};
  }

  void backward(const dlrun::pass&, std::span<const std::span<const float>>, std::span<const float>,
                std::span<const float> output_gradient,
                std::span<const std::span<float>> input_gradients) override {
    if (input_gradients[0].empty()) return;
    for (std::size_t i = 0; i < output_gradient.size(); ++i) input_gradients[0][i] = output_gradient[i];
  }
};

class pausing_layer final : public dlrun::custom_layer {
public:
  explicit pausing_layer(dlrun::shape input)
      : input_(std::move(input)) {}

  dlrun::shape output_shape() const override { return input_; }
  std::unique_ptr<dlrun::operation> make_operation() const override {
    return std::make_unique<pausing_operation>();
  }

private:
  dlrun::shape input_;
};

} // namespace

int main(int argc, char** argv) {
  using layer_result = dlrun::result<std::unique_ptr<const dlrun::custom_layer>>;
  const auto registered =
      dlrun::register_layer("pause", [](const dlrun::layer_request& request) -> layer_result {
        return std::make_unique<pausing_layer>(request.inputs.front());
      });
  return registered ? dlrun::run_command_line(argc, argv) : 1;
}
