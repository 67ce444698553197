/// Credentials as they are in the messages that a process is started with.
#pragma once

#include "actors/protocol/host_messages.hpp"
#include "proto/bootstrap.pb.h"

namespace dlrun::agent {

inline bootstrap::Credentials to_message(const protocol::role_credentials& made) {
  bootstrap::Credentials message;
  message.set_certificate(made.certificate);
  message.set_key(made.key);
  message.set_authority(made.authority);
  message.set_lifetime_s(made.lifetime_s);
  return message;
}

inline protocol::role_credentials from_message(const bootstrap::Credentials& message) {
  return {message.certificate(), message.key(), message.authority(), message.lifetime_s()};
}

} // namespace dlrun::agent
