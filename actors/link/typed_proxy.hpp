/// A role of another process as an actor of this one, behind its ordinary handle. Included by
/// role_proxies.cpp alone, which makes those of all handles: they are long to compile.
#pragma once

#include "actors/link/io_thread_actor.hpp"
#include "actors/link/wire_values.hpp"

#include <array>
#include <tuple>

namespace dlrun::link {

/// How long a request of another process may stay unanswered here. Who asks has a deadline of its
/// own, which is shorter as a rule.
inline constexpr auto serving_deadline = std::chrono::seconds(30);

namespace detail {

/// Takes over a signature of a handle: how its message is sent by a proxy, and handed over where it
/// arrives.
template <class Signature>
struct message_of;

/// `Results` is void of what has no answer but that it was handled.
template <class Message, class... Carried, class... Results>
struct message_of<
    caf::typed_mpi<caf::detail::type_list<Message, Carried...>, caf::output_tuple<Results...>>> {
  static constexpr bool has_results = !std::is_same_v<std::tuple<Results...>, std::tuple<void>>;

  template <class Handle>
  static constexpr protocol::role_set senders = protocol::senders<Handle, Message>;

  // ---- where it arrives
  template <class Handle>
  static result<void> deliver(connection& from, const caf::strong_actor_ptr& to, const frame& what) {
    std::tuple<Message, Carried...> values;
    const auto read =
        std::apply([&](auto&... each) { return read_values(from, what.payload, each...); }, values);
    if (!read) return read;
    if constexpr (protocol::names_its_sender<Message>)
      if (const auto& said = std::get<0>(values); peer_id{said.role, said.incarnation} != from.peer())
        return fail(error_code::protocol, fmt::format("it speaks for {}", protocol::to_string(said.role)));
    std::apply([&](auto&... each) { hand_over<Handle>(from, to, what.header, each...); }, values);
    return {};
  }

  template <class Handle, class... Values>
  static void hand_over(connection& from, const caf::strong_actor_ptr& to, const frame_header& header,
                        Values&... values) {
    auto& broker = from.broker();
    if (header.kind == frame_kind::message) {
      caf::actor_cast<caf::abstract_actor*>(to)->eq_impl(caf::make_message_id(), from.peer_door(),
                                                         broker.context(), std::move(values)...);
      return;
    }
    auto asked = broker.request(caf::actor_cast<Handle>(to), serving_deadline, std::move(values)...);
    const auto failed = [back = from.shared_from_this(), call = header.call](const caf::error& why) {
      back->refuse(call, to_string(why));
    };
    if constexpr (has_results)
      asked.then(
          [back = from.shared_from_this(), call = header.call](const Results&... results) {
            if (back->is_open()) back->answer(call, write_values(*back, results...));
          },
          failed);
    else
      asked.then([back = from.shared_from_this(), call = header.call] { back->answer(call, {}); }, failed);
  }

  // ---- where it is sent
  using outcome = caf::result<Results...>;

  static result<void> read_answer(connection& from, std::span<const char> payload,
                                  caf::response_promise& promise) {
    if constexpr (has_results) {
      std::tuple<Results...> results;
      const auto read =
          std::apply([&](auto&... each) { return read_values(from, payload, each...); }, results);
      if (!read) return read;
      std::apply([&](auto&... each) { promise.deliver(std::move(each)...); }, results);
    } else {
      promise.deliver(caf::unit);
    }
    return {};
  }

  /// The handler of a proxy for the message at `place` of its handle. Only a request fails with an
  /// error: CAF would send that of a message to its sender, which would end.
  template <class Handle, class Pointer>
  static auto sender(Pointer self, std::shared_ptr<connection> to, std::uint64_t actor, std::uint16_t place) {
    return [self, to, actor, place](const Message& message, const Carried&... carried) -> outcome {
      auto promise = self->make_response_promise();
      if (senders<Handle>.is_empty() || !to->is_open()) {
        if (!promise.async()) promise.deliver(caf::make_error(caf::sec::remote_lookup_failed));
        return promise;
      }
      if constexpr (senders<Handle>.is_empty()) {
        static_cast<void>(actor), static_cast<void>(place); // it goes nowhere
      } else {
        const auto payload = write_values(*to, message, carried...);
        if (promise.async())
          to->send(actor, place, payload);
        else
          to->request(actor, place, payload, promise, &read_answer);
      }
      return promise;
    };
  }
};

template <class Handle, class... Signatures>
const message_table& make_table(caf::detail::type_list<Signatures...>) {
  static constexpr std::array entries{message_entry{message_of<Signatures>::template senders<Handle>,
                                                    &message_of<Signatures>::template deliver<Handle>}...};
  static constexpr message_table table{entries};
  return table;
}

struct proxy_holder {
  static inline const char* name = "proxy";
};

template <class Handle, class... Signatures, std::size_t... Places>
typename Handle::behavior_type
behave_as_proxy(io_thread_actor<proxy_holder, Handle>* self, const std::shared_ptr<connection>& to,
                std::uint64_t actor, caf::detail::type_list<Signatures...>, std::index_sequence<Places...>) {
  return {message_of<Signatures>::template sender<Handle>(self, to, actor, Places)...};
}

template <class Handle>
using places_of = std::make_index_sequence<caf::detail::tl_size<typename Handle::signatures>::value>;

} // namespace detail

template <class Handle>
const message_table& table_of() {
  return detail::make_table<Handle>(typename Handle::signatures{});
}

template <class Handle>
result<Handle> connection::borrow(std::uint64_t number) {
  auto& found = borrowed_[number];
  if (found.proxy == nullptr) {
    using pointer = io_thread_actor<detail::proxy_holder, Handle>*;
    // Lazy: else it would begin on the scheduler, beside the thread of the sockets. Hidden: nobody
    // waits for it at the end.
    const auto proxy = broker_->system().template spawn<caf::lazy_init + caf::hidden>(
        [](pointer self, std::shared_ptr<connection> to, std::uint64_t actor) {
          self->set_error_handler([](const caf::error&) {}); // of who was told something: not its end
          return detail::behave_as_proxy<Handle>(self, to, actor, typename Handle::signatures{},
                                                 detail::places_of<Handle>{});
        },
        shared_from_this(), number);
    found = {caf::actor_cast<caf::strong_actor_ptr>(proxy), &table_of<Handle>()};
  }
  if (found.table != &table_of<Handle>())
    return fail(error_code::protocol, fmt::format("actor {} is of another kind than before", number));
  return caf::actor_cast<Handle>(found.proxy);
}

} // namespace dlrun::link
