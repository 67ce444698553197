/// Starts the helper program and waits, with deadlines, for what it says and how it ends.
#pragma once

#include "actors/agent/process/process_spawner.hpp"
#include "base/unique_fd.hpp"

#include <fcntl.h>
#include <future>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

namespace dlrun::agent::testing {

/// Far beyond what any passing test needs.
inline constexpr std::chrono::seconds patience{20};

/// A pipe whose write end goes to children and whose read end stays here.
class output_pipe {
public:
  output_pipe() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read_end_.reset(ends[0]);
    write_end.reset(ends[1]);
  }

  /// The next line without its end; "(end)" when nobody holds the write end any more, "(silence)"
  /// after the patience.
  std::string line() {
    write_end.reset();
    for (std::string text;;) {
      pollfd fd{read_end_.get(), POLLIN, 0};
      char c = 0;
      if (::poll(&fd, 1, static_cast<int>(std::chrono::milliseconds(patience).count())) != 1)
        return "(silence)";
      if (::read(read_end_.get(), &c, 1) != 1) return text.empty() ? "(end)" : text;
      if (c == '\n') return text;
      text += c;
    }
  }

  base::unique_fd write_end;

private:
  base::unique_fd read_end_;
};

/// One spawned child: its id, and its start and end as futures.
struct spawned {
  child_id id;
  std::future<result<pid_t>> started;
  std::future<exit_report> ended;

  exit_report report() {
    if (ended.wait_for(patience) == std::future_status::ready) return ended.get();
    ADD_FAILURE() << "the child's end was not seen";
    return {};
  }
};

class child_processes : public ::testing::Test {
protected:
  static child_command program(std::vector<std::string> arguments) {
    child_command spec;
    spec.program = {DLRUN_TEST_CHILD, DLRUN_TEST_CHILD};
    spec.arguments = std::move(arguments);
    return spec;
  }

  spawned spawn(child_command spec) {
    auto started = std::make_shared<std::promise<result<pid_t>>>();
    auto ended = std::make_shared<std::promise<exit_report>>();
    const auto id = spawner->spawn(
        std::move(spec), [started](child_id, result<pid_t> pid) { started->set_value(std::move(pid)); },
        [ended](child_id, const exit_report& report) { ended->set_value(report); });
    EXPECT_TRUE(id);
    return {id.value_or(child_id{}), started->get_future(), ended->get_future()};
  }

  /// Spawns it with its standard output in `out`, and waits for its first line.
  spawned spawn_and_hear(std::vector<std::string> arguments, output_pipe& out, const std::string& expected) {
    auto spec = program(std::move(arguments));
    spec.standard_output = out.write_end.get();
    auto child = spawn(std::move(spec));
    EXPECT_EQ(out.line(), expected);
    return child;
  }

  std::unique_ptr<process_spawner> spawner = process_spawner::create().value();
};

} // namespace dlrun::agent::testing
