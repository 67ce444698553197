// A `dlrun` with a layer that takes a while: with the file that PAUSES names, so many milliseconds
// a microbatch as its line for this process says, or the line for process 0, which is for all
// others. Without the file it takes no time.
#include "tests/integration/own_layer.hpp"

#include <cstdlib>
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

class pausing_operation final : public dlrun::test::handing_on {
  void while_training(const dlrun::pass&, std::span<const float>) override {
    ::poll(nullptr, 0, pause_of_this_process());
  }
};

} // namespace

int main(int argc, char** argv) {
  return dlrun::test::run_with_layer<pausing_operation>("pause", argc, argv);
}
