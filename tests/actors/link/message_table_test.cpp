#include "actors/link/message_table.hpp"

#include "tests/actors/link/message_places.hpp"

#include <gtest/gtest.h>

namespace dlrun::link {
namespace {

using protocol::role_kind;
using test::places_of_all;

std::set<std::size_t> sent_by(role_kind who, const message_table& table) {
  std::set<std::size_t> places;
  for (std::size_t i = 0; i < table.entries.size(); ++i)
    if (table.entries[i].senders.contains(who)) places.insert(i);
  return places;
}

std::set<std::size_t> sent_by_nobody(const message_table& table) {
  std::set<std::size_t> places;
  for (std::size_t i = 0; i < table.entries.size(); ++i)
    if (table.entries[i].senders.is_empty()) places.insert(i);
  return places;
}

TEST(message_tables, who_may_send_what_is_said_for_every_message) {
  using namespace protocol;
  EXPECT_EQ(sent_by(role_kind::worker, table_of<agent_actor>()),
            (places_of_all<agent_actor, heartbeat, stop_job, credentials_wanted>()));
  EXPECT_EQ(sent_by(role_kind::ps_shard, table_of<agent_actor>()),
            (places_of_all<agent_actor, job_event, heartbeat, stop_job, credentials_wanted>()));
  EXPECT_EQ(sent_by(role_kind::keeper, table_of<agent_actor>()),
            (places_of_all<agent_actor, heartbeat, credentials_wanted>()));
  EXPECT_EQ(sent_by(role_kind::keeper, table_of<ps_shard_actor>()),
            (places_of_all<ps_shard_actor, copy_standing>()));
  EXPECT_EQ(sent_by(role_kind::ps_shard, table_of<keeper_actor>()),
            (places_of_all<keeper_actor, copy_part>()));
  EXPECT_EQ(sent_by(role_kind::host_agent, table_of<agent_actor>()),
            (places_of_all<agent_actor, host_joined, start_report, work_report, credentials_wanted>()));
  EXPECT_EQ(sent_by(role_kind::coordinator, table_of<agent_actor>()),
            (places_of_all<agent_actor, join, grant, start_over, workers_wanted, job_event, stall, job_ended,
                           heartbeat, report_part, credentials_wanted>()));
  EXPECT_EQ(sent_by(role_kind::agent, table_of<host_agent_actor>()),
            (places_of_all<host_agent_actor, start_order, stop_order, start_told, store_listing_wanted,
                           store_part_wanted, log_listing_wanted, log_part_wanted, snapshots_wanted,
                           snapshot_part_wanted, dismissal>()));
  EXPECT_EQ(sent_by(role_kind::coordinator, table_of<worker_actor>()),
            (places_of_all<worker_actor, lease, directory, evaluate, probe>()));
  EXPECT_EQ(sent_by(role_kind::ps_shard, table_of<worker_actor>()),
            (places_of_all<worker_actor, shard_state, fenced, snapshot_offer>()));
}

TEST(message_tables, what_stays_within_a_process_comes_from_no_other) {
  using namespace protocol;
  EXPECT_EQ(sent_by_nobody(table_of<worker_actor>()),
            (places_of_all<worker_actor, leave_job, tick, continuation>()));
  EXPECT_EQ(sent_by_nobody(table_of<ps_shard_actor>()),
            (places_of_all<ps_shard_actor, tick, continuation>()));
  EXPECT_EQ(sent_by_nobody(table_of<keeper_actor>()), (places_of_all<keeper_actor, tick, continuation>()));
  EXPECT_EQ(sent_by_nobody(table_of<agent_actor>()),
            (places_of_all<agent_actor, scale_request, journal_part_wanted, tick, continuation>()));
  EXPECT_EQ(sent_by_nobody(table_of<host_agent_actor>()),
            (places_of_all<host_agent_actor, tick, continuation>()));
  EXPECT_EQ(sent_by_nobody(table_of<data_dispatcher_actor>()),
            (places_of_all<data_dispatcher_actor, tick>()));
}

} // namespace
} // namespace dlrun::link
