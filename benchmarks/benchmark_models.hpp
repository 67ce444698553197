/// The models that benchmarks of the engine train, as protobuf text. Their twins in PyTorch are in
/// pytorch/peer_model.py.
#pragma once

#include "engine/model.hpp"
#include "proto/job_spec.pb.h"

#include <array>
#include <fmt/format.h>
#include <google/protobuf/text_format.h>
#include <memory>
#include <string>

namespace dlrun::benchmarks {

inline constexpr const char* mlp = R"(input: [1, 28, 28]
  layers { flatten {} }
  layers { linear { out_features: 512 } } layers { relu {} }
  layers { linear { out_features: 512 } } layers { relu {} }
  layers { linear { out_features: 10 } })";

inline constexpr const char* cnn = R"(input: [1, 28, 28]
  layers { conv2d { out_channels: 32 kernel_size: 3 padding: 1 } } layers { relu {} }
  layers { max_pool2d { kernel_size: 2 } }
  layers { conv2d { out_channels: 64 kernel_size: 3 padding: 1 } } layers { relu {} }
  layers { max_pool2d { kernel_size: 2 } }
  layers { flatten {} }
  layers { linear { out_features: 128 } } layers { relu {} }
  layers { linear { out_features: 10 } })";

/// ResNet-50 (He et al. 2016, table 1; stride in the 3x3 convolution, as in torchvision) for 1,000
/// classes of images [3, 224, 224].
inline std::string resnet50() {
  std::string text = "input: [3, 224, 224] layers { conv2d { out_channels: 64 kernel_size: 7 stride: 2 "
                     "padding: 3 bias: false } } layers { batch_norm {} } layers { relu {} } "
                     "layers { name: 'stem' max_pool2d { kernel_size: 3 stride: 2 padding: 1 } } ";
  const auto convolution = [&](int channels, int kernel, int stride, const std::string& from = "") {
    text += fmt::format(
        "layers {{ {} conv2d {{ out_channels: {} kernel_size: {} stride: {} padding: {} bias: "
        "false }} }} ",
        from.empty() ? "" : fmt::format("inputs: '{}'", from), channels, kernel, stride, kernel / 2);
  };
  std::string input = "stem";
  int number = 0;
  const std::array<int, 4> blocks{3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage)
    for (int block = 0; block < blocks.at(static_cast<std::size_t>(stage)); ++block, ++number) {
      const int channels = 64 << stage, stride = stage > 0 && block == 0 ? 2 : 1;
      convolution(channels, 1, 1, input);
      text += "layers { batch_norm {} } layers { relu {} } ";
      convolution(channels, 3, stride);
      text += "layers { batch_norm {} } layers { relu {} } ";
      convolution(4 * channels, 1, 1);
      text += fmt::format("layers {{ name: 'long{}' batch_norm {{}} }} ", number);
      if (block == 0) {
        convolution(4 * channels, 1, stride, input);
        text += fmt::format("layers {{ name: 'short{}' batch_norm {{}} }} ", number);
        input = fmt::format("short{}", number);
      }
      text += fmt::format(
          "layers {{ inputs: ['long{0}', '{1}'] add {{}} }} layers {{ name: 'block{0}' relu {{}} }} ", number,
          input);
      input = fmt::format("block{}", number);
    }
  return text + "layers { adaptive_avg_pool2d { output_size: 1 } } layers { flatten {} } "
                "layers { linear { out_features: 1000 } }";
}

template <class Message>
Message parse(const std::string& text) {
  Message message;
  google::protobuf::TextFormat::ParseFromString(text, &message);
  return message;
}

inline std::shared_ptr<const engine::model> model_of(const std::string& text) {
  return engine::model::build(parse<spec::ModelSpec>(text)).value();
}

} // namespace dlrun::benchmarks
