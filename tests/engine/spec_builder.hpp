/// Specifications for tests, written as protobuf text.
#pragma once

#include "engine/model.hpp"
#include "proto/job_spec.pb.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include <string>

namespace dlrun::engine::testing {

template <class Message>
Message parse(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

/// The model of `text`, which must be right.
inline std::shared_ptr<const model> build_model(const std::string& text) {
  auto built = model::build(parse<spec::ModelSpec>(text));
  EXPECT_TRUE(built.has_value()) << (built ? "" : built.error().message);
  return built.value_or(nullptr);
}

/// The message with which `text` is refused; fails the test when it is accepted.
inline std::string refusal(const std::string& text) {
  const auto built = model::build(parse<spec::ModelSpec>(text));
  EXPECT_FALSE(built.has_value()) << "accepted: " << text;
  if (built) return {};
  EXPECT_EQ(built.error().code, error_code::bad_spec);
  return built.error().message;
}

} // namespace dlrun::engine::testing
