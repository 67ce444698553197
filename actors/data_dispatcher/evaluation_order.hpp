/// Who evaluates what is to be evaluated (rule R17, the dispatcher's half).
#pragma once

#include "actors/data_dispatcher/data_dispatcher_actions.hpp"
#include "actors/protocol/time.hpp"

#include <map>
#include <optional>
#include <utility>

namespace dlrun::data_dispatcher {

/// Pure: asks one worker that is heard, again and again until it has answered, and another one when
/// it is not heard any more.
class evaluation_order {
public:
  explicit evaluation_order(protocol::duration repeat_after)
      : repeat_after_(repeat_after) {}

  /// Call it while something is due. `due`: what is to be evaluated now. `heard`: the start of each
  /// worker that can be asked.
  void follow(const protocol::evaluate& due, const std::map<worker_id, dlrun::incarnation>& heard,
              protocol::time_point now, data_dispatcher_actions& out) {
    if (const auto at = evaluator_ ? heard.find(evaluator_->first) : heard.end();
        at == heard.end() || at->second != evaluator_->second)
      evaluator_.reset();
    if (evaluator_ && ordered_ == due && now - sent_ < repeat_after_) return;
    if (!evaluator_) {
      if (heard.empty()) return;
      evaluator_ = *heard.begin();
    }
    ordered_ = due;
    sent_ = now;
    out.emplace_back(to_worker{evaluator_->first, due});
  }

  /// Who was asked last, while it is heard.
  const std::optional<std::pair<worker_id, dlrun::incarnation>>& evaluator() const { return evaluator_; }

private:
  protocol::duration repeat_after_;
  std::optional<std::pair<worker_id, dlrun::incarnation>> evaluator_;
  std::optional<protocol::evaluate> ordered_;
  protocol::time_point sent_{};
};

} // namespace dlrun::data_dispatcher
