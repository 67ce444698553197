// A `dlrun` with a layer that some records end: what each does to its worker is written in its
// first value.
//
// With MINES_DISARMED in the environment they do nothing, so that the same records can be left out
// on request; and each microbatch takes a while, so that the run can be ended before it is over.
#include <cstdlib>
#include <dlrun/layer.hpp>
#include <dlrun/training.hpp>
#include <new>
#include <unistd.h>

namespace {

enum class mine : int {
  none,
  segmentation_fault = 1001,
  abort,
  hang,
  exit,
  out_of_memory,
  one_of_two, ///< two of them in one microbatch
};

mine mine_in(float value) {
  const auto number = static_cast<int>(value);
  return number >= 1001 && number <= 1006 ? static_cast<mine>(number) : mine::none;
}

/// Where it cannot be optimised away.
volatile int* volatile nowhere = nullptr;

void step_on(mine what) {
  switch (what) {
  case mine::segmentation_fault:
  case mine::one_of_two: *nowhere = 1; return;
  case mine::abort: std::abort();
  case mine::hang:
    for (;;) ::pause();
  case mine::exit: std::exit(0);
  case mine::out_of_memory: throw std::bad_alloc{};
  case mine::none: return;
  }
}

class minefield_operation final : public dlrun::operation {
public:
  dlrun::result<void> forward(const dlrun::pass& now, std::span<const std::span<const float>> inputs,
                              std::span<float> output) override {
    const auto width = inputs[0].size() / static_cast<std::size_t>(now.batch);
    int halves = 0;
    for (std::size_t i = 0; i < inputs[0].size(); ++i) output[i] = inputs[0][i];
    if (!now.training) return {};
    if (std::getenv("MINES_DISARMED") != nullptr) {
      for (volatile int work = 0; work < 5'000'000;) work = work + 1;
      return {};
    }
    for (std::size_t first = 0; first < inputs[0].size(); first += width) {
      const auto found = mine_in(inputs[0][first]);
      halves += found == mine::one_of_two ? 1 : 0;
      if (found != mine::one_of_two || halves == 2) step_on(found);
    }
    return {};
  }

  void backward(const dlrun::pass&, std::span<const std::span<const float>>, std::span<const float>,
                std::span<const float> output_gradient,
                std::span<const std::span<float>> input_gradients) override {
    if (input_gradients[0].empty()) return;
    for (std::size_t i = 0; i < output_gradient.size(); ++i) input_gradients[0][i] = output_gradient[i];
  }
};

class minefield final : public dlrun::custom_layer {
public:
  explicit minefield(dlrun::shape input)
      : input_(std::move(input)) {}

  dlrun::shape output_shape() const override { return input_; }
  std::unique_ptr<dlrun::operation> make_operation() const override {
    return std::make_unique<minefield_operation>();
  }

private:
  dlrun::shape input_;
};

} // namespace

int main(int argc, char** argv) {
  using layer_result = dlrun::result<std::unique_ptr<const dlrun::custom_layer>>;
  const auto registered =
      dlrun::register_layer("minefield", [](const dlrun::layer_request& request) -> layer_result {
        return std::make_unique<minefield>(request.inputs.front());
      });
  return registered ? dlrun::run_command_line(argc, argv) : 1;
}
