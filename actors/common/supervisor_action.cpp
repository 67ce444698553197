#include "actors/common/supervisor_action.hpp"

#include <fmt/core.h>

namespace dlrun::supervision {

namespace {

struct naming {
  std::string operator()(const start_child& a) const { return fmt::format("start {}#{}", a.id, a.number); }
  std::string operator()(const stop_child& a) const {
    return fmt::format("{} {}#{}", a.how == stop_child::kind::kill ? "kill" : "terminate", a.id, a.number);
  }
  std::string operator()(const escalate&) const { return "escalate"; }
  std::string operator()(const supervisor_stopped&) const { return "stopped"; }
};

} // namespace

std::string to_string(const action& what) { return std::visit(naming{}, what); }

} // namespace dlrun::supervision
