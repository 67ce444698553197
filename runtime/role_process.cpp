#include "actors/agent/agent.hpp"
#include "actors/agent/credentials_message.hpp"
#include "actors/agent/process/bootstrap.hpp"
#include "actors/agent/process/last_words.hpp"
#include "actors/agent/process/parent_bond.hpp"
#include "actors/agent/process_launcher.hpp"
#include "actors/common/actor_config.hpp"
#include "actors/common/role_log.hpp"
#include "actors/common/root_place.hpp"
#include "job/exit_code.hpp"
#include "proto/bootstrap.pb.h"
#include "runtime/agent_relay.hpp"
#include "runtime/device_choice.hpp"
#include "runtime/job_identity.hpp"
#include "runtime/microbatch_trial.hpp"
#include "runtime/role_entry.hpp"
#include "runtime/role_host.hpp"
#include "runtime/stop_wait.hpp"

#include <atomic>
#include <charconv>
#include <csignal>
#include <dlrun/detail/named_factories.hpp>
#include <dlrun/training.hpp>
#include <future>
#include <sys/prctl.h>

namespace dlrun::runtime {
namespace {

constexpr std::size_t scheduler_threads = 2;

struct role_options {
  int bootstrap_fd = -1;
  int lifeline_fd = -1;
  int last_words_fd = -1;
  std::vector<int> data_fds;
  int weights_fd = -1;           ///< of train.init_from
  int progress_fd = -1;          ///< a worker's
  int root_place_fd = -1;        ///< on another host than the root's
  std::vector<int> retained_fds; ///< a PS shard's, as are the next
  std::vector<int> former_fds;
};

result<bootstrap::Bootstrap> read_message(const role_options& options) {
  const auto bytes = agent::read_bootstrap(options.bootstrap_fd);
  if (!bytes) return tl::unexpected(bytes.error());
  bootstrap::Bootstrap message;
  if (!message.ParseFromString(*bytes))
    return fail(error_code::protocol, "the bootstrap message cannot be read");
  if (message.format() != agent::bootstrap_format)
    return fail(error_code::protocol, fmt::format("bootstrap format {} is not known, only {}",
                                                  message.format(), agent::bootstrap_format));
  if (!transport::run_token::from_bytes(message.run_token()) ||
      message.data_files_size() != static_cast<int>(options.data_fds.size()))
    return fail(error_code::protocol, "the bootstrap message does not fit the command line");
  return message;
}

/// The data that the agent decoded, from the inherited descriptors.
result<std::shared_ptr<const data::job_data>> adopt_data(const bootstrap::Bootstrap& message,
                                                         const role_options& options) {
  std::vector<std::shared_ptr<const data::blob>> memory;
  for (int i = 0; i < message.data_files_size(); ++i) {
    auto mapped = data::blob::from_fd(options.data_fds[static_cast<std::size_t>(i)], message.data_files(i));
    if (!mapped) return tl::unexpected(mapped.error());
    memory.push_back(std::make_shared<data::blob>(std::move(*mapped)));
  }
  data::job_data data;
  auto training = data::from_message(message.training(), memory);
  if (!training) return tl::unexpected(training.error());
  data.training = std::move(*training);
  if (message.has_validation()) {
    auto validation = data::from_message(message.validation(), memory);
    if (!validation) return tl::unexpected(validation.error());
    data.validation = std::move(*validation);
  }
  return std::make_shared<const data::job_data>(std::move(data));
}

/// How processes of other hosts reach this one; nothing in a job of one host.
result<std::optional<link::remote_access>> take_access(const bootstrap::Bootstrap& message) {
  if (!message.has_credentials()) return std::nullopt;
  auto made = make_remote_access(agent::from_message(message.credentials()), message.host_address());
  if (!made) return tl::unexpected(made.error());
  return std::move(*made);
}

result<std::shared_ptr<const common::job_context>>
make_job(const bootstrap::Bootstrap& message, const role_options& options,
         const std::optional<link::remote_access>& remote) {
  common::job_context_arguments arguments{.spec = message.spec(),
                                          .train_records = message.train_records(),
                                          .validation_records = message.validation_records(),
                                          .run = message.run(),
                                          .run_dir = message.run_dir(),
                                          .root_dir = message.root_dir(),
                                          .has_hosts = message.has_credentials(),
                                          .host = message.host_name(),
                                          .agent_process = message.agent_process(),
                                          .started =
                                              protocol::time_point{protocol::duration{message.started_us()}}};
  if (remote) arguments.other_hosts = {remote->host, remote->identity};
  arguments.run_token = transport::run_token::from_bytes(message.run_token()).value();
  arguments.revisions.assign(message.revisions().begin(), message.revisions().end());
  if (message.has_training()) {
    auto data = adopt_data(message, options);
    if (!data) return tl::unexpected(data.error());
    arguments.data = std::move(*data);
  }
  if (options.weights_fd >= 0)
    arguments.initial_weights = std::make_shared<const base::unique_fd>(options.weights_fd);
  if (message.has_gpu()) {
    auto gpus = open_gpu(arguments.spec, static_cast<int>(message.gpu()));
    if (!gpus) return tl::unexpected(gpus.error());
    arguments.gpus = std::move(*gpus);
  }
  return common::make_job_context(std::move(arguments));
}

result<std::unique_ptr<link::process_link>> open_link(caf::actor_system& system,
                                                      const common::role_context& context,
                                                      std::optional<link::remote_access> remote) {
  return link::process_link::create(
      system, {.token = context.job->run_token,
               .self = {context.role, context.self.incarnation},
               .remote = std::move(remote),
               .warn = [log = context.log](const std::string& text) { log->warn("{}", text); }});
}

/// Of a job of several hosts. The agent knows a coordinator by the connection over which it joined:
/// one that has lost it is started anew.
std::unique_ptr<agent_relay> make_relay(caf::actor_system& system, const common::role_context& context,
                                        const bootstrap::Bootstrap& message,
                                        const std::shared_ptr<const common::root_place>& place,
                                        std::shared_ptr<security::tls_context> identity) {
  return std::make_unique<agent_relay>(
      system,
      agent_relay_options{.first = context.agent,
                          .dial = agent_dial(connect_over(*context.link), message.agent_control(), place),
                          .place = place,
                          .leave = agent_leave(*context.link),
                          .self = {context.role, context.self.incarnation},
                          .identity = std::move(identity),
                          .lifetime = std::chrono::seconds{message.credentials().lifetime_s()},
                          .log = context.log});
}

/// Null on the root's host.
result<std::shared_ptr<const common::root_place>> adopt_place(const role_options& options) {
  if (options.root_place_fd < 0) return nullptr;
  auto place = common::root_place::open(base::unique_fd{options.root_place_fd});
  if (!place) return tl::unexpected(place.error());
  return std::make_shared<const common::root_place>(std::move(*place));
}

/// Blocks until the agent has answered, or has not in time where it is.
result<protocol::agent_actor> find_agent(link::process_link& link, const std::string& address,
                                         const result<std::shared_ptr<const common::root_place>>& place) {
  if (!place) return tl::unexpected(place.error());
  const auto number = [&] { return *place ? (*place)->number() : 0; };
  const auto dial = agent_dial(connect_over(link), address, *place);
  result<protocol::agent_actor> agent = fail(error_code::role_lost, "");
  for (auto tried = number() + 1; !agent && tried != number();) {
    tried = number();
    auto found = std::make_shared<std::promise<result<protocol::agent_actor>>>();
    auto answer = found->get_future();
    dial([found](const auto& one) { found->set_value(one); });
    agent = answer.get();
  }
  if (!agent) return fail(error_code::role_lost, "cannot reach the agent: " + agent.error().message);
  return agent;
}

/// A worker's, which says from now on how this process ends; null for others.
result<std::shared_ptr<common::progress_word>> adopt_progress(const role_options& options) {
  if (options.progress_fd < 0) return nullptr;
  auto word = common::progress_word::open(base::unique_fd{options.progress_fd});
  if (!word) return tl::unexpected(word.error());
  auto progress = std::make_shared<common::progress_word>(std::move(*word));
  progress->watch_the_end();
  // Never destroyed: a signal handler may come after everything else.
  [[maybe_unused]] static const auto* const immortal = new std::shared_ptr<common::progress_word>(progress);
  return progress;
}

/// A PS shard's; null for others.
result<std::shared_ptr<common::ps_shard_memory>> adopt_memory(const role_options& options) {
  if (options.retained_fds.empty()) return nullptr;
  auto own = common::adopt_retained(options.retained_fds);
  if (!own) return tl::unexpected(own.error());
  auto former = common::adopt_retained(options.former_fds);
  if (!former) return tl::unexpected(former.error());
  return std::make_shared<common::ps_shard_memory>(
      common::ps_shard_memory{std::move(*own), std::move(*former)});
}

common::role_context make_role_context(const bootstrap::Bootstrap& message, protocol::role_kind kind,
                                       std::shared_ptr<const common::job_context> job) {
  common::role_context context{.role = {kind, message.index()},
                               .self = {{message.incarnation()}, message.token()},
                               .job = std::move(job)};
  if (message.has_coordinator()) {
    const auto& address = message.coordinator();
    context.coordinator = protocol::endpoint{address.control(), address.process(), {}};
    context.coordinator_incarnation = {address.incarnation()};
  }
  context.log = common::make_role_log(*context.job, context.role, context.self.incarnation);
  return context;
}

/// No role. @returns the exit code of its process.
result<int> serve_trial(const bootstrap::Bootstrap& message, const role_options& options) {
  engine::gpu_set gpus;
  if (message.has_gpu()) {
    auto opened = open_gpu(message.spec(), static_cast<int>(message.gpu()));
    if (!opened) return tl::unexpected(opened.error());
    gpus = std::move(*opened);
  }
  if (auto tried =
          runtime::serve_trial({message.spec(), gpus, message.train_records()}, options.last_words_fd);
      !tried)
    return tl::unexpected(tried.error());
  return 0;
}

/// @returns the exit code of its process.
result<int> run_role(const role_options& options) {
  const auto signals = take_stop_signals();
  const auto message = read_message(options);
  if (!message) return tl::unexpected(message.error());
  if (const auto bound = agent::bind_to_parent(message->parent_pid()); !bound)
    return tl::unexpected(bound.error());
  // Whoever dies above us, we die at once: what is not committed is void anyway.
  const auto bond = agent::lifeline::watch(base::unique_fd{options.lifeline_fd}, [] { std::_Exit(1); });
  if (!bond) return tl::unexpected(bond.error());
  if (message->is_trial()) return serve_trial(*message, options);
  const auto kind = role_kind_from(message->role());
  if (!kind) return fail(error_code::protocol, fmt::format("role '{}' is not known", message->role()));
  const auto progress = adopt_progress(options);
  if (!progress) return tl::unexpected(progress.error());
  const auto memory = adopt_memory(options);
  if (!memory) return tl::unexpected(memory.error());
  auto remote = take_access(*message);
  if (!remote) return tl::unexpected(remote.error());
  auto job = make_job(*message, options, *remote);
  if (!job) return tl::unexpected(job.error());

  common::actor_config config{scheduler_threads};
  caf::actor_system system{config};
  auto context = make_role_context(*message, *kind, std::move(*job));
  const auto identity = *remote ? (*remote)->identity : nullptr;
  auto link = open_link(system, context, std::move(*remote));
  if (!link) return tl::unexpected(link.error());
  const auto place = adopt_place(options);
  auto agent = find_agent(**link, message->agent_control(), place);
  if (!agent) return tl::unexpected(agent.error());
  context.link = link->get();
  context.agent = std::move(*agent);
  const auto relay = identity ? make_relay(system, context, *message, *place, identity) : nullptr;
  if (relay) context.agent = relay->agent();
  context.progress = *progress;
  context.memory = *memory;
  const auto role = start_role(system, std::move(context));
  int code = 0;
  const auto leave = [&] {
    code = agent::left_code;
    ask_to_leave(*kind, role);
  };
  if (const auto ended = run_to_end(role, signals, leave); !ended) return tl::unexpected(ended.error());
  return code;
}

/// What the launcher wrote (process_launcher::make_child): descriptors by name. @returns nothing
/// for anything else.
std::optional<role_options> read_arguments(std::span<char*> arguments) {
  role_options options;
  if (arguments.size() % 2 != 0) return std::nullopt;
  for (std::size_t i = 0; i < arguments.size(); i += 2) {
    const std::string_view name = arguments[i];
    const std::string_view text = arguments[i + 1];
    int fd = -1;
    if (std::from_chars(text.begin(), text.end(), fd).ptr != text.end() || fd < 0) return std::nullopt;
    if (name == agent::bootstrap_option)
      options.bootstrap_fd = fd;
    else if (name == agent::lifeline_option)
      options.lifeline_fd = fd;
    else if (name == agent::last_words_option)
      options.last_words_fd = fd;
    else if (name == agent::data_option)
      options.data_fds.push_back(fd);
    else if (name == agent::weights_option)
      options.weights_fd = fd;
    else if (name == common::progress_option)
      options.progress_fd = fd;
    else if (name == common::root_place_option)
      options.root_place_fd = fd;
    else if (name == common::retained_option)
      options.retained_fds.push_back(fd);
    else if (name == common::former_option)
      options.former_fds.push_back(fd);
    else
      return std::nullopt;
  }
  if (options.bootstrap_fd < 0 || options.lifeline_fd < 0 || options.last_words_fd < 0) return std::nullopt;
  return options;
}

int failed(const error& why) {
  std::fputs(fmt::format("dlrun: {}\n", why.message).c_str(), stderr);
  return static_cast<int>(job::exit_code_for(why.code));
}

int run_and_tell(const role_options& options) {
  try {
    const auto ended = run_role(options);
    if (ended) return *ended;
    agent::leave_last_words(options.last_words_fd, ended.error().message);
    return failed(ended.error());
  } catch (const std::exception& thrown) {
    agent::leave_last_words(options.last_words_fd, thrown.what());
    return failed({error_code::role_lost, thrown.what()});
  }
}

/// For `ps` and `top`: the kernel knows a program that was started through a link by the name of
/// the link.
void take_name(std::string_view program) {
  const std::string name{program.substr(program.rfind('/') + 1)};
  ::prctl(PR_SET_NAME, name.c_str());
}

std::atomic<bool> entry_passed = false;

} // namespace

bool role_entry_passed() { return entry_passed; }

} // namespace dlrun::runtime

std::optional<int> dlrun::run_role(int argc, char** argv) {
  using namespace dlrun::runtime;
  std::signal(SIGXFSZ, SIG_IGN); // a file that may not grow is told by write(2), with a reason
  detail::registration_is_over = true;
  if (argc < 2 || std::string_view{argv[1]} != agent::role_argument) {
    entry_passed = true;
    return std::nullopt;
  }
  take_name(argv[0]);
  if (const auto options = read_arguments({argv + 2, argv + argc})) return run_and_tell(*options);
  return failed(
      {error_code::bad_usage, fmt::format("'{}' is what processes of a run are started with, by dlrun itself",
                                          agent::role_argument)});
}
