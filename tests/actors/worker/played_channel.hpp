/// The tensor channel of a worker, played by a test.
#pragma once

#include "transport/tensor_channel.hpp"

#include <deque>
#include <string>
#include <string_view>
#include <utility>

namespace dlrun::test {

/// Keeps what it is asked for until the test answers.
struct played_channel : transport::segment_fetches {
  struct fetch_question {
    std::string address;
    transport::segment_part part;
    callback done;
  };

  bool is_shared(std::string_view) const override { return shared; }
  result<void> fetch(std::string address, transport::segment_id, std::size_t,
                     const transport::segment_part& part, std::chrono::steady_clock::time_point,
                     callback done) override {
    fetches.push_back({std::move(address), part, std::move(done)});
    return {};
  }
  result<void> connect_doorbell(std::string, std::chrono::steady_clock::time_point,
                                connected_callback done) override {
    doorbells.push_back(std::move(done));
    return {};
  }

  bool shared = true;
  std::deque<fetch_question> fetches;
  std::deque<connected_callback> doorbells;
};

} // namespace dlrun::test
