#include "actors/link/process_link.hpp"

#include <algorithm>
#include <mutex>
#include <set>
#include <vector>

namespace dlrun::link {

/// What the brokers, the gatekeeper and their owner share.
struct process_link::state {
  caf::actor_system& system;
  const process_link_options options;
  std::mutex mutex{};
  lent_actor door{};                         // guarded by mutex, as are the next three
  std::set<caf::strong_actor_ptr> brokers{}; // of open connections
  struct dialled_one {
    std::shared_ptr<connection> link;
    caf::actor_addr broker;
  };
  /// Of those, the ones that this process has dialled; two to a peer that was dialled twice at
  /// once.
  std::vector<dialled_one> dialled{};
  bool is_over = false;

  lent_actor door_now() {
    const std::scoped_lock lock{mutex};
    return door;
  }

  bool is_here(const peer_id& wanted) {
    const std::scoped_lock lock{mutex};
    return wanted == options.self && door.actor != nullptr && !is_over;
  }

  /// The newest.
  std::shared_ptr<connection> find(const peer_id& wanted) {
    const std::scoped_lock lock{mutex};
    const auto found = std::find_if(dialled.rbegin(), dialled.rend(),
                                    [&](const auto& one) { return one.link->peer() == wanted; });
    return found == dialled.rend() ? nullptr : found->link;
  }

  std::vector<caf::actor_addr> brokers_to(const peer_id& peer) {
    const std::scoped_lock lock{mutex};
    std::vector<caf::actor_addr> all;
    for (const auto& one : dialled)
      if (one.link->peer() == peer) all.push_back(one.broker);
    return all;
  }

  /// @returns whether it may stay.
  bool add(const caf::strong_actor_ptr& broker) {
    const std::scoped_lock lock{mutex};
    if (!is_over) brokers.insert(broker);
    return !is_over;
  }

  void note_dialled(const std::shared_ptr<connection>& link, const caf::actor_addr& broker) {
    const std::scoped_lock lock{mutex};
    dialled.push_back({link, broker});
  }

  void remove(const caf::actor_addr& broker, const std::shared_ptr<connection>& link) {
    const std::scoped_lock lock{mutex};
    std::erase_if(brokers, [&](const auto& one) { return one->address() == broker; });
    std::erase_if(dialled, [&](const auto& one) { return one.link == link; });
  }

  void end_connections() {
    std::set<caf::strong_actor_ptr> open;
    {
      const std::scoped_lock lock{mutex};
      is_over = true;
      door = {};
      open = brokers;
    }
    for (const auto& broker : open) caf::anon_send_exit(broker, caf::exit_reason::user_shutdown);
  }
};

namespace {

struct broker_holder {
  static inline const char* name = "connection";
};
using broker_pointer = caf::io::stateful_broker<broker_holder>*;

void take(broker_pointer self, connection& link, std::span<const char> bytes,
          const std::function<void(const std::string&)>& warn) {
  const auto taken = link.take(bytes);
  if (taken) return;
  warn(fmt::format("peer-refused: {}: {}", to_string(link.peer()), taken.error().message));
  self->quit();
}

} // namespace

/// Runs a connection until one of its ends is gone.
struct process_link::opening {
  std::shared_ptr<state> shared;
  open_socket socket;
  bool was_dialled = false;
  reached done{};

  static void run(std::shared_ptr<opening> what) {
    what->shared->system.middleman().spawn_broker<caf::hidden>(
        [what](broker_pointer self) { return what->behave(self); });
  }

  caf::behavior behave(broker_pointer self) {
    if (!shared->add(caf::actor_cast<caf::strong_actor_ptr>(self))) { // before CAF has the socket
      if (done) done(fail(error_code::interrupted, "the control link was stopped"));
      return {};
    }
    const auto handle = self->add_scribe(socket.socket.release());
    self->configure_read(handle, caf::io::receive_policy::at_most(frame_bytes_max));
    const auto& warn = shared->options.warn;
    auto link = std::make_shared<connection>(
        *self, handle, connection_setup{socket.peer, [state = shared] { return state->door_now(); }, warn});
    self->set_down_handler([link](const caf::down_msg& down) { link->on_down(down); });
    self->attach_functor([state = shared, link, broker = self->address()] {
      link->end(fmt::format("the connection to {} has ended", to_string(link->peer())));
      state->remove(broker, link);
    });
    if (was_dialled) shared->note_dialled(link, self->address());
    if (done) done(link);
    if (!socket.rest.empty()) take(self, *link, socket.rest, warn);
    return {[self, link, warn](const caf::io::new_data_msg& what) { take(self, *link, what.buf, warn); },
            [self](const caf::io::connection_closed_msg&) { self->quit(); }};
  }
};

process_link::process_link(std::shared_ptr<state> shared)
    : state_{std::move(shared)} {}

process_link::~process_link() {
  gate_.reset();
  state_->end_connections();
}

result<std::unique_ptr<process_link>> process_link::create(caf::actor_system& system,
                                                           process_link_options options) {
  std::shared_ptr<state> shared{new state{.system = system, .options = std::move(options)}};
  auto gate = gatekeeper::start(
      {.token = shared->options.token, .self = shared->options.self, .remote = shared->options.remote},
      {.is_here = [shared](const peer_id& wanted) { return shared->is_here(wanted); },
       .accepted =
           [shared](open_socket socket) {
             opening::run(std::make_shared<opening>(opening{shared, std::move(socket)}));
           }});
  if (!gate) return tl::unexpected(gate.error());
  std::unique_ptr<process_link> made{new process_link(std::move(shared))};
  made->gate_ = std::move(*gate);
  return made;
}

void process_link::open_door(lent_actor role) {
  role.actor->get()->attach_functor([weak = std::weak_ptr{state_}] {
    if (const auto shared = weak.lock()) shared->end_connections();
  });
  const std::scoped_lock lock{state_->mutex};
  state_->door = std::move(role);
}

void process_link::reach(const std::string& address, const peer_id& wanted, reached done) {
  if (auto open = state_->find(wanted)) {
    state_->system.middleman().backend().dispatch(
        [open = std::move(open), done = std::move(done)] { done(open); });
    return;
  }
  gate_->dial(address, wanted, [shared = state_, done = std::move(done)](result<open_socket> socket) {
    if (!socket) return done(tl::unexpected(socket.error()));
    opening::run(std::make_shared<opening>(opening{shared, std::move(*socket), true, done}));
  });
}

void process_link::leave(const peer_id& peer) {
  for (const auto& broker : state_->brokers_to(peer))
    caf::anon_send_exit(broker, caf::exit_reason::user_shutdown);
}

} // namespace dlrun::link

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
/// CAF's event loop does not free a connection that is still being closed when the loop itself
/// ends.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:caf::io::network::default_multiplexer::new_scribe";
}
#endif
#endif
