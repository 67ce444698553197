// A `dlrun` with a layer, a metric and a data format of its own. All verbs know them:
//
//   my_dlrun train spiral.yaml && my_dlrun evaluate runs/spiral
#include "own_parts.hpp"

#include <cstdio>
#include <dlrun/training.hpp>

int main(int argc, char** argv) {
  // Before anything else: the processes of a run execute this main() too.
  for (const auto& registered : {register_swish(), register_worst_class(), register_points()})
    if (!registered) {
      std::fprintf(stderr, "my_dlrun: %s\n", registered.error().message.c_str());
      return 1;
    }
  return dlrun::run_command_line(argc, argv);
}
