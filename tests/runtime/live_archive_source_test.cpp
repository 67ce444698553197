// What an archiver is told of an agent that does not answer.
#include "runtime/live_archive_source.hpp"

#include "tests/data/files.hpp"

#include <caf/all.hpp>
#include <gtest/gtest.h>

namespace dlrun::runtime {
namespace {

caf::behavior never_answer(caf::event_based_actor* self) {
  self->set_default_handler(caf::skip);
  return {[](int) {}};
}

struct actors : caf::actor_system_config {
  actors() { add_message_types<caf::id_block::dlrun>(); }
};

TEST(live_archive_source, an_answer_that_is_late_may_come_yet_and_an_agent_that_is_gone_gives_none) {
  const test::temporary_folder run;
  actors config;
  caf::actor_system system{config};
  auto agent = system.spawn(never_answer);
  live_archive_source source{system,  caf::actor_cast<protocol::agent_actor>(agent),
                             nullptr, run.path(),
                             1,       std::chrono::milliseconds(20)};
  const auto late = source.journal();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, error_code::timed_out) << late.error().message;
  caf::anon_send_exit(agent, caf::exit_reason::kill);
  caf::scoped_actor { system } -> wait_for(agent);
  const auto gone = source.journal();
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, error_code::role_lost) << gone.error().message;
}

} // namespace
} // namespace dlrun::runtime
