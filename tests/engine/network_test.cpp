#include "engine/network.hpp"

#include "engine/optimizer.hpp"
#include "tests/engine/spec_builder.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <thread>

namespace dlrun::engine {
namespace {

using testing::build_model;
using ::testing::HasSubstr;
using testing::parse;

constexpr const char* small_mlp =
    "input: [1, 4, 4] layers { flatten {} } layers { linear { out_features: 8 } } layers { relu {} } "
    "layers { linear { out_features: 3 } }";
constexpr const char* dropout_mlp =
    "input: [6] layers { linear { out_features: 50 } } layers { relu {} } layers { dropout {} } "
    "layers { linear { out_features: 3 } }";
constexpr const char* every_layer = "input: [2, 12, 12] layers { conv2d { out_channels: 20 kernel_size: 3 "
                                    "padding: 1 } } layers { batch_norm {} } "
                                    "layers { relu {} } layers { max_pool2d { kernel_size: 2 } } layers { "
                                    "conv2d { out_channels: 9 kernel_size: 3 } } "
                                    "layers { flatten {} } layers { linear { out_features: 33 } } layers { "
                                    "relu {} } layers { dropout { p: 0.2 } } "
                                    "layers { linear { out_features: 5 } }";

/// Where accuracy, the only metric of these models, counts in the metrics tensor.
constexpr std::size_t hits = parameter_layout::first_metric;

/// A model with initial values and one random batch.
struct problem {
  std::shared_ptr<const model> m;
  std::vector<float> parameters, records;
  std::vector<std::int32_t> labels;

  problem(const char* specification, std::size_t size)
      : m(build_model(specification))
      , parameters(m->layout().flat_size())
      , records(size * static_cast<std::size_t>(element_count(m->input_shape()).value()))
      , labels(size) {
    std::mt19937 random(7);
    for (auto& value : records) value = static_cast<float>(random() % 1000) / 500.0F - 1.0F;
    for (auto& label : labels)
      label = static_cast<std::int32_t>(random() % static_cast<unsigned>(m->output_shape()[0]));
    m->initialise(1, parameters);
  }

  batch all() const { return {records, labels, {}, static_cast<std::int64_t>(labels.size())}; }

  std::vector<float> gradient(network& n, const slot_key& key = {1, 2, 3}) const {
    std::vector<float> out(parameters.size(), std::nanf(""));
    EXPECT_TRUE(n.forward_backward(parameters, all(), key, out));
    return out;
  }
};

TEST(network, gradient_descent_learns_a_separable_problem) {
  problem p(small_mlp, 30);
  for (std::size_t i = 0; i < p.records.size(); ++i) {
    p.labels[i / 16] = static_cast<std::int32_t>(i / 16 % 3);
    p.records[i] += i % 16 % 3 == i / 16 % 3 ? 1.0F : 0.0F;
  }
  const auto sgd = optimizer::build(parse<spec::OptimizerSpec>("sgd { lr: 0.1 }")).value();
  const auto metrics = p.m->layout().metrics().offset;
  const auto trained = std::span(p.parameters).first(metrics);
  std::vector<float> gradient;
  network n(p.m, 1);
  for (std::uint64_t step = 0; step < 300; ++step) {
    gradient = p.gradient(n, {1, step, 0});
    sgd.update({{step}, sgd.lr(), 1.0F / 30}, std::span(gradient).first(metrics), trained, trained, {});
  }
  EXPECT_EQ(gradient[metrics + hits], 30.0F);
  EXPECT_LT(gradient[metrics + parameter_layout::loss_sum], 30 * 0.1F);
}

TEST(network, the_gradient_is_a_sum_over_records_and_its_padding_is_zero) {
  problem once(small_mlp, 3), twice(small_mlp, 6);
  for (std::size_t i = 0; i < once.records.size(); ++i)
    twice.records[i] = twice.records[i + once.records.size()] = once.records[i];
  for (std::size_t i = 0; i < 3; ++i) twice.labels[i] = twice.labels[i + 3] = once.labels[i];
  network n(once.m, 1);
  const auto single = once.gradient(n), doubled = twice.gradient(n);
  for (std::size_t i = 0; i < single.size(); ++i) EXPECT_NEAR(doubled[i], 2 * single[i], 1e-5) << i;
  std::vector<bool> used(single.size());
  for (const auto& tensor : once.m->layout().tensors())
    std::fill_n(used.begin() + static_cast<std::ptrdiff_t>(tensor.offset), tensor.size, true);
  for (std::size_t i = 0; i < single.size(); ++i) EXPECT_TRUE(used[i] || single[i] == 0.0F) << i;
}

TEST(network, has_room_for_what_its_layers_hand_to_each_other) {
  const problem p("input: 6 layers { linear { out_features: 64 } } layers { relu {} } "
                  "layers { linear { out_features: 5 } }",
                  4);
  const auto floats = network(p.m, 1).activation_floats();
  EXPECT_GE(floats, 64U + 64U + 5U) << "an output, its gradient, and what the loss reads";
  EXPECT_LE(floats, 4 * (64U + 16U)) << "relu works in place";
}

TEST(network, metrics_ride_in_the_gradient) {
  const problem p(small_mlp, 5);
  network n(p.m, 1);
  const auto gradient = p.gradient(n);
  const auto metrics = std::span(gradient).subspan(p.m->layout().metrics().offset);
  EXPECT_EQ(metrics[parameter_layout::records], 5.0F);
  EXPECT_NEAR(metrics[parameter_layout::loss_sum], 5 * std::log(3.0), 2.0);
  EXPECT_LE(metrics[hits], 5.0F);
  EXPECT_EQ(metrics[hits + 1], 5.0F);
  for (std::size_t i = parameter_layout::first_metric + p.m->metrics().floats(); i < metrics.size(); ++i)
    EXPECT_EQ(metrics[i], 0.0F);
}

TEST(network, bits_do_not_depend_on_addresses_instances_or_what_was_computed_before) {
  const problem p(every_layer, 7), smaller(every_layer, 3);
  network first(p.m, 1);
  const auto expected = p.gradient(first);
  network second(p.m, 1);
  for (std::size_t shift = 0; shift < 16; ++shift) {
    std::vector<float> parameters(p.parameters.size() + shift), records(p.records.size() + shift);
    std::vector<float> gradient(p.parameters.size() + shift);
    std::copy(p.parameters.begin(), p.parameters.end(),
              parameters.begin() + static_cast<std::ptrdiff_t>(shift));
    std::copy(p.records.begin(), p.records.end(), records.begin() + static_cast<std::ptrdiff_t>(shift));
    (void)smaller.gradient(second, {shift, 1, 1});
    ASSERT_TRUE(second.forward_backward(std::span(parameters).subspan(shift),
                                        {std::span(records).subspan(shift), p.labels, {}, 7}, {1, 2, 3},
                                        std::span(gradient).subspan(shift)));
    gradient.erase(gradient.begin(), gradient.begin() + static_cast<std::ptrdiff_t>(shift));
    ASSERT_EQ(gradient, expected) << "shifted by " << shift << " floats";
  }
}

TEST(network, two_threads_at_once_get_the_same_bits) {
  const problem p(every_layer, 6);
  network alone(p.m, 1);
  const auto expected = p.gradient(alone);
  std::vector<std::vector<float>> computed(2);
  std::vector<std::thread> threads;
  for (auto& out : computed)
    threads.emplace_back([&] {
      network own(p.m, 1);
      for (int i = 0; i < 5; ++i) out = p.gradient(own);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(computed[0], expected);
  EXPECT_EQ(computed[1], expected);
}

TEST(network, several_threads_a_microbatch_give_the_same_bits_every_time) {
  const problem p(every_layer, 8);
  network first(p.m, 2), second(p.m, 2);
  const auto expected = p.gradient(first);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(p.gradient(second), expected);
}

TEST(network, dropout_is_keyed_by_seed_step_and_slot) {
  const problem p(dropout_mlp, 8);
  network n(p.m, 1), other(p.m, 1);
  const auto expected = p.gradient(n, {1, 2, 3});
  EXPECT_NE(p.gradient(n, {2, 2, 3}), expected);
  EXPECT_NE(p.gradient(n, {1, 3, 3}), expected);
  EXPECT_NE(p.gradient(n, {1, 2, 4}), expected);
  EXPECT_EQ(p.gradient(other, {1, 2, 3}), expected);
}

TEST(network, evaluation_knows_no_dropout_and_no_batch_statistics) {
  const problem p(every_layer, 6);
  network n(p.m, 1);
  std::vector<float> whole(p.m->layout().metrics().size, 9.0F), part(whole), sum(whole.size(), 0.0F);
  ASSERT_TRUE(n.evaluate(p.parameters, p.all(), whole));
  const std::size_t record = p.records.size() / 6;
  for (std::size_t i = 0; i < 6; ++i) { // one by one: no record sees another
    ASSERT_TRUE(n.evaluate(
        p.parameters,
        {std::span(p.records).subspan(i * record, record), std::span(p.labels).subspan(i, 1), {}, 1}, part));
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += part[k];
  }
  EXPECT_NEAR(sum[parameter_layout::loss_sum], whole[parameter_layout::loss_sum], 1e-4);
  EXPECT_EQ(sum[hits], whole[hits]);
  EXPECT_EQ(whole[parameter_layout::records], 6.0F);
  EXPECT_EQ(whole[5], 0.0F);
}

TEST(network, gradient_descent_fits_a_line) {
  problem p("input: [2] layers { linear { out_features: 1 } } loss { mse {} }", 16);
  std::vector<float> targets;
  for (std::size_t i = 0; i < 16; ++i) targets.push_back(3 * p.records[2 * i] - p.records[2 * i + 1] + 0.5F);
  const auto sgd = optimizer::build(parse<spec::OptimizerSpec>("sgd { lr: 0.2 }")).value();
  const auto metrics = p.m->layout().metrics().offset;
  std::vector<float> gradient(p.parameters.size());
  network n(p.m, 1);
  for (std::uint64_t step = 0; step < 300; ++step) {
    ASSERT_TRUE(n.forward_backward(p.parameters, {p.records, {}, targets, 16}, {}, gradient));
    sgd.update({{step}, sgd.lr(), 1.0F / 16}, std::span(gradient).first(metrics),
               std::span(p.parameters).first(metrics), std::span(p.parameters).first(metrics), {});
  }
  EXPECT_NEAR(p.parameters[0], 3, 1e-3);
  EXPECT_NEAR(p.parameters[1], -1, 1e-3);
  EXPECT_LT(gradient[metrics + parameter_layout::loss_sum], 1e-4F);
  EXPECT_LT(gradient[metrics + parameter_layout::first_metric], 0.1F) << "sum of distances";
  EXPECT_EQ(gradient[metrics + parameter_layout::first_metric + 1], 16.0F);
}

TEST(network, a_prediction_is_what_evaluation_measures) {
  const problem p(every_layer, 6);
  network n(p.m, 1), other(p.m, 1);
  std::vector<float> scores(6 * 5, 9.0F), metrics(p.m->layout().metrics().size);
  ASSERT_TRUE(n.predict(p.parameters, p.records, 6, scores));
  ASSERT_TRUE(other.evaluate(p.parameters, p.all(), metrics));
  EXPECT_EQ(static_cast<float>(p.m->loss().forward(scores, p.all(), {})),
            metrics[parameter_layout::loss_sum]);
  const std::size_t record = p.records.size() / 6;
  std::vector<float> alone(5);
  ASSERT_TRUE(n.predict(p.parameters, std::span(p.records).subspan(2 * record, record), 1, alone));
  for (std::size_t c = 0; c < 5; ++c) EXPECT_NEAR(alone[c], scores[10 + c], 1e-5);
}

TEST(network, a_prediction_refuses_what_does_not_fit) {
  const problem p(small_mlp, 4);
  network n(p.m, 1);
  std::vector<float> scores(4 * 3);
  for (const auto& [records, size, outputs] :
       {std::tuple{64U, 3, 12U}, {63U, 4, 12U}, {64U, 4, 11U}, {0U, 0, 0U}}) {
    const auto refused =
        n.predict(p.parameters, std::span(p.records).first(records), size, std::span(scores).first(outputs));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, error_code::bad_usage);
  }
}

TEST(network, a_label_that_is_no_class_is_refused_before_anything_is_written) {
  problem p(small_mlp, 4);
  network n(p.m, 1);
  std::vector<float> gradient(p.parameters.size(), 5.0F);
  const auto untouched = gradient;
  for (const std::int32_t label :
       {3, -1, std::numeric_limits<std::int32_t>::max(), std::numeric_limits<std::int32_t>::min()}) {
    p.labels[2] = label;
    const auto refused = n.forward_backward(p.parameters, p.all(), {}, gradient);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, error_code::bad_data);
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr("record 2"), HasSubstr(std::to_string(label)), HasSubstr("0 to 2")));
    EXPECT_EQ(gradient, untouched);
    EXPECT_FALSE(n.evaluate(p.parameters, p.all(), std::span(gradient).first(p.m->layout().metrics().size)));
  }
}

TEST(network, a_value_that_is_no_index_of_an_embedding_is_refused) {
  problem p("input: [3] layers { name: 'city' embedding { num_embeddings: 10 embedding_dim: 2 } } "
            "layers { flatten {} } layers { linear { out_features: 3 } }",
            4);
  network n(p.m, 1);
  std::vector<float> gradient(p.parameters.size());
  std::fill(p.records.begin(), p.records.end(), 9.0F);
  EXPECT_TRUE(n.forward_backward(p.parameters, p.all(), {}, gradient));
  for (const float value : {10.0F, -1.0F, 0.5F, -0.5F, 1e30F, std::nanf(""), INFINITY}) {
    p.records[7] = value;
    const auto refused = n.forward_backward(p.parameters, p.all(), {}, gradient);
    ASSERT_FALSE(refused) << value;
    EXPECT_EQ(refused.error().code, error_code::bad_data);
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr("'city'"), HasSubstr("record 2"), HasSubstr("place 1"), HasSubstr("0 to 9")));
  }
  p.records[7] = 0.0F;
  EXPECT_TRUE(n.forward_backward(p.parameters, p.all(), {}, gradient));
}

TEST(network, outputs_with_several_readers_give_the_same_bits_every_time) {
  const problem p(
      "input: [1, 6, 6] layers { name: 'x' conv2d { out_channels: 8 kernel_size: 3 padding: 1 } } "
      "layers { name: 'y' relu {} } layers { name: 'z' inputs: 'x' gelu {} } "
      "layers { inputs: ['x', 'y', 'z', 'y'] add {} } layers { flatten {} } "
      "layers { linear { out_features: 3 } }",
      5);
  network first(p.m, 1), second(p.m, 1);
  const auto expected = p.gradient(first);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(p.gradient(second, {1, 2, 3}), expected);
}

TEST(network, a_relu_that_its_reader_takes_over_gives_the_same_gradient) {
  const auto with = [](const std::string& activation) {
    return "input: [2, 9, 9] layers { conv2d { out_channels: 6 kernel_size: 3 } } layers { " + activation +
           " } layers { max_pool2d { kernel_size: 2 } } layers { flatten {} } layers { linear { "
           "out_features: 3 } }";
  };
  const auto gradient_of = [](const std::string& specification) {
    const problem p(specification.c_str(), 16);
    network n(p.m, 1);
    return p.gradient(n);
  };
  // Nobody takes over a leaky_relu, and one that leaks nothing is a relu.
  EXPECT_EQ(gradient_of(with("relu {}")), gradient_of(with("leaky_relu { negative_slope: 0 }")));
}

TEST(network, a_batch_that_does_not_fit_its_spans_is_refused) {
  const problem p(small_mlp, 4);
  network n(p.m, 1);
  std::vector<float> gradient(p.parameters.size());
  for (const batch& wrong : {batch{p.records, p.labels, {}, 3}, batch{p.records, p.labels, {}, -1},
                             batch{{}, {}, {}, 0}, batch{std::span(p.records).first(5), p.labels, {}, 4},
                             batch{p.records, {}, p.records, 4}, batch{p.records, p.labels, p.records, 4}}) {
    const auto refused = n.forward_backward(p.parameters, wrong, {}, gradient);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, error_code::bad_usage);
    EXPECT_THAT(refused.error().message, HasSubstr("[1, 4, 4]"));
  }
}

TEST(network, batch_norm_of_vectors_refuses_to_train_on_one_record_but_evaluates_it) {
  const problem p("input: [4] layers { name: 'bn' batch_norm {} } layers { linear { out_features: 2 } }", 1);
  network n(p.m, 1);
  std::vector<float> gradient(p.parameters.size());
  const auto refused = n.forward_backward(p.parameters, p.all(), {}, gradient);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("'bn'"), HasSubstr("at least 2"), HasSubstr("got 1")));
  EXPECT_TRUE(n.evaluate(p.parameters, p.all(), std::span(gradient).first(p.m->layout().metrics().size)));
}

TEST(network, not_a_number_in_the_parameters_shows_in_the_loss) {
  problem p(small_mlp, 4);
  p.parameters[p.m->layout().find("linear3.bias")->offset] = std::nanf("");
  network n(p.m, 1);
  const auto gradient = p.gradient(n);
  const auto metrics = p.m->layout().metrics().offset;
  EXPECT_TRUE(std::isnan(gradient[metrics + parameter_layout::loss_sum]));
  EXPECT_EQ(gradient[metrics + hits], 0.0F);
}

TEST(network, what_is_told_to_be_final_is) {
  for (const auto* specification :
       {R"(input: [1, 8, 8] layers { conv2d { out_channels: 4 kernel_size: 3 padding: 1 } } layers { relu {} }
           layers { max_pool2d { kernel_size: 2 } } layers { flatten {} }
           layers { linear { out_features: 20 } } layers { relu {} } layers { linear { out_features: 10 } })",
        R"(input: [64] layers { linear { out_features: 30 } } layers { batch_norm {} } layers { relu {} }
           layers { linear { out_features: 10 } })"}) {
    const auto m = build_model(specification);
    std::vector<float> parameters(m->layout().flat_size()), gradient(parameters.size(), -7.0F);
    m->initialise(1, parameters);
    std::vector<float> records(16 * 64);
    for (std::size_t i = 0; i < records.size(); ++i)
      records[i] = static_cast<float>(i * 37 % 101) / 50.0F - 1.0F;
    std::vector<std::int32_t> labels(16);
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 10);
    std::vector<std::pair<std::uint64_t, std::vector<float>>> told;
    network n(m, 1);
    ASSERT_TRUE(
        n.forward_backward(parameters, {records, labels, {}, 16}, {}, gradient, [&](std::uint64_t from) {
          told.emplace_back(
              from, std::vector<float>(gradient.begin() + static_cast<std::ptrdiff_t>(from), gradient.end()));
        }));
    ASSERT_GE(told.size(), 1U);
    for (std::size_t i = 0; i < told.size(); ++i) {
      const auto& [from, seen] = told[i];
      EXPECT_GT(from, 0U);
      EXPECT_LT(from, i == 0 ? gradient.size() : told[i - 1].first);
      EXPECT_TRUE(std::equal(seen.begin(), seen.end(), gradient.begin() + static_cast<std::ptrdiff_t>(from)))
          << "from " << from;
    }
    std::vector<float> untold(parameters.size());
    ASSERT_TRUE(network(m, 1).forward_backward(parameters, {records, labels, {}, 16}, {}, untold));
    EXPECT_EQ(untold, gradient);
  }
}

} // namespace
} // namespace dlrun::engine
