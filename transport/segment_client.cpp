#include "transport/segment_client.hpp"

#include "base/call_queue.hpp"
#include "base/os_error.hpp"
#include "base/service_loop.hpp"
#include "transport/exchange_wire.hpp"

namespace dlrun::transport {

namespace {

using clock = std::chrono::steady_clock;

/// Pause before a connect is repeated to a server whose backlog is full.
constexpr std::chrono::milliseconds connect_pause{2};

struct wanted {
  std::string address;
  segment_id id;
  std::size_t bytes = 0;
  clock::time_point deadline;
  /// One of the two: of a segment, or of a doorbell.
  segment_client::callback done;
  segment_client::connected_callback connected;

  void fail_with(const error& why) const {
    if (connected)
      connected(tl::unexpected(why));
    else
      done(tl::unexpected(why));
  }
};

struct in_flight {
  wanted what;
  /// Empty until connected.
  base::unique_fd socket;
  clock::time_point connect_at{};
};

/// Connects and sends the request. @returns an empty descriptor when the server's backlog is full.
result<base::unique_fd> send_request(const wanted& what, const run_token& token) {
  const auto address = wire::make_abstract_address(what.address);
  if (!address) return tl::unexpected(address.error());
  auto socket = wire::make_socket();
  if (!socket) return socket;
  if (::connect(socket->get(), address->get(), address->length) != 0) {
    if (errno == EAGAIN || errno == EINTR) return base::unique_fd();
    return base::fail_errno(
        fmt::format("cannot reach the segment server {} (has its process ended?)", what.address));
  }
  // Before the token leaves: a stranger who took the name must not learn it.
  if (auto ok = wire::check_peer_user(socket->get()); !ok) return tl::unexpected(ok.error());
  wire::request asked;
  asked.token = token;
  asked.segment = what.id.value;
  if (const int failed = wire::send_packet(socket->get(), &asked, sizeof asked); failed != 0)
    return base::fail_errno(fmt::format("cannot ask the segment server {}", what.address), failed);
  return socket;
}

result<void> check_status(const wanted& what, const wire::reply& said) {
  switch (said.status) {
  case wire::reply_status::here: return {};
  case wire::reply_status::wrong_token:
    return fail(error_code::fenced,
                fmt::format("the segment server {} belongs to another run", what.address));
  case wire::reply_status::unknown_segment:
    return fail(error_code::role_lost, fmt::format("the segment server {} does not offer segment {} any more",
                                                   what.address, what.id));
  }
  return fail(error_code::protocol,
              fmt::format("the segment server {} sent an unknown status", what.address));
}

/// What came with a reply that fits the request.
result<wire::packet> receive_reply(const wanted& what, int socket) {
  wire::reply said;
  auto got = wire::receive_packet(socket, &said, sizeof said);
  if (!got) return tl::unexpected(got.error());
  if (got->size != sizeof said || said.magic != wire::reply_magic || said.version != wire::format_version)
    return fail(error_code::protocol,
                fmt::format("the segment server {} answered with {} bytes that are no reply", what.address,
                            got->size));
  if (auto ok = check_status(what, said); !ok) return tl::unexpected(ok.error());
  if (said.segment != what.id.value || said.bytes != what.bytes)
    return fail(
        error_code::protocol,
        fmt::format("the segment server {} answered for segment {} of {} bytes; {} of {} were asked for",
                    what.address, said.segment, said.bytes, what.id, what.bytes));
  return got;
}

result<segment> receive_segment(const wanted& what, int socket, std::size_t bytes_max) {
  auto got = receive_reply(what, socket);
  if (!got) return tl::unexpected(got.error());
  if (got->too_many_descriptors)
    return fail(error_code::protocol,
                fmt::format("the segment server {} sent several descriptors", what.address));
  if (got->descriptors_lost)
    return fail(error_code::limit_exceeded,
                "a segment's descriptor could not be received: raise the limit of open "
                "files (ulimit -n)");
  if (!got->descriptor)
    return fail(error_code::protocol, fmt::format("the segment server {} sent no descriptor", what.address));
  return segment::adopt(std::move(got->descriptor), what.bytes, bytes_max);
}

} // namespace

class segment_client::loop final : base::polled_service {
public:
  explicit loop(segment_client_options options)
      : options_(options)
      , queue_("the segment client", "segments are being fetched already", options.queue_max) {}

  result<void> start() { return thread_.start("dlrun-fetch", "the segment client", *this); }

  result<void> fetch(wanted what) {
    if (auto ok = queue_.add(std::move(what)); !ok) return ok;
    thread_.wake();
    return {};
  }

private:
  clock::time_point watch(std::vector<pollfd>& fds) override {
    for (auto& what : queue_.take(options_.in_flight_max - flights_.size()))
      flights_.push_back({std::move(what), {}, {}});
    connect_waiting(clock::now());
    for (const auto& f : flights_) fds.push_back({f.socket.get(), POLLIN, 0});
    return next_deadline();
  }

  void end() override {
    queue_.close();
    const error stopped{error_code::interrupted, "the segment client was stopped"};
    for (const auto& f : flights_) give_up(f.what, stopped);
    for (const auto& what : queue_.take()) give_up(what, stopped);
  }

  void connect_waiting(clock::time_point now) {
    std::vector<in_flight> kept;
    for (auto& f : flights_) {
      if (!f.socket && f.connect_at <= now) {
        auto socket = send_request(f.what, options_.token);
        if (!socket) {
          give_up(f.what, socket.error());
          continue;
        }
        f.socket = std::move(*socket);
        f.connect_at = now + connect_pause;
      }
      kept.push_back(std::move(f));
    }
    flights_ = std::move(kept);
  }

  clock::time_point next_deadline() const {
    auto next = clock::time_point::max();
    for (const auto& f : flights_) {
      next = std::min(next, f.what.deadline);
      if (!f.socket) next = std::min(next, f.connect_at);
    }
    // A fetch that failed at once has made room for one that still waits.
    return queue_.has_waiting() && flights_.size() < options_.in_flight_max ? clock::time_point::min() : next;
  }

  /// Ends what was answered or is late. `fds` lists the flights.
  void serve(std::span<const pollfd> fds) override {
    const auto now = clock::now();
    std::vector<in_flight> kept;
    for (std::size_t i = 0; i < flights_.size(); ++i) {
      auto& f = flights_[i];
      if (f.socket && fds[i].revents != 0) {
        answered(f.what, std::move(f.socket));
      } else if (now >= f.what.deadline) {
        f.socket.reset();
        give_up(f.what, {error_code::timed_out,
                         fmt::format("the segment server {} did not hand over segment {} in time",
                                     f.what.address, f.what.id)});
      } else {
        kept.push_back(std::move(f));
      }
    }
    flights_ = std::move(kept);
  }

  void answered(const wanted& what, base::unique_fd socket) {
    if (!what.connected) {
      auto got = receive_segment(what, socket.get(), options_.bytes_max);
      socket.reset();
      queue_.count_answered();
      return what.done(std::move(got));
    }
    const auto got = receive_reply(what, socket.get());
    if (!got) return give_up(what, got.error());
    queue_.count_answered();
    what.connected(std::make_unique<doorbell>(std::move(socket)));
  }

  void give_up(const wanted& what, const error& why) {
    queue_.count_answered();
    what.fail_with(why);
  }

  const segment_client_options options_;
  base::call_queue<wanted> queue_;
  std::vector<in_flight> flights_; // the thread's own
  base::service_loop thread_;
};

segment_client::segment_client(std::unique_ptr<loop> loop)
    : loop_(std::move(loop)) {}
segment_client::~segment_client() = default;

result<std::unique_ptr<segment_client>> segment_client::start(segment_client_options options) {
  auto made = std::make_unique<loop>(options);
  if (auto ok = made->start(); !ok) return tl::unexpected(ok.error());
  return std::unique_ptr<segment_client>(new segment_client(std::move(made)));
}

result<void> segment_client::fetch(std::string address, segment_id id, std::size_t expected_bytes,
                                   const segment_part&, std::chrono::steady_clock::time_point deadline,
                                   callback done) {
  return loop_->fetch({std::move(address), id, expected_bytes, deadline, std::move(done), nullptr});
}

result<void> segment_client::connect_doorbell(std::string address,
                                              std::chrono::steady_clock::time_point deadline,
                                              connected_callback done) {
  return loop_->fetch({std::move(address), {wire::doorbell_request}, 0, deadline, nullptr, std::move(done)});
}

} // namespace dlrun::transport
