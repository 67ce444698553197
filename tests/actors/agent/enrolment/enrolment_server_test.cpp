// The door at which hosts join, and all kinds of people who come to it.
#include "tests/actors/agent/enrolment/door.hpp"

namespace dlrun::agent {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST_F(enrolment_server_test, gives_who_has_a_token_what_it_is_to_run) {
  auto enrolled = enrol(wish("beta"));
  ASSERT_TRUE(enrolled) << enrolled.error().message;
  EXPECT_EQ(read_all(enrolled->bundle.get()), "dlrun-host-bundle 1.2.3 8\nbetabeta");
  EXPECT_EQ(asked.wait_for("beta"), "beta 127.0.0.1 0"); // the secret goes no further
}

TEST_F(enrolment_server_test, gives_bundles_that_are_longer_than_any_buffer) {
  bundle = std::string(3'000'000, 'b');
  auto enrolled = enrol(wish("beta"));
  ASSERT_TRUE(enrolled) << enrolled.error().message;
  EXPECT_EQ(read_all(enrolled->bundle.get()).size(),
            bundle.size() + std::string_view{"dlrun-host-bundle 1.2.3 3000000\n"}.size());
}

TEST_F(enrolment_server_test, hears_why_a_host_cannot_begin_and_that_one_has_gone) {
  auto enrolled = enrol(wish("beta"));
  ASSERT_TRUE(enrolled);
  enrolled->line.tell_end("the data is other data");
  EXPECT_EQ(ended.wait_for("beta"), "beta: the data is other data");
  ASSERT_TRUE(enrol(wish("gamma"))); // and hangs up
  EXPECT_THAT(ended.wait_for("gamma"), HasSubstr("gamma: "));
}

TEST_F(enrolment_server_test, says_nothing_of_a_host_that_it_has_let_go) {
  auto enrolled = enrol(wish("beta"));
  ASSERT_TRUE(enrolled);
  server->let_go("beta");
  auto other = enrol(wish("gamma"));
  ASSERT_TRUE(other);
  enrolled->line.tell_end("it is over");
  other->line.tell_end("it is over");
  ended.wait_for("gamma");
  EXPECT_EQ(ended.lines().size(), 1U);
}

TEST_F(enrolment_server_test, refuses_a_token_the_second_time_and_tells_both_ends) {
  const auto same = wish("beta");
  ASSERT_TRUE(enrol(same));
  const auto again = enrol(same);
  EXPECT_THAT(problem(again), AllOf(HasSubstr("refuses"), HasSubstr("was used already")));
  EXPECT_EQ(again.error().code, error_code::bad_usage);
  EXPECT_THAT(refused.wait_for("127.0.0.1"), HasSubstr("was used already"));
}

TEST_F(enrolment_server_test, refuses_a_secret_that_it_did_not_make_whatever_its_length) {
  for (const std::size_t length : {0, 1, 31, 32, 33, 4000}) {
    auto wrong = wish("beta");
    wrong.token.secret = security::secret_text{std::string(length, 's')};
    EXPECT_THAT(problem(enrol(wrong)), HasSubstr("is none of this job")) << length;
  }
  EXPECT_TRUE(asked.lines().empty());
}

TEST_F(enrolment_server_test, a_host_talks_to_the_root_of_its_token_alone_and_keeps_the_secret_from_others) {
  const auto other = security::certificate_authority::make("j1").value(); // of the same name
  auto wrong = wish("beta");
  wrong.token.pin = security::pin_of(other.certificate_pem()).value();
  const auto how = enrol(wrong);
  EXPECT_THAT(problem(how), HasSubstr("not the root that the token is of"));
  EXPECT_EQ(how.error().code, error_code::bad_usage);
  wrong.token.pin = wish("beta").token.pin;
  EXPECT_TRUE(enrol(wrong)); // nobody has used it
}

TEST_F(enrolment_server_test, a_host_whose_clock_is_behind_hears_so_and_not_that_it_is_another_root) {
  root_validity.from = std::chrono::system_clock::now() + 2h;
  begin({});
  const auto how = enrol(wish("beta"));
  EXPECT_THAT(problem(how),
              testing::AllOf(HasSubstr("is not valid before 2"),
                             HasSubstr("the clock of the root's host said 2"), HasSubstr("here it is 2"),
                             testing::Not(HasSubstr("not the root"))));
  EXPECT_EQ(how.error().code, error_code::bad_usage);
}

TEST_F(enrolment_server_test, no_other_role_of_the_job_can_be_the_door) {
  const auto worker = authority.issue({"j1", "worker", 0, "alpha"}).value();
  server.reset();
  server =
      enrolment_server::start(listen_for_enrolments("127.0.0.1:0").value(),
                              {.door = security::tls_context::make_door(worker).value(),
                               .pin = security::pin_of(worker.authority_pem).value(),
                               .version = "1.2.3"},
                              {.admit = [](const auto&, auto) {},
                               .bundle = [](const auto&, const auto&) -> result<std::string> { return ""; },
                               .ended = [](const auto&, const auto&) {},
                               .refused = [](const auto&) {}})
          .value();
  EXPECT_THAT(problem(enrol(wish("beta"))), HasSubstr("worker 0"));
}

TEST_F(enrolment_server_test, names_both_versions_to_a_host_of_another_and_leaves_it_the_token) {
  auto other = wish("beta");
  other.version = "1.3.0";
  EXPECT_THAT(problem(enrol(other)), AllOf(HasSubstr("1.2.3"), HasSubstr("1.3.0")));
  EXPECT_THAT(refused.wait_for("host beta"), AllOf(HasSubstr("1.2.3"), HasSubstr("1.3.0")));
  other.version = "1.2.3";
  EXPECT_TRUE(enrol(other));
}

TEST_F(enrolment_server_test, tells_a_host_why_the_job_does_not_want_it_and_leaves_it_the_token) {
  refusal = "host beta is there";
  const auto same = wish("beta");
  EXPECT_THAT(problem(enrol(same)), HasSubstr("host beta is there (the token can still be used)"));
  refused.wait_for("host beta at 127.0.0.1");
  refusal.clear();
  EXPECT_TRUE(enrol(same));
}

TEST_F(enrolment_server_test,
       ends_a_stranger_that_is_silent_or_slow_after_its_deadline_and_nobody_waits_for_it) {
  begin({.request_deadline = 300ms});
  const stranger silent{server->address()}, slow{server->address()};
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(enrol(wish("beta"))); // meanwhile
  const auto hello =
      std::string("\x16\x03\x01\x08\x00\x01\x00\x07\xfc\x03\x03", 11) + std::string(2000, '\x01');
  for (std::size_t i = 0; i < hello.size() && !slow.is_closed(10); ++i) slow.say(hello.substr(i, 1));
  EXPECT_TRUE(silent.is_closed());
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 15s);
  EXPECT_THAT(refused.wait_for("127.0.0.1"), testing::Not(HasSubstr("token")));
}

TEST_F(enrolment_server_test, a_stranger_that_says_much_is_dropped_before_it_costs_64_KiB) {
  const stranger one{server->address()};
  // A TLS record of a handshake that never ends.
  EXPECT_LT(one.say_until_closed(std::string("\x16\x03\x01\x10\x00", 5) + std::string(4096, '\x01')),
            8U << 20);
  const stranger http{server->address()};
  http.say("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(http.is_closed());
  EXPECT_TRUE(enrol(wish("beta")));
}

TEST_F(enrolment_server_test,
       hundreds_who_hold_a_connection_open_keep_nobody_out_for_longer_than_their_deadline) {
  begin({.request_deadline = 200ms, .strangers_max = 16});
  std::vector<std::unique_ptr<stranger>> many;
  for (int i = 0; i < 200; ++i) many.push_back(std::make_unique<stranger>(server->address()));
  EXPECT_TRUE(enrol(wish("beta")));
}

TEST_F(enrolment_server_test, who_is_in_TLS_and_says_what_no_host_says_is_dropped) {
  for (const auto* said : {"\n", "GET / HTTP/1.1\n", "dlrun-join 1.2.3 99999999\n", "dlrun-join 1.2.3 8193\n",
                           "dlrun-join 1.2.3 3\nabcd", "dlrun-join 1.2.3 3\n\xff\xff\xff"}) {
    loud_visitor one{wish("beta")};
    one.say(said);
    EXPECT_EQ(one.hear(), "") << said;
  }
  loud_visitor endless{wish("beta")};
  endless.say(std::string(join_line_max + 1, 'x'));
  EXPECT_EQ(endless.hear(), "");
  EXPECT_TRUE(asked.lines().empty());
}

TEST_F(enrolment_server_test, an_expired_token_says_so) {
  const auto made = server->make_token(0s).value();
  auto late = wish("beta");
  late.token = parse_token(made.reveal()).value();
  EXPECT_THAT(problem(enrol(late)), HasSubstr("expired"));
}

TEST_F(enrolment_server_test, a_port_in_use_is_told_with_the_way_out) {
  const auto taken = listen_for_enrolments(server->address());
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, error_code::bad_usage);
  EXPECT_THAT(taken.error().message, AllOf(HasSubstr(server->address()), HasSubstr("another port, or 0")));
  const auto foreign = listen_for_enrolments("192.0.2.7:7700"); // RFC 5737: nobody's
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code, error_code::bad_usage);
}

TEST_F(enrolment_server_test, a_root_that_is_not_there_is_no_bad_usage) {
  auto nobody = wish("beta");
  server.reset();
  const auto how = enrol(nobody);
  ASSERT_FALSE(how);
  EXPECT_EQ(how.error().code, error_code::system);
  EXPECT_THAT(how.error().message, HasSubstr(nobody.root));
  for (const auto* wrong : {"", "7700", ":7700", "127.0.0.1", "127.0.0.1:http-ish", "[::1]:7700"}) {
    nobody.root = wrong;
    const auto refused = enrol(nobody);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, error_code::bad_usage) << wrong;
  }
}

} // namespace
} // namespace dlrun::agent
