// Metrics against plain computations over all records at once.
#include "engine/metrics.hpp"

#include "engine/parameter_layout.hpp"
#include "tests/engine/spec_builder.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace dlrun::engine {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::parse;
using floats = std::vector<float>;
using labels = std::vector<std::int32_t>;

const std::string bce = "loss { bce_with_logits {} } ";
const std::string mse = "loss { mse {} } ";

result<metric_set> try_metrics(const std::string& text, std::int64_t outputs) {
  const auto spec = parse<spec::ModelSpec>("layers { relu {} } " + text);
  const shape output{outputs};
  return make_metrics(spec, output, *make_loss(spec, output).value());
}

metric_set metrics_of(const std::string& text, std::int64_t outputs) {
  auto made = try_metrics(text, outputs);
  EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().message);
  return std::move(made.value());
}

std::string refusal(const std::string& text, std::int64_t outputs) {
  const auto made = try_metrics(text, outputs);
  EXPECT_FALSE(made.has_value()) << text;
  return made ? "" : made.error().message;
}

/// The sums over all records, microbatch by microbatch.
std::vector<double> sums_of(const metric_set& metrics, const floats& outputs, const labels& classes,
                            const floats& values, std::size_t records, std::size_t microbatch) {
  std::vector<double> sums(metrics.floats());
  const auto width = outputs.size() / records;
  for (std::size_t first = 0; first < records; first += microbatch) {
    const auto size = std::min(microbatch, records - first);
    floats part(metrics.floats());
    const auto part_of = [&](const auto& all, std::size_t each) {
      return all.empty() ? std::span(all) : std::span(all).subspan(first * each, size * each);
    };
    metrics.add(part_of(outputs, width),
                {{}, part_of(classes, 1), part_of(values, width), static_cast<std::int64_t>(size)}, part);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<double>(part[i]);
  }
  return sums;
}

/// The only metric of `text`, of all records together.
double measure(const std::string& text, const floats& outputs, const labels& classes, const floats& values,
               std::size_t records) {
  const auto metrics = metrics_of(text, static_cast<std::int64_t>(outputs.size() / records));
  return metrics.values(sums_of(metrics, outputs, classes, values, records, records)).at(0).second;
}

// ---- the set

TEST(metrics, the_default_goes_with_the_loss_and_needs_no_larger_tensor_than_ever) {
  EXPECT_THAT(metrics_of("", 10).names(), ElementsAre("accuracy"));
  EXPECT_THAT(metrics_of(bce, 1).names(), ElementsAre("accuracy"));
  EXPECT_THAT(metrics_of(mse, 3).names(), ElementsAre("mae"));
  EXPECT_EQ(testing::build_model("input: [4] layers { relu {} }")->layout().metrics().size, 16U);
}

TEST(metrics, are_named_in_the_order_of_the_specification) {
  const auto metrics = metrics_of(
      "metrics { top_k {} } metrics { recall {} } metrics { accuracy {} } metrics { top_k { k: 2 } }", 9);
  EXPECT_THAT(metrics.names(), ElementsAre("top5", "recall", "accuracy", "top2"));
  EXPECT_EQ(metrics.floats(), 2U + 27U + 2U + 2U);
}

TEST(metrics, of_nothing_are_not_a_number) {
  const auto metrics = metrics_of(bce + "metrics { accuracy {} } metrics { auc {} } metrics { precision {} } "
                                        "metrics { mae {} }",
                                  2);
  for (const auto& sums : {std::vector<double>(metrics.floats()), std::vector<double>{}})
    for (const auto& [name, value] : metrics.values(sums)) EXPECT_TRUE(std::isnan(value)) << name;
}

TEST(metrics, of_parts_add_up_to_those_of_the_whole) {
  const auto metrics =
      metrics_of("metrics { accuracy {} } metrics { top_k { k: 3 } } metrics { precision {} } "
                 "metrics { recall {} }",
                 7);
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  floats scores(500 * 7);
  labels classes(500);
  for (auto& one : scores) one = normal(random);
  for (auto& one : classes) one = static_cast<std::int32_t>(random() % 7);
  const auto whole = sums_of(metrics, scores, classes, {}, 500, 500);
  for (const std::size_t microbatch : {1, 7, 64})
    EXPECT_EQ(sums_of(metrics, scores, classes, {}, 500, microbatch), whole);
}

TEST(metrics, large_ones_get_room_in_the_layout_behind_loss_and_records) {
  const auto m = testing::build_model("input: [4] layers { linear { out_features: 2 } } metrics { auc { "
                                      "bins: 100 } } metrics { accuracy {} }");
  EXPECT_EQ(m->metrics().floats(), 202U);
  EXPECT_EQ(m->layout().metrics().size, 208U);
}

// ---- accuracy, top_k

TEST(metrics, accuracy_is_the_share_of_the_greatest_scores_the_first_of_equals) {
  EXPECT_EQ(measure("", {1, 2, 3, 0, 0, 0, 5, 1, 5, 9, 1, 1}, {2, 1, 0, 0}, {}, 4), 0.75);
}

TEST(metrics, a_score_that_is_no_number_is_no_hit) {
  const float bad[] = {std::nanf(""), std::numeric_limits<float>::infinity()};
  for (const float one : bad)
    for (std::size_t place = 0; place < 3; ++place)
      for (const std::int32_t label : {0, 1, 2}) {
        floats scores{1, 1, 1};
        scores[place] = one;
        EXPECT_EQ(measure("", scores, {label}, {}, 1), 0.0);
        EXPECT_EQ(measure("metrics { top_k { k: 3 } }", scores, {label}, {}, 1), 0.0);
      }
  const float never = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(measure("", {never, never}, {0}, {}, 1), 0.0);
  EXPECT_EQ(measure("", {never, 0}, {1}, {}, 1), 1.0);
}

TEST(metrics, top_k_is_accuracy_among_the_k_greatest_by_sorting) {
  std::mt19937 random(6);
  floats scores(200 * 9);
  labels classes(200);
  for (auto& one : scores) one = static_cast<float>(random() % 20); // with equals
  for (auto& one : classes) one = static_cast<std::int32_t>(random() % 9);
  for (const std::size_t k : {1, 2, 5, 9}) {
    int hits = 0;
    for (std::size_t r = 0; r < 200; ++r) {
      std::vector<std::int32_t> order{0, 1, 2, 3, 4, 5, 6, 7, 8};
      std::ranges::stable_sort(order, std::greater{},
                               [&](std::int32_t c) { return scores[r * 9 + static_cast<std::size_t>(c)]; });
      hits += static_cast<int>(
          std::count(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k), classes[r]));
    }
    EXPECT_EQ(measure("metrics { top_k { k: " + std::to_string(k) + " } }", scores, classes, {}, 200),
              hits / 200.0);
  }
}

TEST(metrics, accuracy_of_yes_or_no_counts_every_output) {
  EXPECT_EQ(measure(bce, {1, -1, 0, 2, -3, std::nanf("")}, {}, {1, 0, 1, 1, 0.5F, 0}, 3), 4.0 / 6);
}

// ---- auc

struct yes_and_no {
  floats logits, yes;

  yes_and_no(std::size_t size, float distance, float spread) {
    std::mt19937 random(8);
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < size; ++i) {
      yes.push_back(random() % 3 == 0 ? 1.0F : 0.0F);
      logits.push_back(spread * normal(random) + distance * yes.back());
    }
  }

  /// Calls visit(logit of a yes, logit of a no) for every pair, and counts them.
  double pairs(const auto& visit) const {
    double count = 0;
    for (std::size_t i = 0; i < yes.size(); ++i)
      for (std::size_t k = 0; k < yes.size(); ++k)
        if (yes[i] == 1 && yes[k] == 0) {
          visit(logits[i], logits[k]);
          ++count;
        }
    return count;
  }
  double exact() const {
    double ordered = 0;
    const double count = pairs([&](float a, float b) { ordered += a > b ? 1 : a == b ? 0.5 : 0; });
    return ordered / count;
  }
  double in_one_step(float width) const {
    double together = 0;
    const double count =
        pairs([&](float a, float b) { together += std::floor(a / width) == std::floor(b / width); });
    return together / count;
  }
};

TEST(metrics, auc_is_the_rank_statistic_within_half_the_share_of_pairs_in_one_step) {
  for (const auto& [distance, spread] : {std::pair{0.0F, 1.0F}, {1.5F, 2.0F}, {4.0F, 1.0F}, {0.3F, 0.2F}}) {
    const yes_and_no data(1500, distance, spread);
    for (const int bins : {64, 512, 2048}) {
      const double found = measure(bce + "metrics { auc { bins: " + std::to_string(bins) + " } }",
                                   data.logits, {}, data.yes, data.yes.size());
      const double stated = data.in_one_step(32.0F / static_cast<float>(bins)) / 2;
      EXPECT_NEAR(found, data.exact(), stated + 1e-12) << distance << " " << spread << " " << bins;
      if (bins == 512 && spread > 0.5F) {
        EXPECT_NEAR(found, data.exact(), 1e-3);
      }
    }
  }
}

TEST(metrics, auc_of_scores_on_the_steps_is_exact) {
  const floats logits{-20, -1, -1, 0, 1, 1, 40}, yes{0, 0, 1, 0, 1, 0, 1};
  const double pairs = 3 * 4;
  EXPECT_DOUBLE_EQ(measure(bce + "metrics { auc {} }", logits, {}, yes, 7), (1.5 + 3.5 + 4) / pairs);
}

TEST(metrics, auc_of_two_classes_ranks_by_the_difference_of_their_scores) {
  const yes_and_no data(400, 1, 2);
  floats scores;
  labels classes;
  for (std::size_t i = 0; i < data.yes.size(); ++i) {
    scores.push_back(0);
    scores.push_back(data.logits[i]);
    classes.push_back(data.yes[i] == 1 ? 1 : 0);
  }
  EXPECT_EQ(measure("metrics { auc {} }", scores, classes, {}, 400),
            measure(bce + "metrics { auc {} }", data.logits, {}, data.yes, 400));
}

TEST(metrics, auc_of_several_outputs_is_the_mean_over_those_that_have_both) {
  const floats logits{-1, 5, 0, 1, 6, 0}, yes{0, 1, 0, 1, 1, 1};
  EXPECT_EQ(measure(bce + "metrics { auc {} }", logits, {}, yes, 2), (1 + 0.5) / 2);
}

TEST(metrics, auc_ranks_what_is_not_a_number_as_wrong) {
  EXPECT_EQ(measure(bce + "metrics { auc {} }", {std::nanf(""), 0}, {}, {1, 0}, 2), 0.0);
  EXPECT_EQ(measure(bce + "metrics { auc {} }", {std::nanf(""), 0}, {}, {0, 1}, 2), 0.0);
}

// ---- precision, recall

/// scikit-learn's precision_score and recall_score with average="macro", over the classes that
/// occur.
std::pair<double, double> macro(const labels& predicted, const labels& actual, std::int32_t classes) {
  double precision = 0, recall = 0, occurring = 0;
  for (std::int32_t c = 0; c < classes; ++c) {
    double hits = 0;
    for (std::size_t i = 0; i < actual.size(); ++i) hits += predicted[i] == c && actual[i] == c;
    const auto chosen = static_cast<double>(std::ranges::count(predicted, c));
    const auto there = static_cast<double>(std::ranges::count(actual, c));
    if (chosen + there == 0) continue;
    precision += chosen == 0 ? 0 : hits / chosen;
    recall += there == 0 ? 0 : hits / there;
    ++occurring;
  }
  return {precision / occurring, recall / occurring};
}

TEST(metrics, precision_and_recall_are_means_over_the_classes_that_occur) {
  std::mt19937 random(9);
  labels predicted(300), actual(300);
  floats scores(300 * 6);
  for (std::size_t i = 0; i < 300; ++i) {
    predicted[i] = static_cast<std::int32_t>(random() % 4); // 4 is never predicted, 5 never occurs
    actual[i] = random() % 2 ? predicted[i] : static_cast<std::int32_t>(1 + random() % 4);
    scores[i * 6 + static_cast<std::size_t>(predicted[i])] = 1;
  }
  const auto [precision, recall] = macro(predicted, actual, 6);
  EXPECT_NEAR(measure("metrics { precision {} }", scores, actual, {}, 300), precision, 1e-12);
  EXPECT_NEAR(measure("metrics { recall {} }", scores, actual, {}, 300), recall, 1e-12);
}

TEST(metrics, precision_and_recall_of_two_classes_are_those_of_the_second) {
  const floats scores{0, 1, 0, 1, 0, 1, 1, 0, 1, 0}; // predicted 1 1 1 0 0
  const labels actual{1, 0, 1, 1, 0};
  EXPECT_DOUBLE_EQ(measure("metrics { precision {} }", scores, actual, {}, 5), 2.0 / 3);
  EXPECT_DOUBLE_EQ(measure("metrics { recall {} }", scores, actual, {}, 5), 2.0 / 3);
  EXPECT_EQ(measure("metrics { precision {} }", {1, 0}, {1}, {}, 1), 0.0) << "nothing is predicted";
}

TEST(metrics, precision_and_recall_of_outputs_go_by_the_threshold) {
  const floats logits{2, 0.5F, -1, std::nanf("")}, yes{1, 0, 1, 1};
  EXPECT_EQ(measure(bce + "metrics { precision {} }", logits, {}, yes, 4), 0.5);
  EXPECT_DOUBLE_EQ(measure(bce + "metrics { recall {} }", logits, {}, yes, 4), 1.0 / 3);
  EXPECT_EQ(measure(bce + "metrics { precision { threshold: 0.8 } }", logits, {}, yes, 4), 1.0); // logit 1.39
  EXPECT_DOUBLE_EQ(measure(bce + "metrics { recall { threshold: 0.2 } }", logits, {}, yes, 4), 2.0 / 3);
  EXPECT_DOUBLE_EQ(measure(bce + "metrics { recall {} }", logits, {}, yes, 2), 0.25)
      << "of two outputs, the mean";
}

// ---- mae

TEST(metrics, mae_is_the_mean_distance_of_every_value) {
  EXPECT_EQ(measure(mse, {1, 2, -3, 0}, {}, {0, 2, 0, 4}, 2), 2.0);
  EXPECT_NEAR(measure(bce + "metrics { mae {} }", {0, 100}, {}, {1, 0}, 2), 0.75, 1e-7);
}

// ---- refusals

TEST(metrics, what_cannot_be_measured_is_refused_with_what_can) {
  EXPECT_THAT(refusal("metrics { mae {} }", 3),
              AllOf(HasSubstr("metric mae"), HasSubstr("cross_entropy"), HasSubstr("accuracy")));
  EXPECT_THAT(refusal(mse + "metrics { accuracy {} }", 3),
              AllOf(HasSubstr("loss mse"), HasSubstr("mae can")));
  EXPECT_THAT(refusal(mse + "metrics { auc {} }", 3), HasSubstr("mae can"));
  EXPECT_THAT(refusal(mse + "metrics { recall {} }", 3), HasSubstr("metric recall"));
  EXPECT_THAT(refusal(bce + "metrics { top_k {} }", 3), HasSubstr("accuracy or auc can"));
  EXPECT_THAT(refusal("metrics { auc {} }", 3), AllOf(HasSubstr("3 classes"), HasSubstr("bce_with_logits")));
}

TEST(metrics, arguments_that_do_not_fit_are_refused) {
  EXPECT_THAT(refusal("metrics { top_k {} }", 3), AllOf(HasSubstr("k 5"), HasSubstr("3 classes")));
  EXPECT_THAT(refusal("metrics { top_k { k: 0 } }", 3), HasSubstr("k 0"));
  EXPECT_THAT(refusal("metrics { auc { bins: 1 } }", 2), HasSubstr("bins 1"));
  EXPECT_THAT(refusal("metrics { precision { threshold: 0.3 } }", 3), HasSubstr("bce_with_logits"));
  EXPECT_THAT(refusal(bce + "metrics { precision { threshold: 1 } }", 1), HasSubstr("threshold 1"));
  EXPECT_THAT(refusal("metrics { top_k { k: 2 } } metrics { top_k { k: 2 } }", 3),
              AllOf(HasSubstr("metric top2"), HasSubstr("twice")));
  EXPECT_THAT(refusal("metrics { }", 3), HasSubstr("no kind"));
}

TEST(metrics, more_sums_than_messages_carry_are_refused) {
  EXPECT_EQ(metrics_of(bce + "metrics { auc {} }", 4).floats(), parameter_layout::metric_floats_max);
  EXPECT_THAT(refusal(bce + "metrics { auc {} }", 5), AllOf(HasSubstr("5120"), HasSubstr("at most 4096")));
  EXPECT_THAT(refusal("metrics { precision {} }", 65536), HasSubstr("196608"));
}

} // namespace
} // namespace dlrun::engine
