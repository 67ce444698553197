#include "runtime/host_logs.hpp"

#include "actors/common/ask.hpp"
#include "runtime/answer_deadlines.hpp"

#include <nlohmann/json.hpp>
#include <sstream>

namespace dlrun::runtime {
namespace {

static_assert(host_answer_deadline > agent::watch_rules{}.hang_max, "one that hangs is away by then");
constexpr int logs_asked_max = 64;
constexpr std::string_view listing_word = "logs ";
constexpr std::string_view part_word = "log ";

std::string log_answer(std::string_view bytes) { return fmt::format("{}{}", log_sign_answer, bytes); }
std::string log_refusal(std::string_view why) { return fmt::format("{}{}", log_sign_refusal, why); }

std::string tell_failed(const error& why) {
  return why.code == error_code::role_lost ? log_refusal(why.message) : std::string(1, log_sign_over);
}

std::string tell_listing(const protocol::log_listing& listing) {
  if (!listing.failure.empty()) return log_refusal(listing.failure);
  auto logs = nlohmann::json::array();
  for (const auto& one : listing.logs)
    logs.push_back(nlohmann::json::array({protocol::to_string(one.role.kind), one.role.index, one.bytes}));
  return log_answer(nlohmann::json{{"logs", std::move(logs)}}.dump());
}

std::string tell_part(const protocol::log_part& part) {
  return part.failure.empty() ? log_answer(part.bytes) : log_refusal(part.failure);
}

} // namespace

bool host_logs::takes(std::string_view request) {
  return request.starts_with(listing_word) || request.starts_with(part_word);
}

void host_logs::answer(const std::string& request, const agent::control_reply& reply) const {
  if (!hosts_) return reply(std::string(1, log_sign_over));
  std::istringstream words{request};
  std::string verb, host, role, rest;
  protocol::log_part_wanted wanted{.role = {}, .offset = 0, .size = protocol::log_part_bytes_max};
  words >> verb >> host;
  if (verb == "logs" && words && !(words >> rest))
    return ask<protocol::log_listing>(host, protocol::log_listing_wanted{}, reply, tell_listing);
  std::uint32_t index = 0;
  words >> role >> index >> wanted.offset;
  const auto known = agent::role_of_log(fmt::format("{}-{}.log", role, index));
  if (!words || !known || words >> rest) return reply(log_refusal("the request is none"));
  wanted.role = *known;
  ask<protocol::log_part>(host, wanted, reply, tell_part);
}

/// On the agent's thread the host is looked up; an actor of its own waits for the answer. One that
/// does not come is judged by what the host is then.
template <class Answer, class Wanted>
void host_logs::ask(const std::string& host, const Wanted& wanted, const agent::control_reply& reply,
                    std::string (*tell)(const Answer&)) const {
  if (asked_->fetch_add(1) >= logs_asked_max) {
    asked_->fetch_sub(1);
    return reply(log_refusal("too many ask for logs at a time"));
  }
  const auto say = [reply, asked = asked_](const std::string& answer) {
    asked->fetch_sub(1);
    reply(answer);
  };
  const auto say_failed = [agent = agent_, hosts = hosts_, host, say](const std::string& why) {
    common::post(agent, [hosts, host, say, why] {
      const auto found = hosts->links().agent_of(host);
      say(found ? log_refusal(fmt::format("it does not answer: {}", why)) : tell_failed(found.error()));
    });
  };
  common::post(agent_, [&system = system_, hosts = hosts_, host, wanted, say, say_failed, tell] {
    const auto found = hosts->links().agent_of(host);
    if (!found) return say(tell_failed(found.error()));
    system.spawn([to = *found, wanted, say, say_failed, tell](caf::event_based_actor* self) {
      common::ask(
          self, to, host_answer_deadline, wanted, [say, tell](const Answer& answer) { say(tell(answer)); },
          [say_failed](const caf::error& why) { say_failed(to_string(why)); });
    });
  });
}

} // namespace dlrun::runtime
