#include "runtime/agent_relay.hpp"

#include "actors/agent/agent.hpp"
#include "actors/common/ask.hpp"
#include "actors/common/clock.hpp"
#include "runtime/job_identity.hpp"

#include <algorithm>
#include <utility>

namespace dlrun::runtime {
namespace {

constexpr auto look_period_max = std::chrono::milliseconds(200);
/// While the agent is lost: whether it has moved, and from one try to the next.
constexpr auto lost_look_period = std::chrono::milliseconds(50);
constexpr auto dial_period = std::chrono::milliseconds(200);
constexpr auto renewal_deadline = std::chrono::seconds(5);
/// Looks within a lifetime: a renewal that failed is tried again this often in its second half.
constexpr int looks = 40;
/// Beside each so manieth try there is one at the address that was told.
constexpr std::uint64_t tries_beside_a_told_one = 10;

/// One actor, on a thread of the scheduler.
class relay_state {
public:
  struct holder {
    std::unique_ptr<relay_state> role;
    static inline const char* name = "agent-relay";
  };
  using pointer = protocol::agent_actor::stateful_pointer<holder>;
  using behavior = protocol::agent_actor::behavior_type;

  static behavior start(pointer self, agent_relay_options options) {
    self->state.role = std::make_unique<relay_state>(self, std::move(options));
    auto* role = self->state.role.get();
    self->set_down_handler([role](const caf::down_msg& down) { role->on_down(down); });
    role->dialled_at_ = role->place();
    if (role->options_.first) role->take(role->options_.first);
    self->send(self, protocol::tick{});
    return role->make_behavior();
  }

  relay_state(pointer self, agent_relay_options options)
      : self_{self}
      , options_{std::move(options)}
      , lifetime_{options_.lifetime}
      , renewed_{common::now()} {}

private:
  behavior make_behavior() {
    return {
        [this](const protocol::join& join, const protocol::coordinator_actor& who) {
          return self_->delegate(agent_, join, who);
        },
        [this](const protocol::grant& grant) { hand_on(grant); },
        [this](const protocol::start_over& which) { hand_on(which); },
        [this](const protocol::workers_wanted& word) { hand_on(word); },
        [this](const protocol::scale_request& request) { return self_->delegate(agent_, request); },
        [this](const protocol::journal_part_wanted& wanted) { return self_->delegate(agent_, wanted); },
        [this](const protocol::job_event& event) { hand_on(event); },
        [this](const protocol::stall& what) { hand_on(what); },
        [this](const protocol::job_ended& ended) { hand_on(ended); },
        [this](const protocol::heartbeat& beat) { return self_->delegate(agent_, beat); },
        [this](const protocol::stop_job& stop) { hand_on(stop); },
        [this](const protocol::host_joined& joined, const protocol::host_agent_actor& who) {
          return self_->delegate(agent_, joined, who);
        },
        [this](const protocol::start_report& report) { hand_on(report); },
        [this](const protocol::work_report& work) { hand_on(work); },
        [this](const protocol::credentials_wanted& wanted) { return self_->delegate(agent_, wanted); },
        [this](const protocol::report_part& part) { return self_->delegate(agent_, part); },
        [this](const protocol::tick&) { on_tick(); },
        [](const protocol::continuation& task) { common::run(task); },
    };
  }

  template <class Message>
  void hand_on(const Message& message) {
    if (agent_) self_->send(agent_, message);
  }

  void on_tick() {
    self_->delayed_send(self_, look_period(), protocol::tick{});
    if (is_there_) look_whether_it_has_moved();
    if (!is_there_)
      look_for_it();
    else if (common::now() - renewed_ >= lifetime_ / 2)
      renew();
  }

  std::chrono::milliseconds look_period() const {
    if (!is_there_ && options_.dial) return lost_look_period;
    const auto lifetime = std::chrono::duration_cast<std::chrono::milliseconds>(lifetime_);
    return std::min<std::chrono::milliseconds>(look_period_max, lifetime / looks);
  }

  // ---- the agent
  void take(const protocol::agent_actor& agent) {
    agent_ = agent;
    is_there_ = true;
    self_->monitor(agent_);
  }

  void on_down(const caf::down_msg& down) {
    if (!agent_ || agent_.address() != down.source) return;
    is_there_ = false;
    options_.log->warn("agent-lost: {}", to_string(down.reason));
  }

  /// R39: what is there is an older root then.
  void look_whether_it_has_moved() {
    const auto before = dialled_at_;
    if (before == place() || !options_.leave) return;
    if (before == 0)
      dialled_at_ = place(); // the first call, of the root that was told
    else
      options_.leave();
  }

  std::uint32_t place() const { return options_.place ? options_.place->number() : 0; }

  /// A try at a place that it has left counts no more.
  void look_for_it() {
    if (!options_.dial) return;
    const bool has_moved = place() != dialled_at_;
    const bool is_due = !dialling_ && common::now() - dialled_ >= dial_period;
    if (has_moved || is_due) dial();
  }

  void dial() {
    dialling_ = true;
    dialled_ = common::now();
    dialled_at_ = place();
    options_.dial([post = common::poster<protocol::agent_actor>{self_}, this, number = ++dials_](
                      const auto& found) { post([this, found, number] { on_found(found, number); }); });
  }

  void on_found(const result<protocol::agent_actor>& found, std::uint64_t number) {
    if (number != dials_) return;
    dialling_ = false;
    if (!found) return options_.log->warn("link: {}", found.error().message);
    options_.log->info("agent-found");
    take(*found);
  }

  // ---- the certificate
  void renew() {
    if (std::exchange(asking_, true)) return;
    common::ask(
        self_, agent_, renewal_deadline, options_.self,
        [this](const protocol::role_credentials& next) {
          asking_ = false;
          const auto taken = options_.identity->renew(to_credentials(next));
          if (!taken) return options_.log->warn("certificate: {}", taken.error().message);
          renewed_ = common::now();
          lifetime_ = std::chrono::seconds{next.lifetime_s};
          options_.log->info("certificate-renewed");
        },
        [this](const caf::error& why) {
          asking_ = false;
          options_.log->warn("certificate: {}", to_string(why));
        });
  }

  pointer self_;
  agent_relay_options options_;
  protocol::duration lifetime_;
  protocol::time_point renewed_;
  protocol::agent_actor agent_{}; ///< the newest connection's, perhaps lost
  bool is_there_ = false;
  bool dialling_ = false;   ///< by the newest try,
  std::uint64_t dials_ = 0; ///< which has this number,
  std::uint32_t dialled_at_ = 0;
  protocol::time_point dialled_{}; ///< and began then
  bool asking_ = false;
};

} // namespace

agent_connector connect_over(link::process_link& link) {
  return [over = &link](const auto& address, auto found) {
    over->connect<protocol::agent_actor>(address, agent::agent_peer, std::move(found));
  };
}

agent_dialler agent_dial(agent_connector connect, std::string address,
                         std::shared_ptr<const common::root_place> place) {
  return [connect = std::move(connect), address = std::move(address), place = std::move(place),
          tries = std::uint64_t{0}](auto found) mutable {
    const auto now = place ? place->now(address) : address;
    if (++tries % tries_beside_a_told_one == 0 && now != address) connect(address, [](const auto&) {});
    connect(now, std::move(found));
  };
}

std::function<void()> agent_leave(link::process_link& link) {
  return [of = &link] { of->leave(agent::agent_peer); };
}

agent_relay::agent_relay(caf::actor_system& system, agent_relay_options options)
    : system_{system}
    , relay_{system.spawn(relay_state::start, std::move(options))} {}

agent_relay::~agent_relay() {
  caf::anon_send_exit(relay_, caf::exit_reason::user_shutdown);
  caf::scoped_actor waiter{system_};
  waiter->wait_for(caf::actor_cast<caf::actor>(relay_));
}

} // namespace dlrun::runtime
