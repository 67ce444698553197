#include "actors/agent/control_socket.hpp"

#include "job/run_layout.hpp"
#include "tests/data/files.hpp"
#include "transport/exchange_wire.hpp"

#include <fstream>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>

namespace dlrun::agent {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

void say_back(const std::string& request, const control_reply& reply) { reply("heard " + request); }

class control_socket_test : public testing::Test {
protected:
  std::unique_ptr<control_server> serve(control_server::handler handler = say_back) const {
    auto made = control_server::start(run_dir, std::move(handler));
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }
  nlohmann::json told() const { return nlohmann::json::parse(std::ifstream{run_dir / run_layout::agent}); }
  void tell(const nlohmann::json& content) const { std::ofstream{run_dir / run_layout::agent} << content; }
  error refusal() const {
    const auto answer = exchange_with_root(run_dir, "status");
    EXPECT_FALSE(answer);
    return answer ? error{} : answer.error();
  }

  sockaddr_un address_of_socket() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (run_dir / run_layout::control_socket).string().copy(address.sun_path, sizeof address.sun_path - 1);
    return address;
  }
  base::unique_fd connected() const {
    auto made = transport::wire::make_socket();
    EXPECT_TRUE(made);
    const auto address = address_of_socket();
    EXPECT_EQ(::connect(made->get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return std::move(*made);
  }

  test::temporary_folder folder;
  fs::path run_dir = folder.path();
};

TEST_F(control_socket_test, is_in_the_folder_of_the_run_for_its_user_alone_and_goes_with_the_root) {
  auto server = serve();
  EXPECT_EQ(exchange_with_root(run_dir, "status").value(), "heard status");
  struct stat about {};
  ASSERT_EQ(::stat((run_dir / run_layout::control_socket).c_str(), &about), 0);
  EXPECT_TRUE(S_ISSOCK(about.st_mode));
  EXPECT_EQ(about.st_mode & 0777U, 0600U);
  EXPECT_EQ(told()["socket"], run_layout::control_socket);
  server = nullptr;
  EXPECT_TRUE(fs::is_empty(run_dir));
  EXPECT_EQ(refusal().code, error_code::bad_usage);
}

TEST_F(control_socket_test, is_found_however_long_the_path_of_the_folder_is) {
  run_dir /= std::string(200, 'x');
  fs::create_directories(run_dir);
  const auto server = serve();
  EXPECT_EQ(exchange_with_root(run_dir, "status").value(), "heard status");
}

TEST_F(control_socket_test, takes_the_place_of_what_a_root_left_that_was_killed) {
  const auto left = run_dir / "left";
  {
    const auto killed = serve();
    fs::create_hard_link(run_dir / run_layout::control_socket, left);
  }
  fs::rename(left, run_dir / run_layout::control_socket);
  tell({{"pid", 1}, {"socket", run_layout::control_socket}});
  EXPECT_EQ(refusal().code, error_code::role_lost);
  const auto server = serve();
  EXPECT_EQ(exchange_with_root(run_dir, "status").value(), "heard status");
}

TEST_F(control_socket_test, is_an_abstract_one_where_the_folder_takes_none) {
  fs::create_directories(run_dir / run_layout::control_socket / "not-empty");
  const auto server = serve();
  EXPECT_THAT(told()["socket"].get<std::string>(), testing::StartsWith("@dlrun-control-"));
  EXPECT_EQ(exchange_with_root(run_dir, "status").value(), "heard status");
}

TEST_F(control_socket_test, an_answer_may_come_later_and_holds_up_nobody) {
  std::promise<control_reply> asked;
  const auto server = serve([&](const std::string& request, const control_reply& reply) {
    if (request == "slow")
      asked.set_value(reply);
    else
      reply("at once");
  });
  auto slow = std::async(std::launch::async, [&] {
    return exchange_with_root(run_dir, "slow", std::chrono::seconds(60)).value();
  });
  const auto reply = asked.get_future().get();
  EXPECT_EQ(exchange_with_root(run_dir, "status").value(), "at once");
  reply("in the end");
  EXPECT_EQ(slow.get(), "in the end");
}

TEST_F(control_socket_test, an_answer_of_any_size_comes_whole) {
  for (const std::size_t bytes :
       {std::size_t{160} * 1024, std::size_t{160} * 1024 + 1, std::size_t{3'000'000}}) {
    const std::string whole(bytes, 'x');
    const auto server = serve([&](const std::string&, const control_reply& reply) { reply(whole); });
    EXPECT_EQ(exchange_with_root(run_dir, "status").value(), whole) << bytes;
  }
}

TEST_F(control_socket_test, a_root_that_ends_in_order_while_it_is_asked_has_not_died) {
  std::promise<control_reply> asked;
  auto server = serve([&](const std::string&, const control_reply& reply) { asked.set_value(reply); });
  auto asking = std::async(std::launch::async, [&] { return refusal(); });
  {
    const auto unanswered = asked.get_future().get();
    server = nullptr;
  }
  const auto why = asking.get();
  EXPECT_EQ(why.code, error_code::bad_usage);
  EXPECT_THAT(why.message, HasSubstr("is not the folder of a running job"));
}

TEST_F(control_socket_test, a_root_that_has_nobody_left_to_answer_is_ending_and_has_not_died) {
  const auto server = serve([](const std::string&, const control_reply&) {});
  const auto why = refusal();
  EXPECT_EQ(why.code, error_code::bad_usage);
  EXPECT_THAT(why.message, HasSubstr("is ending"));
}

/// No descriptor can be made meanwhile. poll() takes as many as the limit: who asks needs one.
class no_descriptors {
public:
  no_descriptors() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit one{1, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &one), 0);
  }
  ~no_descriptors() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }
  no_descriptors(const no_descriptors&) = delete;
  no_descriptors& operator=(const no_descriptors&) = delete;

private:
  rlimit before_{};
};

TEST_F(control_socket_test, a_root_that_cannot_send_its_answer_is_not_ending) {
  const auto server = serve([](const std::string&, const control_reply& reply) {
    const no_descriptors at_the_limit;
    reply(std::string(3'000'000, 'x'));
  });
  const auto why = refusal();
  EXPECT_EQ(why.code, error_code::system);
  EXPECT_THAT(why.message, AllOf(HasSubstr("cannot answer"), HasSubstr("Too many open files")));
}

TEST_F(control_socket_test, an_answer_that_looks_like_a_refusal_is_one_all_the_same) {
  const std::string answer{"\0r is a text\n", 13};
  const auto server = serve([&](const std::string&, const control_reply& reply) { reply(answer); });
  EXPECT_EQ(exchange_with_root(run_dir, "status").value(), answer);
}

TEST_F(control_socket_test, who_asks_too_much_is_refused_and_the_root_is_not_ending) {
  const auto server = serve();
  const auto answer = exchange_with_root(run_dir, std::string(5000, 'x'));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, error_code::system);
  EXPECT_THAT(answer.error().message, HasSubstr("longer than 4096 bytes"));
}

/// As one does that was stopped between the two.
TEST_F(control_socket_test, who_connects_and_asks_nothing_for_a_second_is_told_so) {
  const auto server = serve();
  const auto asker = connected();
  pollfd watched{asker.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&watched, 1, 60'000), 1);
  std::string told(100, '\0');
  const auto packet = transport::wire::receive_packet(asker.get(), told.data(), told.size());
  ASSERT_TRUE(packet);
  EXPECT_THAT(told, HasSubstr("nothing was asked within 1000 ms"));
}

/// One of an earlier dlrun, or that could not even say why.
TEST_F(control_socket_test, a_connection_that_ends_without_a_word_tells_nothing_of_the_run) {
  const auto server = serve();
  fs::remove(run_dir / run_layout::control_socket);
  const auto address = address_of_socket();
  const auto listening = transport::wire::make_socket();
  ASSERT_TRUE(listening);
  ASSERT_EQ(::bind(listening->get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listening->get(), 2), 0);
  auto asking = std::async(std::launch::async, [&] { return refusal(); });
  pollfd comes{listening->get(), POLLIN, 0};
  ASSERT_EQ(::poll(&comes, 1, -1), 1);
  base::unique_fd{::accept(listening->get(), nullptr, nullptr)}.reset();
  const auto why = asking.get();
  EXPECT_EQ(why.code, error_code::system);
  EXPECT_THAT(why.message, HasSubstr("ended the connection without an answer"));
}

TEST_F(control_socket_test, another_run_in_the_place_of_the_folder_is_left_alone) {
  auto moved = serve();
  fs::rename(run_dir, folder.path().string() + ".moved");
  fs::create_directories(run_dir);
  const auto server = serve();
  moved = nullptr;
  EXPECT_EQ(exchange_with_root(run_dir, "status").value(), "heard status");
  EXPECT_TRUE(fs::is_empty(folder.path().string() + ".moved"));
  fs::remove_all(folder.path().string() + ".moved");
}

TEST_F(control_socket_test, a_root_that_was_killed_is_told) {
  tell({{"pid", 4711}, {"socket", run_layout::control_socket}});
  const auto why = refusal();
  EXPECT_EQ(why.code, error_code::role_lost);
  EXPECT_THAT(why.message, AllOf(HasSubstr("4711"), HasSubstr("died without ending it")));
}

TEST_F(control_socket_test, a_root_on_another_host_is_told_with_that_host) {
  tell({{"pid", 4711}, {"host", "far-away"}, {"boot", "another"}, {"socket", run_layout::control_socket}});
  const auto why = refusal();
  EXPECT_EQ(why.code, error_code::bad_usage);
  EXPECT_THAT(why.message, AllOf(HasSubstr("belongs to host far-away"), HasSubstr("4711")));
}

TEST_F(control_socket_test, a_host_that_was_switched_off_and_on_is_not_another_one) {
  { const auto server = serve(); }
  auto before = [&] {
    const auto server = serve();
    return told();
  }();
  before["boot"] = "before";
  tell(before);
  EXPECT_EQ(refusal().code, error_code::role_lost);
}

/// As root in the place of somebody else, in a process of its own. @returns through its exit code
/// whether it was told bad_usage.
[[noreturn]] void ask_without_rights(const fs::path& run_dir) {
  constexpr uid_t nobody = 65534;
  if (::geteuid() == 0 && ::setresuid(nobody, nobody, nobody) != 0) std::_Exit(2);
  const auto answer = exchange_with_root(run_dir, "status");
  fmt::print(stderr, "{}", answer ? *answer : answer.error().message);
  std::_Exit(!answer && answer.error().code == error_code::bad_usage ? 1 : 0);
}

TEST_F(control_socket_test, who_has_no_right_is_told_whose_the_run_is_or_that_the_folder_is_closed) {
  const auto server = serve();
  fs::permissions(run_dir, fs::perms{0755});
  fs::permissions(run_dir / run_layout::control_socket, fs::perms::none);
  EXPECT_EXIT(ask_without_rights(run_dir), testing::ExitedWithCode(1),
              "belongs to the user .*, who alone may ask its root process");
  fs::permissions(run_dir, fs::perms::none);
  EXPECT_EXIT(ask_without_rights(run_dir), testing::ExitedWithCode(1),
              "cannot look into the run folder '.*': Permission denied");
  fs::permissions(run_dir, fs::perms{0700});
}

TEST_F(control_socket_test, what_is_damaged_is_named) {
  for (const auto* content : {"", "{", "[]", R"({"pid":1})", R"({"pid":"x","socket":"y"})"}) {
    std::ofstream{run_dir / run_layout::agent} << content;
    EXPECT_THAT(refusal().message, HasSubstr("damaged")) << content;
  }
}

} // namespace
} // namespace dlrun::agent
