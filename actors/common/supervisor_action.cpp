#include "actors/common/supervisor_action.hpp"

#include <fmt/core.h>

namespace dlrun::supervision {

namespace {

struct naming {
  std::string operator()(const start_child& a) const { return fmt::format("start {}#{}", a.id, a.number); }
  std::string operator()(const stop_child& a) const {
    return fmt::format("{} {}#{}", a.how == stop_child::kind::kill ? "kill" : "terminate", a.id, a.number);
  }
  std::string operator()(const supervisor_started&) const { return "started"; }
  std::string operator()(const escalate&) const { return "escalate"; }
  std::string operator()(const supervisor_stopped&) const { return "stopped"; }
};

struct reasoning {
  std::string operator()(const supervisor_started&) const { return {}; }
  template <class Action>
  std::string operator()(const Action& a) const {
    return a.reason;
  }
};

} // namespace

std::string to_string(const action& what) { return std::visit(naming{}, what); }

std::string reason_of(const action& what) { return std::visit(reasoning{}, what); }

} // namespace dlrun::supervision
