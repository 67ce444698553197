#include "actors/common/supervisor_action.hpp"

#include <fmt/core.h>

namespace dlrun::supervision {

namespace {

const char* word_of(stop_child::kind how) {
  switch (how) {
  case stop_child::kind::leave: return "dismiss";
  case stop_child::kind::terminate: return "terminate";
  case stop_child::kind::kill: break;
  }
  return "kill";
}

struct naming {
  std::string operator()(const start_child& a) const { return fmt::format("start {}#{}", a.id, a.number); }
  std::string operator()(const stop_child& a) const {
    return fmt::format("{} {}#{}", word_of(a.how), a.id, a.number);
  }
  std::string operator()(const escalate&) const { return "escalate"; }
  std::string operator()(const supervisor_stopped&) const { return "stopped"; }
};

} // namespace

std::string to_string(const action& what) { return std::visit(naming{}, what); }

} // namespace dlrun::supervision
