/// One connection to the door at which hosts join.
#pragma once

#include "actors/agent/enrolment/join_key.hpp"
#include "actors/agent/enrolment/join_wire.hpp"
#include "base/unique_fd.hpp"
#include "proto/enrolment.pb.h"
#include "security/tls_session.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <poll.h>
#include <string>

namespace dlrun::agent {

/// Hears the request of a host, and tells it what became of it. Never blocks: its owner waits for
/// what it watches, and serves it. Until its request is there it holds less than 64 KiB, however
/// much the other end sends. One thread.
class enrolment_visit {
public:
  using time_point = std::chrono::steady_clock::time_point;
  enum class state : std::uint8_t {
    asks,   ///< who is it, and what does it want?
    waits,  ///< its request is there, and is being decided
    given,  ///< it is sent what it asked for
    begins, ///< it has that; what it says now is why it cannot begin
    leaves, ///< it was refused, and is told so
    over
  };
  struct request {
    std::string version; ///< of its dlrun
    bootstrap::JoinRequest what;
    bool is_proven = false; ///< by the key; else its secret has to be looked at
  };

  /// @param key by which it may prove itself; null: by none. socket: does not block, from: where it
  /// comes from, for people, deadline: of its request
  enrolment_visit(base::unique_fd socket, security::tls_session session, std::shared_ptr<const join_key> key,
                  std::string from, time_point deadline);

  state now() const { return state_; }
  const std::string& from() const { return from_; }
  time_point deadline() const { return deadline_; }
  /// What is wrong with the connection or with what came; "" when nothing is. It is over then, or
  /// leaves.
  const std::string& problem() const { return problem_; }
  /// Why the host could not begin, as it said; "" when it did not.
  const std::string& last_words() const { return heard_; }
  /// The request, once, when it is there.
  std::optional<request> take_request();

  /// Answers to the request. `deadline`: until then the other end has to take it.
  /// @param may_retry the same may be asked again
  void refuse(std::string_view version, std::string_view why, bool may_retry, time_point deadline);
  void give(std::string message, time_point deadline);
  /// Nothing more is wanted of it.
  void end();

  pollfd watch() const;
  void serve(short events, time_point now);

private:
  void hear();
  void on_heard();
  void on_message();
  void on_proof(std::string_view shown);
  void on_request(const join_head& head, std::string_view body);
  void say(std::string message);
  void on_silence();
  void tell();
  void fail_with(std::string why);

  base::unique_fd socket_;
  security::tls_session session_;
  std::shared_ptr<const join_key> key_;
  std::string from_;
  time_point deadline_;
  state state_ = state::asks;
  std::string problem_;
  std::string heard_; ///< plaintext
  bool is_proven_ = false;
  std::optional<request> request_;
  std::string message_;    ///< to be sent,
  std::size_t at_ = 0;     ///< from there on
  bool has_ended_ = false; ///< the other end sends nothing more
};

} // namespace dlrun::agent
