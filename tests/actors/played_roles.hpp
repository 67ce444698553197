/// A role at work among mailboxes: the test plays everybody else, and looks into them.
#pragma once

#include "actors/common/job_context.hpp"
#include "actors/common/local_roles.hpp"
#include "actors/protocol/handles.hpp"
#include "actors/protocol/type_ids.hpp"
#include "tests/data/files.hpp"

#include <caf/all.hpp>
#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <spdlog/spdlog.h>
#include <string>

namespace dlrun::test {

/// Of a job with `cluster.placement: threads`. Waiting ends with the message that is waited for.
template <class Role>
class played_roles : public testing::Test {
protected:
  static constexpr auto patience = std::chrono::seconds(20);
  static constexpr protocol::fence self{{3}, 33};

  /// Starts a role of `job`, and answers it when it asks to join.
  template <class Start>
  void start_role(Start start, const protocol::role_name& role, const protocol::join_reply& reply) {
    local->remember({protocol::role_kind::coordinator, 0}, {1}, strong(*coordinator));
    const common::role_context context{
        .role = role,
        .self = self,
        .job = job,
        .local = local,
        .agent = as<protocol::agent_actor>(*agent),
        .coordinator = here(),
        .coordinator_incarnation = {1},
        .log = std::make_shared<spdlog::logger>("test"),
    };
    at_work = system.spawn(start, context);
    (*observer)->monitor(at_work);
    answer_join(role, reply);
  }
  void answer_join(const protocol::role_name& role, const protocol::join_reply& reply) {
    bool asked = false;
    (*coordinator)
        ->receive(
            [&](const protocol::join& question, const Role&) {
              EXPECT_EQ(question.role, role);
              EXPECT_EQ(question.self, self);
              asked = true;
              joined_on = question.device;
              return caf::make_result(reply, as<protocol::data_dispatcher_actor>(*dispatcher));
            },
            caf::after(patience) >> [] {});
    ASSERT_TRUE(asked) << "it does not join";
  }
  std::string joined_on; ///< protocol::join::device
  protocol::endpoint here() const { return {"", job->process, ""}; }

  static caf::strong_actor_ptr strong(const caf::scoped_actor& who) {
    return caf::actor_cast<caf::strong_actor_ptr>(who);
  }
  template <class Handle>
  static Handle as(const caf::scoped_actor& who) {
    return caf::actor_cast<Handle>(strong(who));
  }
  template <class... Messages>
  void tell(Messages... messages) {
    caf::anon_send(at_work, std::move(messages)...);
  }
  /// The directory names what is given.
  void name(std::vector<protocol::directory_entry> entries) {
    tell(protocol::directory{{1}, ++directories, std::move(entries)},
         as<protocol::data_dispatcher_actor>(*dispatcher));
  }
  /// The first message of the kind that satisfies `wanted`; what comes before it is dropped.
  template <class Message, class Wanted>
  std::optional<Message> await(caf::scoped_actor& who, Wanted wanted) {
    std::optional<Message> found;
    bool is_late = false;
    while (!found && !is_late)
      who->receive([&](const Message& one) { found = wanted(one) ? std::optional{one} : std::nullopt; },
                   [](const protocol::worker_status&) {}, [](const protocol::shard_status&) {},
                   [](const protocol::heartbeat&) {}, [](const protocol::job_event&) {},
                   [](const protocol::shard_state&) {}, [](const protocol::divergence&) {},
                   [](const protocol::push&) {}, [](const protocol::pull&, const protocol::worker_actor&) {},
                   caf::after(patience) >> [&is_late] { is_late = true; });
    return found;
  }
  /// Why it ended.
  std::string end() {
    std::string why = "it has not ended";
    (*observer)->receive([&](const caf::down_msg& down) { why = to_string(down.reason); },
                         caf::after(patience) >> [] {});
    return why;
  }
  void TearDown() override {
    if (at_work) caf::anon_send_exit(at_work, caf::exit_reason::user_shutdown);
    at_work = nullptr;
    for (auto* one : {&coordinator, &dispatcher, &agent, &peer, &observer}) one->reset();
    local = nullptr; // it holds handles
    system.await_all_actors_done();
  }

private:
  struct quiet : caf::actor_system_config {
    quiet() {
      set("scheduler.max-threads", 1);
      add_message_types<caf::id_block::dlrun>();
    }
  };
  quiet config;
  std::uint64_t directories = 0;

protected:
  temporary_folder folder;
  std::shared_ptr<const common::job_context> job;
  std::shared_ptr<common::local_roles> local = std::make_shared<common::local_roles>();
  caf::actor_system system{config};
  std::optional<caf::scoped_actor> coordinator{std::in_place, system};
  std::optional<caf::scoped_actor> dispatcher{std::in_place, system};
  std::optional<caf::scoped_actor> agent{std::in_place, system};
  std::optional<caf::scoped_actor> peer{std::in_place, system}; ///< with which it trains
  std::optional<caf::scoped_actor> observer{std::in_place, system};
  Role at_work;
};

} // namespace dlrun::test
