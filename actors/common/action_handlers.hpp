/// One function for each action of a core, by which its actor carries it out.
#pragma once

namespace dlrun::common {

/// For std::visit: calls the one of `Handlers` that takes the action.
template <class... Handlers>
struct action_handlers : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
action_handlers(Handlers...) -> action_handlers<Handlers...>;

} // namespace dlrun::common
