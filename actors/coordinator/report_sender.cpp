#include "actors/coordinator/report_sender.hpp"

#include "actors/common/ask.hpp"

#include <utility>

namespace dlrun::coordinator {
namespace {

/// Half of what a frame of the link has room for.
constexpr std::size_t part_bytes = std::size_t{32} << 10;
constexpr auto part_deadline = std::chrono::seconds(2);
/// An agent that is not there answers at once.
constexpr auto retry_pause = std::chrono::milliseconds(100);

} // namespace

void report_sender::send(const protocol::agent_actor& to, dlrun::incarnation coordinator, std::string text,
                         std::function<void(const std::string&)> done) {
  to_ = to;
  coordinator_ = coordinator;
  text_ = std::move(text);
  done_ = std::move(done);
  send_from(0);
}

void report_sender::send_from(std::uint64_t offset) {
  const protocol::report_part part{coordinator_, offset, text_.size(), text_.substr(offset, part_bytes)};
  common::ask(
      self_, to_, part_deadline, part,
      [this](const protocol::report_taken& taken) {
        if (!taken.failure.empty() || taken.end >= text_.size()) return done_(taken.failure);
        send_from(taken.end);
      },
      [this](const caf::error&) { common::post_later(self_, self_, retry_pause, [this] { send_from(0); }); });
}

} // namespace dlrun::coordinator
