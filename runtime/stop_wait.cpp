#include "runtime/stop_wait.hpp"

#include "actors/agent/process/bootstrap.hpp"
#include "actors/common/lasting_end.hpp"
#include "base/wake_event.hpp"

#include <caf/all.hpp>
#include <csignal>
#include <future>
#include <memory>
#include <poll.h>
#include <string>
#include <sys/signalfd.h>
#include <unistd.h>

namespace dlrun::runtime {
namespace {

/// The reason as the role gave it, without CAF's code around it.
std::string text_of(const caf::error& why) {
  const auto& said = why.context();
  return said.match_elements<std::string>() ? said.get_as<std::string>(0) : to_string(why);
}

} // namespace

base::unique_fd take_stop_signals(bool is_own) {
  sigset_t handled;
  sigemptyset(&handled);
  sigaddset(&handled, SIGTERM);
  sigaddset(&handled, agent::end_signal);
  if (is_own) {
    sigaddset(&handled, SIGINT);
    sigaddset(&handled, SIGHUP);
  }
  sigset_t blocked = handled;
  sigaddset(&blocked, SIGINT);
  sigaddset(&blocked, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return base::unique_fd{::signalfd(-1, &handled, SFD_CLOEXEC)};
}

result<void> run_to_end(const caf::actor& role, const base::unique_fd& signals,
                        const std::function<void()>& leave) {
  const auto ended = base::wake_event::create();
  if (!ended) return tl::unexpected(ended.error());
  auto reason = std::make_shared<std::promise<caf::error>>();
  role->attach_functor([reason, event = ended->fd()](const caf::error& why) {
    reason->set_value(why);
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(event, &one, sizeof one);
  });
  for (;;) {
    pollfd watched[] = {{ended->fd(), POLLIN, 0}, {signals.get(), POLLIN, 0}};
    if (::poll(watched, 2, -1) < 0 && errno != EINTR)
      return fail(error_code::system, "cannot wait for the role");
    if (watched[0].revents != 0) {
      const auto why = reason->get_future().get();
      if (!why || why == caf::exit_reason::user_shutdown) return {};
      return fail(why == common::lasting_end ? error_code::bad_usage : error_code::role_lost, text_of(why));
    }
    if (watched[1].revents == 0) continue;
    signalfd_siginfo info{};
    [[maybe_unused]] const auto got = ::read(signals.get(), &info, sizeof info);
    if (info.ssi_signo == agent::end_signal)
      caf::anon_send_exit(role, caf::exit_reason::user_shutdown);
    else
      leave();
  }
}

} // namespace dlrun::runtime
