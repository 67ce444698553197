#include "runtime/run_control.hpp"

#include "actors/common/ask.hpp"
#include "job/exit_code.hpp"
#include "runtime/descriptor_limit.hpp"
#include "runtime/process_limit.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dlrun::runtime {
namespace {

constexpr auto scale_deadline = std::chrono::seconds(5);
constexpr std::string_view scale_word = "scale ";
constexpr std::string_view token_word = "token ";
constexpr std::string_view drain_word = "drain ";
constexpr std::string_view undrain_word = "undrain ";

/// What was asked for, and is named in it, may be any bytes.
std::string to_text(const nlohmann::json& answer) {
  return answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string refusal(const std::string& why, job::exit_code code) {
  return to_text({{"error", why}, {"exit_code", static_cast<int>(code)}});
}

/// Nobody has answered in time, or nobody is there to answer any more.
std::string refuse_late(bool is_late) {
  if (!is_late) return refusal("the job is ending", job::exit_code::bad_input);
  return refusal(
      "the number is not in the coordinator's journal yet; the root goes on telling it, and 'dlrun "
      "status' says when it counts",
      job::exit_code::job_failed);
}

} // namespace

void run_control::answer(const std::string& request, const agent::control_reply& reply) const {
  if (host_logs::takes(request)) return logs_.answer(request, reply);
  if (request.starts_with(drain_word) || request.starts_with(undrain_word)) return drain(request, reply);
  if (request.starts_with(scale_word)) return scale(request.substr(scale_word.size()), reply);
  reply(answer_at_once(request));
}

std::string run_control::answer_at_once(const std::string& request) const {
  if (request == "status") return status();
  if (request.starts_with(token_word)) return token(request.substr(token_word.size()));
  if (request != "stop") return refusal("unknown request", job::exit_code::bad_input);
  caf::anon_send(parts_.agent,
                 protocol::stop_job{protocol::job_outcome::interrupted, "stopped by 'dlrun stop'"});
  return "stopping";
}

std::string run_control::status() const {
  auto now = parts_.board->snapshot();
  now.held_up_by = parts_.held_up_by();
  return agent::to_json(now);
}

/// An actor of its own waits for the journal, so that others are answered meanwhile.
void run_control::scale(const std::string& workers, const agent::control_reply& reply) const {
  protocol::scale_request wanted;
  const auto* const end = workers.data() + workers.size();
  if (const auto read = std::from_chars(workers.data(), end, wanted.workers);
      read.ec != std::errc{} || read.ptr != end)
    return reply(refusal(fmt::format("{} is no number of workers that there can be", workers),
                         job::exit_code::bad_input));
  auto scaled = parts_.spec;
  scaled.mutable_cluster()->set_workers(wanted.workers);
  if (const auto room = check_descriptor_limit(scaled); !room)
    return reply(refusal(room.error().message, job::exit_code_for(room.error().code)));
  const auto now = parts_.board->snapshot();
  const auto hosts = std::max<std::size_t>(now.hosts.size(), 1);
  if (const auto enough = check_process_limit_for_more(scaled, now.workers.wanted, hosts); !enough)
    return reply(refusal(enough.error().message, job::exit_code_for(enough.error().code)));
  parts_.system.spawn([agent = parts_.agent, wanted, reply](caf::event_based_actor* self) {
    common::ask(
        self, agent, scale_deadline, wanted,
        [wanted, reply](const protocol::scale_reply& said) {
          reply(said.accepted ? to_text({{"workers", wanted.workers}})
                              : refusal(said.reason, job::exit_code::bad_input));
        },
        [reply](const caf::error& why) { reply(refuse_late(why == caf::sec::request_timeout)); });
  });
}

std::string run_control::token(const std::string& lifetime) const {
  std::int64_t seconds = 0;
  const auto* const end = lifetime.data() + lifetime.size();
  if (std::from_chars(lifetime.data(), end, seconds).ptr != end || seconds < 1)
    return refusal("the lifetime of the token is no number of seconds", job::exit_code::bad_input);
  auto made = parts_.make_token(std::chrono::seconds{seconds});
  return made ? std::move(*made) : refusal(made.error().message, job::exit_code_for(made.error().code));
}

/// On the agent's thread.
void run_control::drain(const std::string& request, const agent::control_reply& reply) const {
  if (!parts_.drains)
    return reply(refusal("this job runs on one host, which has nowhere to move anything to; 'dlrun resume' "
                         "with --hosts uses others",
                         job::exit_code::bad_input));
  common::post(parts_.agent, [desk = parts_.drains, request, reply] {
    const bool is_undo = request.starts_with(undrain_word);
    const auto host = request.substr(is_undo ? undrain_word.size() : drain_word.size());
    const auto done = is_undo ? desk->undo(host) : desk->begin(host);
    reply(done ? to_text({{"host", host}, {"text", *done}})
               : refusal(done.error().message, job::exit_code_for(done.error().code)));
  });
}

} // namespace dlrun::runtime
