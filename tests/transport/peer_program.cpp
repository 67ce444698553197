// A process that offers parameters and publishes the versions 0 to n-1 over and over until it is
// killed. Arguments: token, floats, n. Prints "address segment-id" once it serves.
#include "transport/parameter_segment.hpp"
#include "transport/segment_server.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <string>
#include <unistd.h>

int main(int argc, char** argv) {
  using namespace dlrun;
  if (argc != 4) return 2;
  const auto token = transport::run_token::from_hex(argv[1]).value();
  const std::size_t floats = std::stoul(argv[2]);
  const std::uint64_t versions = std::stoul(argv[3]);
  const auto server =
      transport::segment_server::start({token, std::chrono::milliseconds(2000), 64, 16}).value();
  auto parameters = transport::parameter_writer::create(floats).value();
  const auto id = server->offer(parameters.shared()).value();
  const auto publish = [&](std::uint64_t version) {
    std::ranges::fill(parameters.begin_write(timeline_id{1}, version_id{version}),
                      static_cast<float>(version));
    parameters.publish();
  };
  publish(0);
  const auto line = fmt::format("{} {}\n", server->address(), id);
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) return 1;
  for (std::uint64_t version = 1;; version = (version + 1) % versions) {
    publish(version);
    if (::getppid() == 1) return 0;
  }
}
