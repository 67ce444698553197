/// What segment_server and segment_client say to each other, and the socket calls both need.
#pragma once

#include "base/unique_fd.hpp"
#include "transport/run_token.hpp"
#include "transport/segment.hpp"

#include <cstdint>
#include <sys/socket.h>
#include <sys/un.h>
#include <type_traits>

namespace dlrun::transport::wire {

// One connection = one request packet, one reply packet (SOCK_SEQPACKET keeps the boundaries), both
// of fixed size and in host byte order: the two ends are processes of one build on one host.

inline constexpr std::uint32_t request_magic = 0x71'72'6c'64; // "dlrq"
inline constexpr std::uint32_t reply_magic = 0x73'72'6c'64;   // "dlrs"
inline constexpr std::uint32_t format_version = 2;

/// Asked for instead of a segment (ids count from 1): the connection itself. After a reply `here`,
/// without a descriptor, it stays, as a doorbell.
inline constexpr std::uint64_t doorbell_request = 0;

struct request {
  std::uint32_t magic = request_magic;
  std::uint32_t version = format_version;
  run_token token;
  std::uint64_t segment = 0;
};

enum class reply_status : std::uint32_t { here = 1, unknown_segment = 2, wrong_token = 3 };

/// With status `here` exactly one descriptor travels beside it, unless a doorbell was asked for.
struct reply {
  std::uint32_t magic = reply_magic;
  std::uint32_t version = format_version;
  reply_status status = reply_status::here;
  std::uint32_t reserved = 0;
  std::uint64_t segment = 0;
  std::uint64_t bytes = 0;
};

static_assert(sizeof(request) == 32 && std::is_trivially_copyable_v<request>);
static_assert(sizeof(reply) == 32 && std::is_trivially_copyable_v<reply>);

/// A socket address in the abstract namespace (no file, gone with its process).
struct abstract_address {
  sockaddr_un storage{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

/// @returns protocol for an empty or too long name.
result<abstract_address> make_abstract_address(std::string_view name);

/// A close-on-exec, non-blocking AF_UNIX SOCK_SEQPACKET socket.
result<base::unique_fd> make_socket();

/// Checks that the process at the other end runs as our effective user. @returns fenced if not.
result<void> check_peer_user(int socket);

/// Sends one packet, with `descriptor` beside it unless that is -1. Never blocks. @returns 0 or
/// errno.
int send_packet(int socket, const void* data, std::size_t size, int descriptor = -1);

/// What came in one packet.
struct packet {
  /// Bytes of the packet, which may exceed the buffer; 0 = the peer closed.
  std::size_t size = 0;
  /// Valid when exactly one descriptor came whole.
  base::unique_fd descriptor;
  /// Some descriptors could not be delivered to this process.
  bool descriptors_lost = false;
  /// More than one came; all are closed.
  bool too_many_descriptors = false;
};

/// Receives one packet and at most one descriptor. Never blocks. @returns system with errno in the
/// text.
result<packet> receive_packet(int socket, void* data, std::size_t capacity);

} // namespace dlrun::transport::wire
