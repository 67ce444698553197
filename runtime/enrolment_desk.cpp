#include "runtime/enrolment_desk.hpp"

#include "actors/common/ask.hpp"
#include "actors/common/fingerprint.hpp"
#include "base/ipv4_address.hpp"
#include "base/utf8.hpp"
#include "job/hosts_file.hpp"
#include "runtime/secret_file.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

namespace dlrun::runtime {
namespace {

constexpr std::size_t folder_bytes_max = 4096;
constexpr std::uint32_t cpus_max = 4096;
constexpr std::size_t uid_bytes_max = 64;

bool is_number(const std::string& address) {
  const auto parsed = base::parse_ipv4_address(address + ":0");
  return parsed && base::to_string(*parsed) == address + ":0";
}

/// Or "": it is told of none.
bool is_uid(const std::string& text) {
  const auto is_allowed = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-'; };
  return text.size() <= uid_bytes_max && std::ranges::all_of(text, is_allowed);
}

/// Null where the list names none.
result<std::shared_ptr<const agent::join_key>> read_key(const spec::JoinSpec& join) {
  if (!join.has_key_file()) return nullptr;
  auto key = read_key_file(join.key_file());
  if (!key) return fail(key.error().code, "join.key_file: " + key.error().message);
  return std::make_shared<const agent::join_key>(std::move(*key));
}

} // namespace

result<void> check_request(const bootstrap::JoinRequest& who) {
  if (!job::is_host_name(who.name()))
    return fail(error_code::bad_usage,
                fmt::format("the name \"{}\" cannot be a host's: letters, digits, '.', '_' and '-', a letter "
                            "or digit first; name another with --name",
                            base::printable(who.name())));
  if (!is_number(who.address()))
    return fail(
        error_code::bad_usage,
        fmt::format("host {}: \"{}\" is no IPv4 number by which the other hosts reach it: name it with "
                    "--address",
                    who.name(), base::printable(who.address())));
  const auto& folder = who.folder();
  const bool is_absolute = folder.starts_with('/') && folder.find('\0') == std::string::npos;
  if (folder.size() > folder_bytes_max || (!folder.empty() && !is_absolute))
    return fail(error_code::bad_usage, fmt::format("host {}: '{}' is no full path of a folder", who.name(),
                                                   base::printable(folder)));
  if (!is_uid(who.pod()))
    return fail(error_code::bad_usage, fmt::format("host {}: \"{}\" is no uid of a pod", who.name(),
                                                   base::printable(who.pod().substr(0, uid_bytes_max))));
  if (who.cpus() > cpus_max)
    return fail(error_code::bad_usage,
                fmt::format("host {}: {} cores, at most {}", who.name(), who.cpus(), cpus_max));
  return {};
}

result<std::shared_ptr<enrolment_desk>> enrolment_desk::create(const spec::JoinSpec& join,
                                                               std::shared_ptr<const job_identity> identity,
                                                               const std::string& root,
                                                               std::shared_ptr<host_bundles> bundles) {
  auto key = read_key(join);
  if (!key) return tl::unexpected(key.error());
  auto listener = agent::listen_for_enrolments(join.listen());
  if (!listener) return tl::unexpected(listener.error());
  const auto own = identity->issue({protocol::role_kind::agent, 0}, root);
  if (!own) return tl::unexpected(own.error());
  auto door = security::tls_context::make_door(to_credentials(*own));
  if (!door) return tl::unexpected(door.error());
  auto pin = security::pin_of(own->authority);
  if (!pin) return tl::unexpected(pin.error());
  return std::shared_ptr<enrolment_desk>{new enrolment_desk(std::move(*listener),
                                                            {.door = std::move(*door),
                                                             .pin = std::move(*pin),
                                                             .version = common::dlrun_build(),
                                                             .key = std::move(*key)},
                                                            std::move(bundles))};
}

enrolment_desk::enrolment_desk(agent::enrolment_listener listener, agent::enrolment_options options,
                               std::shared_ptr<host_bundles> bundles)
    : address_{listener.address}
    , options_{std::move(options)}
    , bundles_{std::move(bundles)}
    , listener_{std::move(listener)} {}

enrolment_desk::~enrolment_desk() { close(); }

result<void> enrolment_desk::open(const protocol::agent_actor& agent,
                                  const std::shared_ptr<agent::routed_launcher>& launcher) {
  agent::enrolment_events events;
  events.admit = [agent, launcher](const auto& who, auto done) {
    if (const auto sound = check_request(who); !sound) return done(tl::unexpected(sound.error()));
    common::post(agent, [launcher, done = std::move(done),
                         host = agent::arriving_host{who.name(), who.address(), who.cpus(), who.pod()}] {
      done(launcher->admit(host));
    });
  };
  events.bundle = [bundles = bundles_](const auto& who, const auto& as) {
    return bundles->for_enrolled(who, as);
  };
  events.ended = [agent, launcher](const auto& who, const auto& why) {
    common::post(agent, [launcher, who, why] { launcher->on_enrolment_ended(who, why); });
  };
  events.refused = [agent](const auto& text) {
    caf::anon_send(agent, protocol::job_event{.event = "host-refused",
                                              .role = {protocol::role_kind::agent, 0},
                                              .incarnation = {1},
                                              .text = text});
  };
  const std::scoped_lock lock{mutex_};
  auto server = agent::enrolment_server::start(std::move(listener_), options_, std::move(events));
  if (!server) return tl::unexpected(server.error());
  server_ = std::move(*server);
  return {};
}

void enrolment_desk::close() {
  std::unique_ptr<agent::enrolment_server> ended;
  const std::scoped_lock lock{mutex_};
  ended.swap(server_);
}

result<security::secret_text> enrolment_desk::make_token(std::chrono::seconds lifetime) {
  const std::scoped_lock lock{mutex_};
  if (!server_) return fail(error_code::bad_usage, "the job is beginning or ending, and no host may join");
  return server_->make_token(lifetime);
}

void enrolment_desk::let_go(const std::string& host) {
  const std::scoped_lock lock{mutex_};
  if (server_) server_->let_go(host);
}

void enrolment_desk::renew(const security::credentials& own) { static_cast<void>(options_.door->renew(own)); }

} // namespace dlrun::runtime
