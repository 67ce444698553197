// The door of a job that has a key: who proves that it has it, and all others.
#include "tests/actors/agent/enrolment/door.hpp"

namespace dlrun::agent {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

join_key key_of(char digit) { return join_key::parse(std::string(64, digit)).value(); }

std::string bytes_of(const base::hmac_key& proof) {
  return {reinterpret_cast<const char*>(proof.data()), proof.size()};
}

class enrolment_key_test : public enrolment_server_test {
protected:
  enrolment_key_test() { begin_with_key({}); }
  void begin_with_key(enrolment_options options) {
    options.key = std::make_shared<const join_key>(key_of('a'));
    begin(std::move(options));
  }
  enrolment_wish wish_with(char digit, const std::string& name = "beta") {
    auto made = wish(name);
    made.key = key_of(digit);
    made.token = {};
    return made;
  }
  static std::string proof_message(const join_key& key, join_key::side who, const loud_visitor& visitor) {
    return written_message(key_word, key_version,
                           bytes_of(key.proof(who, visitor.session().binding().value())));
  }
};

TEST_F(enrolment_key_test, lets_hosts_in_again_and_again_without_a_token) {
  for (const auto* name : {"beta", "gamma", "beta"}) {
    auto enrolled = enrol(wish_with('a', name));
    ASSERT_TRUE(enrolled) << enrolled.error().message;
    EXPECT_EQ(asked.wait_for(name), std::string{name} + " 127.0.0.1 0");
    EXPECT_THAT(read_all(enrolled->bundle.get()), HasSubstr(name));
  }
}

TEST_F(enrolment_key_test, takes_tokens_as_before) {
  const auto same = wish("beta");
  ASSERT_TRUE(enrol(same));
  EXPECT_THAT(problem(enrol(same)), HasSubstr("was used already"));
}

TEST_F(enrolment_key_test, refuses_another_key_and_both_ends_say_so) {
  const auto how = enrol(wish_with('b'));
  EXPECT_THAT(problem(how), AllOf(HasSubstr(server->address()), HasSubstr("does not take this key"),
                                  HasSubstr("join.key_file")));
  EXPECT_EQ(how.error().code, error_code::protocol); // the root may come there yet
  EXPECT_THAT(refused.wait_for("127.0.0.1"), HasSubstr("another key"));
  EXPECT_TRUE(asked.lines().empty());
}

TEST_F(enrolment_key_test, a_job_without_a_key_takes_none) {
  begin({});
  const auto how = enrol(wish_with('a'));
  EXPECT_THAT(problem(how), HasSubstr("does not take this key"));
  EXPECT_EQ(how.error().code, error_code::protocol); // the root may come there yet
  EXPECT_THAT(refused.wait_for("127.0.0.1"), HasSubstr("has no 'join.key_file'"));
}

TEST_F(enrolment_key_test, a_host_that_may_come_later_hears_so_and_one_that_may_not_too) {
  refusal = "host beta is there";
  refusal_code = error_code::in_use;
  const auto later = enrol(wish_with('a'));
  EXPECT_THAT(problem(later), AllOf(HasSubstr("refuses: host beta is there"), Not(HasSubstr("token"))));
  EXPECT_EQ(later.error().code, error_code::in_use);
  refusal_code = error_code::bad_usage;
  EXPECT_EQ(enrol(wish_with('a')).error().code, error_code::bad_usage);
  refusal_code = error_code::in_use;
  EXPECT_EQ(enrol(wish("beta")).error().code, error_code::bad_usage); // of a token all is final
}

TEST_F(enrolment_key_test, names_both_versions_to_a_host_of_another) {
  auto other = wish_with('a');
  other.version = "1.3.0";
  const auto how = enrol(other);
  EXPECT_THAT(problem(how), AllOf(HasSubstr("1.2.3"), HasSubstr("1.3.0")));
  EXPECT_EQ(how.error().code, error_code::bad_usage);
}

TEST_F(enrolment_key_test, who_listens_in_the_place_of_the_root_hears_a_proof_and_nothing_else) {
  // Of another job: it takes proofs, and answers as the door of this one would.
  begin({});
  std::thread stranger_server;
  std::string heard;
  const base::unique_fd listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  auto where = base::parse_ipv4_address("127.0.0.1:0").value();
  socklen_t size = sizeof where;
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&where), size), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&where), &size), 0);
  const auto own =
      security::certificate_authority::make("j1").value().issue({"j1", "agent", 0, "alpha"}).value();
  const auto context = security::tls_context::make_door(own).value();
  stranger_server = std::thread{[&] {
    const base::unique_fd socket{::accept(listener.get(), nullptr, nullptr)};
    auto session = security::tls_session::start(*context, security::tls_session::side::server).value();
    std::array<std::byte, 4096> piece;
    std::vector<std::byte> plain;
    bool has_answered = false;
    for (;;) {
      const auto wire = session.wire();
      if (!wire.empty())
        session.sent(static_cast<std::size_t>(::send(socket.get(), wire.data(), wire.size(), MSG_NOSIGNAL)));
      const auto got = ::recv(socket.get(), piece.data(), piece.size(), 0);
      if (got <= 0 || !session.feed(std::span{piece}.first(static_cast<std::size_t>(got)), plain)) break;
      if (plain.empty() || std::exchange(has_answered, true)) continue;
      // What it heard is the only proof that it has: it says that back.
      const std::string proof{reinterpret_cast<const char*>(plain.data()), plain.size()};
      EXPECT_TRUE(session.write(std::as_bytes(std::span{proof})));
    }
    heard.assign(reinterpret_cast<const char*>(plain.data()), plain.size());
  }};
  auto lured = wish_with('a');
  lured.root = base::to_string(where);
  const auto how = enrol(lured);
  stranger_server.join();
  EXPECT_THAT(problem(how), HasSubstr("does not prove that it has the key"));
  EXPECT_EQ(how.error().code, error_code::protocol); // the root may come there yet
  EXPECT_EQ(heard.size(), std::string_view{"dlrun-key 1 32\n"}.size() + join_proof_bytes);
  EXPECT_THAT(heard, Not(HasSubstr("beta")));
}

TEST_F(enrolment_key_test, a_proof_of_one_session_is_none_in_another_nor_is_that_of_the_root) {
  const auto any = wish("beta"); // knows the door, which a thief may
  loud_visitor first{any}, second{any}, third{any};
  const auto stolen = proof_message(key_of('a'), join_key::side::host, first);
  second.say(stolen);
  second.hear_message("dlrun-refused 1 ", 1);
  third.say(proof_message(key_of('a'), join_key::side::root, third));
  third.hear_message("dlrun-refused 1 ", 1);
  first.say(stolen);
  const auto answer = first.hear_message("dlrun-key 1 32\n", join_proof_bytes);
  EXPECT_EQ(answer, bytes_of(key_of('a').proof(join_key::side::root, first.session().binding().value())));
  EXPECT_TRUE(asked.lines().empty());
}

TEST_F(enrolment_key_test, who_says_what_no_host_with_a_key_says_is_dropped) {
  const auto any = wish("beta");
  bootstrap::JoinRequest request;
  request.set_name("beta");
  request.set_address("127.0.0.1");
  const auto asks = written_message(join_word, "1.2.3", request.SerializeAsString());
  request.set_secret(std::string(join_secret_bytes, 's'));
  const auto asks_with_secret = written_message(join_word, "1.2.3", request.SerializeAsString());
  for (const auto* said :
       {"dlrun-key 1 31\n", "dlrun-key 1 33\n", "dlrun-key 2 32\n", "dlrun-key 1 0\n", "x 1 0\n"}) {
    loud_visitor one{any};
    one.say(said);
    EXPECT_EQ(one.hear(), "") << said;
  }
  { // more, before the proof was answered
    loud_visitor one{any};
    one.say(proof_message(key_of('a'), join_key::side::host, one) + asks);
    EXPECT_EQ(one.hear(), "");
  }
  for (const bool is_twice : {true, false}) { // the proof again; a secret too
    loud_visitor one{any};
    const auto proof = proof_message(key_of('a'), join_key::side::host, one);
    one.say(proof);
    one.hear_message("dlrun-key 1 32\n", join_proof_bytes);
    one.say(is_twice ? proof : asks_with_secret);
    EXPECT_EQ(one.hear().size(), std::string_view{"dlrun-key 1 32\n"}.size() + join_proof_bytes);
  }
  { // no proof at all
    loud_visitor one{any};
    one.say(asks);
    one.hear_message("dlrun-refused 1.2.3 ", 1);
  }
  EXPECT_TRUE(asked.lines().empty());
  EXPECT_TRUE(enrol(wish_with('a')));
}

TEST_F(enrolment_key_test,
       who_hangs_up_or_is_silent_in_the_middle_is_dropped_in_time_and_nobody_waits_for_it) {
  begin_with_key({.request_deadline = 300ms});
  const auto any = wish("beta");
  loud_visitor half{any}, proven{any};
  half.say(proof_message(key_of('a'), join_key::side::host, half).substr(0, 20));
  proven.say(proof_message(key_of('a'), join_key::side::host, proven));
  EXPECT_TRUE(enrol(wish_with('a', "gamma"))); // meanwhile
  EXPECT_EQ(half.hear(), "");
  EXPECT_THAT(proven.hear(), HasSubstr("dlrun-key")); // to its end
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(enrol(wish_with('a')));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 10s);
  EXPECT_THAT(refused.wait_for("127.0.0.1"), HasSubstr("in time"));
}

TEST_F(enrolment_key_test, one_that_is_asked_to_end_does_not_wait_for_an_answer) {
  base::unique_fd asks, told;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  told.reset(ends[0]);
  asks.reset(ends[1]);
  const auto silent = listen_for_enrolments("127.0.0.1:0").value(); // nobody accepts there
  auto one = wish_with('a');
  one.root = silent.address;
  one.stop = told.get();
  ASSERT_EQ(::write(asks.get(), "x", 1), 1);
  const auto how = enrol(one);
  ASSERT_FALSE(how);
  EXPECT_EQ(how.error().code, error_code::interrupted);
}

TEST_F(enrolment_key_test, who_was_refused_and_stays_counts_among_the_strangers) {
  begin_with_key({.request_deadline = 1s, .strangers_max = 4});
  const auto any = wish("beta");
  std::vector<std::unique_ptr<loud_visitor>> wrong;
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < 4; ++i) {
    auto& one = *wrong.emplace_back(std::make_unique<loud_visitor>(any));
    one.say(proof_message(key_of('b'), join_key::side::host, one));
    one.hear_message("dlrun-refused 1 ", 1);
  }
  // There is no room for another one until one of them has gone, at its deadline.
  EXPECT_TRUE(enrol(wish_with('a')));
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 1s);
}

TEST_F(enrolment_key_test, looks_for_the_root_at_all_addresses_of_its_name) {
  const auto at = [](const std::string& address) { return base::parse_ipv4_address(address).value(); };
  auto closed = listen_for_enrolments("127.0.0.1:0").value();
  const auto silent = listen_for_enrolments("127.0.0.1:0").value(); // nobody accepts there
  const auto own = authority.issue({"j1", "agent", 0, "alpha"}).value();
  const auto other =
      enrolment_server::start(listen_for_enrolments("127.0.0.1:0").value(),
                              {.door = security::tls_context::make_door(own).value(),
                               .pin = security::pin_of(own.authority_pem).value(),
                               .version = "1.2.3",
                               .key = std::make_shared<const join_key>(key_of('b'))},
                              {.admit = [](const auto&, auto) {},
                               .bundle = [](const auto&, const auto&) -> result<std::string> { return ""; },
                               .ended = [](const auto&, const auto&) {},
                               .refused = [](const auto&) {}})
          .value();
  closed.socket.reset();
  const auto root = at(server->address());
  auto one = wish_with('a');
  for (const auto& before : {at(closed.address), at(other->address())})
    EXPECT_TRUE(enrol_at(std::array{before, root}, one));
  one.answer_deadline = 200ms;
  EXPECT_EQ(enrol_at(std::array{root, at(silent.address)}, wish_with('a')).has_value(), true);
  const auto how = enrol_at(std::array{at(closed.address), at(silent.address)}, one);
  ASSERT_FALSE(how);
  EXPECT_EQ(how.error().code, error_code::timed_out);
  refusal = "host beta is there"; // the root's own word is the last one
  EXPECT_EQ(enrol_at(std::array{root, at(other->address())}, wish_with('a')).error().code,
            error_code::bad_usage);
}

TEST_F(enrolment_key_test, a_name_that_nobody_knows_yet_is_no_bad_usage) {
  auto one = wish_with('a');
  one.root = "no.such.host.invalid:7700";
  const auto how = enrol(one);
  ASSERT_FALSE(how);
  EXPECT_EQ(how.error().code, error_code::system);
  EXPECT_THAT(how.error().message, HasSubstr("no.such.host.invalid"));
}

TEST(enrolment_way, is_from_the_number_of_this_host_to_that_of_the_root) {
  EXPECT_EQ(way_to("127.0.0.1:7700"), "from 127.0.0.1 to 127.0.0.1:7700");
  EXPECT_EQ(way_to("localhost:7700"), way_to("127.0.0.1:7700"));
  EXPECT_THAT(way_to("no.such.host.invalid:7700"), HasSubstr("nobody knows an IPv4 address of"));
}

} // namespace
} // namespace dlrun::agent
