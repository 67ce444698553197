#include "runtime/data_fetch.hpp"

#include "transport/tcp_client.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <mutex>
#include <set>

namespace dlrun::runtime {
namespace {

using fetch_clock = std::chrono::steady_clock;

/// Asked for at a time, so that the giver and the way are busy while blocks are hashed.
constexpr int runs_at_a_time = 8;
constexpr auto stop_look_period = std::chrono::milliseconds(100);
/// Between two rounds of all givers.
constexpr auto round_pause = std::chrono::milliseconds(200);
constexpr std::size_t array_bytes_max = std::size_t{1} << 46;

/// What became of a run of blocks.
struct run_answer {
  array_intake* array = nullptr;
  data::place_run blocks;
  result<void> came;
};

/// Answers, from the client's thread.
class answer_queue {
public:
  void put(run_answer answer) {
    const std::scoped_lock lock{mutex_};
    answers_.push_back(std::move(answer));
    changed_.notify_one();
  }
  /// @returns nothing when none came within `patience`.
  std::optional<run_answer> take(std::chrono::milliseconds patience) {
    std::unique_lock lock{mutex_};
    if (!changed_.wait_for(lock, patience, [this] { return !answers_.empty(); })) return std::nullopt;
    auto answer = std::move(answers_.front());
    answers_.pop_front();
    return answer;
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<run_answer> answers_; ///< guarded by mutex_
};

class data_fetch {
public:
  data_fetch(std::span<array_intake> arrays, const data_fetch_options& options)
      : arrays_{arrays}
      , options_{options} {}

  result<given_bytes> run() {
    auto client = transport::tcp_client::start(
        {.token = options_.token, .tls = options_.tls, .bytes_max = array_bytes_max});
    if (!client) return tl::unexpected(client.error());
    client_ = std::move(*client);
    auto done = run_rounds();
    client_.reset(); // nobody uses the memory of the arrays any more
    if (!done) return tl::unexpected(done.error());
    return given_;
  }

private:
  bool is_whole() const { return std::ranges::all_of(arrays_, &array_intake::is_whole); }

  result<void> run_rounds() {
    auto moved = fetch_clock::now();
    while (!is_whole()) {
      const auto before = missing_bytes();
      for (const auto& giver : givers()) {
        if (options_.is_stopped()) return fail(error_code::interrupted, "the fetch of the data was ended");
        if (is_whole()) break;
        options_.note(
            fmt::format("{} bytes of the data are missing: host {} is asked", missing_bytes(), giver.host));
        if (const auto done = take_from(giver); !done) leave(giver, done.error());
      }
      if (is_whole()) break;
      const auto now = fetch_clock::now();
      if (missing_bytes() != before) moved = now;
      if (now - moved >= options_.patience || wrong_.contains(options_.root.address)) return fail_all();
      static_cast<void>(answers_.take(std::chrono::duration_cast<std::chrono::milliseconds>(round_pause)));
    }
    return {};
  }

  std::uint64_t missing_bytes() const {
    std::uint64_t bytes = 0;
    for (const auto& array : arrays_) bytes += array.missing_bytes();
    return bytes;
  }

  void leave(const data_source& giver, const error& why) {
    options_.note(fmt::format("host {} gives no more: {}", giver.host, why.message));
    left_[giver.host] = why.message;
    if (why.code == error_code::bad_data) wrong_.insert(giver.address);
  }

  tl::unexpected<error> fail_all() const {
    std::vector<std::string> all;
    for (const auto& [host, why] : left_) all.push_back(fmt::format("host {}: {}", host, why));
    return fail(error_code::bad_data, fmt::format("{} bytes of the data came from no host: {}",
                                                  missing_bytes(), fmt::join(all, "; ")));
  }

  // ---- who gives

  /// Other hosts first, each host beginning with another one; the root, whom all have, is the last.
  std::vector<data_source> givers() {
    auto all = listed();
    if (!all.empty())
      std::rotate(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(options_.turn % all.size()),
                  all.end());
    all.push_back(options_.root);
    std::erase_if(all, [this](const auto& one) { return wrong_.contains(one.address); });
    return all;
  }

  /// As the root tells now; none when it does not.
  std::vector<data_source> listed() {
    struct list_answer {
      std::mutex mutex;
      std::condition_variable changed;
      std::optional<result<transport::segment>> came;
    };
    const auto answer = std::make_shared<list_answer>();
    const transport::segment_part part{.marks = {}, .values = {0, giver_list_bytes}};
    const auto asked = client_->fetch(options_.root.address, giver_list_id, giver_list_bytes, part,
                                      fetch_clock::now() + options_.giver_patience, [answer](auto one) {
                                        const std::scoped_lock lock{answer->mutex};
                                        answer->came = std::move(one);
                                        answer->changed.notify_one();
                                      });
    if (!asked) return {};
    std::unique_lock lock{answer->mutex};
    while (!answer->came && !options_.is_stopped()) answer->changed.wait_for(lock, stop_look_period);
    if (!answer->came || !*answer->came) return {};
    const auto bytes = (*answer->came)->bytes();
    return read_givers({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  // ---- blocks

  /// Until all is there, or the giver cannot go on. @returns why not.
  result<void> take_from(const data_source& giver) {
    result<void> going{};
    int asked = 0;
    for (;;) {
      while (going && asked < runs_at_a_time && !options_.is_stopped() && ask(giver, going)) ++asked;
      if (asked == 0) return going;
      auto answer = answers_.take(stop_look_period);
      if (!answer) {
        if (options_.is_stopped()) return fail(error_code::interrupted, "the fetch of the data was ended");
        continue;
      }
      --asked;
      if (const auto taken = take(giver, *answer); !taken && going) going = taken;
    }
  }

  result<void> take(const data_source& giver, const run_answer& answer) {
    if (!answer.came) {
      answer.array->put_back(answer.blocks);
      return answer.came;
    }
    const auto before = answer.array->missing_bytes();
    auto taken = answer.array->take(answer.blocks);
    if (const auto came = before - answer.array->missing_bytes(); came > 0) given_[giver.host] += came;
    return taken;
  }

  /// @returns whether something was asked for.
  bool ask(const data_source& giver, result<void>& going) {
    for (auto& array : arrays_) {
      const auto blocks = array.next();
      if (!blocks) continue;
      const auto bytes = array.bytes_of(*blocks);
      const transport::segment_part part{.marks = {}, .values = {bytes.first, bytes.end - bytes.first}};
      const auto asked = client_->fetch_into(
          {array.room(), array.owner()}, giver.address, offered_id(array.place()), part,
          fetch_clock::now() + options_.giver_patience,
          [this, to = &array, blocks = *blocks](const result<transport::segment>& came) {
            answers_.put({to, blocks, came ? result<void>{} : tl::unexpected(came.error())});
          });
      if (asked) return true;
      array.put_back(*blocks);
      going = asked;
      return false;
    }
    return false;
  }

  std::span<array_intake> arrays_;
  const data_fetch_options& options_;
  given_bytes given_;
  std::map<std::string, std::string> left_; ///< why each giver could not go on, by host
  std::set<std::string> wrong_;             ///< addresses of those that gave wrong bytes
  answer_queue answers_;
  std::unique_ptr<transport::tcp_client> client_; ///< last: its thread uses the members above
};

} // namespace

result<given_bytes> fetch_data(std::span<array_intake> arrays, const data_fetch_options& options) {
  return data_fetch{arrays, options}.run();
}

} // namespace dlrun::runtime
