#include "runtime/microbatch_trial.hpp"

#include "actors/agent/process/last_words.hpp"
#include "actors/agent/process/parent_bond.hpp"
#include "actors/agent/process/process_spawner.hpp"
#include "actors/agent/process_launcher.hpp"
#include "base/os_error.hpp"
#include "engine/computer.hpp"
#include "proto/bootstrap.pb.h"
#include "transport/run_token.hpp"

#include <algorithm>
#include <charconv>
#include <fcntl.h>
#include <fmt/format.h>
#include <future>
#include <unistd.h>
#include <vector>

namespace dlrun::runtime {
namespace {

using seconds = std::chrono::duration<double>;
using clock = std::chrono::steady_clock;

constexpr int rounds = 3; // the first one makes the primitives
constexpr auto look_every = std::chrono::milliseconds(50);

/// How it ended; nothing when it did not within the patience.
using child_end = std::optional<result<agent::exit_report>>;

bootstrap::Bootstrap message_for(const tried_model& what) {
  bootstrap::Bootstrap message;
  message.set_format(agent::bootstrap_format);
  message.set_run_token(transport::run_token{}.to_bytes());
  message.set_parent_pid(::getpid());
  message.set_is_trial(true);
  message.set_train_records(what.records);
  *message.mutable_spec() = what.spec;
  if (what.gpus.cuda != nullptr) message.set_gpu(static_cast<std::uint32_t>(what.gpus.numbers.front()));
  return message;
}

std::optional<seconds> time_in(const std::string& last_words) {
  double value = 0;
  const auto* end = last_words.data() + last_words.size();
  const auto read = std::from_chars(last_words.data(), end, value);
  if (read.ec != std::errc{} || read.ptr != end) return std::nullopt;
  return seconds{value};
}

/// The child is killed when this returns, if it has not ended.
child_end run_child(agent::process_spawner& spawner, agent::child_command child,
                    const trial_options& options) {
  auto ended = std::make_shared<std::promise<result<agent::exit_report>>>();
  auto end = ended->get_future();
  const auto started = spawner.spawn(
      std::move(child),
      [ended](agent::child_id, const result<pid_t>& pid) {
        if (!pid) ended->set_value(tl::unexpected(pid.error()));
      },
      [ended](agent::child_id, const agent::exit_report& report) { ended->set_value(report); });
  if (!started) return tl::unexpected(started.error());
  const auto deadline = clock::now() + options.patience;
  while (clock::now() < deadline && !options.is_interrupted())
    if (end.wait_for(look_every) == std::future_status::ready) return end.get();
  return std::nullopt;
}

} // namespace

result<seconds> time_microbatch(const tried_model& what, const trial_listener& tell) {
  const auto& spec = what.spec;
  const auto model = engine::model::build(spec.model());
  if (!model) return tl::unexpected(model.error());
  const auto size =
      std::min<std::int64_t>(spec.train().microbatch_size(), static_cast<std::int64_t>(what.records));
  std::size_t features = 1;
  for (const auto extent : (*model)->input_shape()) features *= static_cast<std::size_t>(extent);
  std::vector<float> parameters((*model)->layout().flat_size());
  (*model)->initialise(spec.train().seed(), parameters);
  // Zero, since that is an index that every embedding has.
  const std::vector<float> records(static_cast<std::size_t>(size) * features, 0.0F);
  const auto& loss = (*model)->loss();
  const bool by_class = loss.targets() == target_kind::classes;
  const auto targets = static_cast<std::size_t>(size * loss.target_values());
  const std::vector<std::int32_t> classes(by_class ? targets : 0);
  const std::vector<float> values(by_class ? 0 : targets);
  const auto threads = static_cast<int>(spec.cluster().threads_per_worker());
  const auto made = engine::make_computer_at(what.gpus.place_of({}, threads), *model);
  if (!made) return tl::unexpected(made.error());
  const auto& computer = made->computer;
  if (auto read = computer->read({}, parameters); !read) return tl::unexpected(read.error());
  std::vector<float> memory(parameters.size()); // to the host, as a worker's gradient
  const auto gradient = computer->lend(memory);
  if (!gradient) return tl::unexpected(gradient.error());
  auto best = seconds::max();
  for (int round = 0; round < rounds; ++round) {
    const auto begin = clock::now();
    auto done = computer->forward_backward({records, classes, values, size}, {}, **gradient, nullptr);
    if (done) done = computer->copy(**gradient, 0, memory);
    if (!done) return tl::unexpected(done.error());
    const seconds took{clock::now() - begin};
    if (took < best) tell(best = took);
  }
  return best;
}

result<void> serve_trial(const tried_model& what, int last_words_fd) {
  const auto leave = [&](seconds best) { // of one length, since they replace each other
    agent::leave_last_words(last_words_fd, fmt::format("{:.9e}", best.count()));
  };
  const auto timed = time_microbatch(what, leave);
  if (!timed) return tl::unexpected(timed.error());
  return {};
}

result<microbatch_trial> try_microbatch(const tried_model& what, const trial_options& options) {
  const auto last_words = agent::make_last_words();
  if (!last_words) return tl::unexpected(last_words.error());
  auto lifeline = agent::make_lifeline();
  if (!lifeline) return tl::unexpected(lifeline.error());
  const base::unique_fd nowhere{::open("/dev/null", O_WRONLY | O_CLOEXEC)};
  if (!nowhere) return base::fail_errno("cannot open '/dev/null'");
  agent::child_command child;
  child.program = options.program;
  child.arguments = {std::string{agent::role_argument}};
  child.inherit.push_back({lifeline->leaf_end.get(), std::string{agent::lifeline_option}});
  child.inherit.push_back({last_words->get(), std::string{agent::last_words_option}});
  child.environment = agent::role_environment(static_cast<int>(what.spec.cluster().threads_per_worker()));
  child.bootstrap = message_for(what).SerializeAsString();
  child.standard_output = child.standard_error = nowhere.get();
  child_end ended;
  {
    const auto spawner = agent::process_spawner::create();
    if (!spawner) return tl::unexpected(spawner.error());
    ended = run_child(**spawner, std::move(child), options);
  }
  if (ended && !*ended) return tl::unexpected(ended->error());
  const auto said = agent::read_last_words(last_words->get());
  if (const auto time = time_in(said)) return microbatch_trial{.time = time};
  if (!ended && options.is_interrupted()) return microbatch_trial{.why = "it was interrupted"};
  if (!ended)
    return microbatch_trial{
        .time = options.patience,
        .why = fmt::format("it took longer than {} s",
                           std::chrono::duration_cast<std::chrono::seconds>(options.patience).count())};
  const auto how = agent::describe(**ended);
  return microbatch_trial{.why = said.empty() ? how : fmt::format("{}: {}", how, said)};
}

} // namespace dlrun::runtime
