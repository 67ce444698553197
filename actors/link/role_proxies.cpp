#include "actors/link/typed_proxy.hpp"

namespace dlrun::link {

template const message_table& table_of<protocol::agent_actor>();
template const message_table& table_of<protocol::coordinator_actor>();
template const message_table& table_of<protocol::data_dispatcher_actor>();
template const message_table& table_of<protocol::host_agent_actor>();
template const message_table& table_of<protocol::keeper_actor>();
template const message_table& table_of<protocol::ps_shard_actor>();
template const message_table& table_of<protocol::worker_actor>();

template result<protocol::agent_actor> connection::borrow<protocol::agent_actor>(std::uint64_t);
template result<protocol::coordinator_actor> connection::borrow<protocol::coordinator_actor>(std::uint64_t);
template result<protocol::data_dispatcher_actor>
    connection::borrow<protocol::data_dispatcher_actor>(std::uint64_t);
template result<protocol::host_agent_actor> connection::borrow<protocol::host_agent_actor>(std::uint64_t);
template result<protocol::keeper_actor> connection::borrow<protocol::keeper_actor>(std::uint64_t);
template result<protocol::ps_shard_actor> connection::borrow<protocol::ps_shard_actor>(std::uint64_t);
template result<protocol::worker_actor> connection::borrow<protocol::worker_actor>(std::uint64_t);

} // namespace dlrun::link
