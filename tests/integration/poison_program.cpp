// A `dlrun` with a layer that some records end: what each does to its worker is written in its
// first value.
//
// With MINES_DISARMED in the environment they do nothing, so that the same records can be left out
// on request; and each microbatch takes a while, so that the run can be ended before it is over.
// With MINE_OF_ZEROS a record of zeros does what that number says.
#include "tests/integration/own_layer.hpp"

#include <algorithm>
#include <cstdlib>
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

class minefield_operation final : public dlrun::test::handing_on {
  void while_training(const dlrun::pass& now, std::span<const float> input) override {
    if (std::getenv("MINES_DISARMED") != nullptr) {
      for (volatile int work = 0; work < 5'000'000;) work = work + 1;
      return;
    }
    const auto width = input.size() / static_cast<std::size_t>(now.batch);
    const auto* of_zeros = std::getenv("MINE_OF_ZEROS");
    if (of_zeros != nullptr && std::ranges::all_of(input.first(width), [](float one) { return one == 0; }))
      step_on(static_cast<mine>(std::atoi(of_zeros)));
    int halves = 0;
    for (std::size_t first = 0; first < input.size(); first += width) {
      const auto found = mine_in(input[first]);
      halves += found == mine::one_of_two ? 1 : 0;
      if (found != mine::one_of_two || halves == 2) step_on(found);
    }
  }
};

} // namespace

int main(int argc, char** argv) {
  return dlrun::test::run_with_layer<minefield_operation>("minefield", argc, argv);
}
