// No process outlives those it belongs to, however they end.
#include "tests/actors/agent/process/child_process_fixture.hpp"

#include "actors/agent/process/parent_bond.hpp"

#include <csignal>
#include <sys/prctl.h>

namespace dlrun::agent::testing {
namespace {

using bonds = child_processes;

TEST_F(bonds, a_bound_child_dies_with_a_killed_parent) {
  output_pipe out;
  auto parent = spawn_and_hear({"parent"}, out, "bound"); // the grandchild says it
  EXPECT_TRUE(spawner->signal(parent.id, SIGKILL));
  EXPECT_EQ(parent.report().code_or_signal, SIGKILL);
  EXPECT_EQ(out.line(), "(end)"); // the grandchild held the other end
}

TEST_F(bonds, a_child_whose_parent_is_gone_already_is_told) {
  output_pipe out;
  auto child = spawn_and_hear({"bind", "1"}, out, "orphan"); // as if its parent had been process 1
  EXPECT_EQ(child.report().code_or_signal, 5);
}

TEST_F(bonds, a_bound_child_dies_with_the_spawner) {
  output_pipe out;
  auto child = spawn_and_hear({"bind", std::to_string(::getpid())}, out, "bound");
  spawner.reset();
  EXPECT_EQ(out.line(), "(end)");
}

TEST_F(bonds, a_lifeline_tells_every_process_that_the_root_is_gone) {
  auto ends = make_lifeline().value();
  output_pipe out[2];
  std::vector<spawned> children;
  for (auto& pipe : out) {
    auto spec = program({"lifeline"});
    spec.standard_output = pipe.write_end.get();
    spec.inherit = {{ends.leaf_end.get(), "--lifeline-fd"}};
    children.push_back(spawn(std::move(spec)));
    ASSERT_EQ(pipe.line(), "watching");
  }
  ends.leaf_end.reset();
  ends.root_end.reset(); // as the kernel does when the root dies
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(out[i].line(), "root gone");
    EXPECT_EQ(children[i].report().code_or_signal, 7);
  }
}

TEST(lifelines, bytes_in_the_pipe_mean_nothing) {
  auto ends = make_lifeline().value();
  std::promise<void> gone;
  auto is_gone = gone.get_future();
  const auto line = lifeline::watch(std::move(ends.leaf_end), [&] { gone.set_value(); }).value();
  ASSERT_EQ(::write(ends.root_end.get(), "x", 1), 1);
  EXPECT_EQ(is_gone.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  ends.root_end.reset();
  EXPECT_EQ(is_gone.wait_for(patience), std::future_status::ready);
}

TEST(lifelines, can_be_let_go_without_an_alarm) {
  auto ends = make_lifeline().value();
  auto line = lifeline::watch(std::move(ends.leaf_end), [] { FAIL(); }).value();
  line.reset();
  ends.root_end.reset();
}

TEST(lifelines, only_the_read_end_of_a_pipe_is_one) {
  auto ends = make_lifeline().value();
  EXPECT_FALSE(lifeline::watch(std::move(ends.root_end), [] {}));
  EXPECT_FALSE(lifeline::watch(base::unique_fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)), [] {}));
  EXPECT_FALSE(lifeline::watch(base::unique_fd(), [] {}));
}

} // namespace
} // namespace dlrun::agent::testing
