#include <dlrun/training.hpp>

int main(int argc, char** argv) { return dlrun::run_command_line(argc, argv); }
