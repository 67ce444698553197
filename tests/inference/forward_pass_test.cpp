#include "inference/forward_pass.hpp"

#include "engine/network.hpp"
#include "inference/evaluation_data.hpp"
#include "inference/model_data.hpp"
#include "job/spec_reader.hpp"
#include "kernels/cuda/stand_in/stand_in_device.hpp"
#include "tests/data/files.hpp"

#include <fstream>
#include <gmock/gmock.h>

namespace dlrun::inference {
namespace {

constexpr std::uint32_t record_count = 23; // in microbatches of 4: the last one has 3

/// A model with running statistics, at its initial values, and records for it.
class forward_pass_test : public testing::Test {
protected:
  forward_pass_test() {
    folder.write("images", test::idx_bytes({record_count, 2, 2}, test::counting(record_count * 4)));
    test::bytes classes(record_count);
    for (std::uint32_t i = 0; i < record_count; ++i) classes[i] = static_cast<std::uint8_t>(i % 3);
    folder.write("labels", test::idx_bytes({record_count}, classes));
    std::ofstream(folder.path() / "job.yaml") << text;
    spec = job::read_spec(folder.path() / "job.yaml").value();
    model = engine::model::build(spec.model()).value();
    parameters.resize(model->layout().flat_size());
    model->initialise(3, parameters);
    data = open_evaluation({spec, spec, model, parameters}).value().records;
    input = open_input(spec, false, *model, folder.path() / "images").value().records;
  }
  forward_pass pass(std::size_t at_once) const { return {model, options_from(spec, at_once)}; }
  std::vector<float> outputs(std::size_t at_once) const {
    std::vector<float> all;
    const auto done = pass(at_once).predict<std::vector<float>>(
        parameters, records_of(*input),
        [](auto, std::span<const float> some) {
          return std::vector<float>{some.begin(), some.end()};
        },
        [&](std::vector<float>&& some) -> result<void> {
          all.insert(all.end(), some.begin(), some.end());
          return {};
        });
    EXPECT_TRUE(done);
    return all;
  }

  test::temporary_folder folder;
  std::string text =
      R"(model: {input: [4], layers: [{linear: {out_features: 5}}, batch_norm, relu, {linear: {out_features: 3}}]}
data:
  train: {records: images, labels: labels, normalize: {mean: 0.5, std: 0.25}}
  validation: {records: images, labels: labels, normalize: {mean: 0.5, std: 0.25}}
train: {microbatch_size: 4, optimizer: {sgd: {lr: 0.1}}}
)";
  spec::JobSpec spec;
  std::shared_ptr<const engine::model> model;
  std::vector<float> parameters;
  std::shared_ptr<const data::dataset> data, input; ///< with targets and without
};

TEST_F(forward_pass_test, computes_on_the_gpu_that_it_is_told_to) {
  kernels::cuda::stand_in_module module{{.devices = 2}};
  auto options = options_from(spec);
  const auto here = forward_pass{model, options}.evaluate(parameters, *data);
  options.place = {.threads = 1, .cuda = &module, .gpu = 1};
  const auto there = forward_pass{model, options}.evaluate(parameters, *data);
  ASSERT_TRUE(here && there);
  EXPECT_NEAR(here->loss_sum, there->loss_sum, 1e-4);
  EXPECT_EQ(there->records, record_count);
  options.place.gpu = 2;
  const auto nowhere = forward_pass{model, options}.evaluate(parameters, *data);
  EXPECT_FALSE(nowhere) << "there is no such GPU";
}

TEST_F(forward_pass_test, adds_up_microbatch_by_microbatch_in_double_precision) {
  engine::network network{model, 1};
  const data::validation_sampler order{record_count, 4};
  double loss = 0, correct = 0;
  for (std::uint64_t slot = 0; slot < order.slots(); ++slot) {
    std::vector<std::uint64_t> indices;
    order.records(slot, indices);
    std::vector<float> floats(indices.size() * 4), metrics(model->layout().metrics().size);
    std::vector<std::int32_t> classes(indices.size());
    ASSERT_TRUE(data->read(indices, floats, {.classes = classes, .values = {}}));
    ASSERT_TRUE(network.evaluate(parameters, {floats, classes, {}, static_cast<std::int64_t>(indices.size())},
                                 metrics));
    loss += static_cast<double>(metrics[engine::parameter_layout::loss_sum]);
    correct += static_cast<double>(metrics[engine::parameter_layout::first_metric]);
  }
  for (const std::size_t at_once : {1U, 2U, 5U}) {
    const auto found = pass(at_once).evaluate(parameters, *data);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->loss_sum, loss);
    EXPECT_EQ(found->mean_loss(), loss / record_count);
    EXPECT_EQ(found->metrics, (named_values{{"accuracy", correct / record_count}}));
    EXPECT_EQ(found->records, record_count);
  }
}

TEST_F(forward_pass_test, gives_outputs_in_the_order_of_the_records_however_many_compute) {
  const auto all = outputs(1);
  EXPECT_EQ(all.size(), record_count * 3);
  EXPECT_EQ(outputs(2), all);
  EXPECT_EQ(outputs(9), all);
  engine::network network{model, 1};
  // The last microbatch.
  std::vector<float> last(3 * 4), expected(3 * 3);
  const std::vector<std::uint64_t> places{record_count - 3, record_count - 2, record_count - 1};
  ASSERT_TRUE(input->read(places, last, {}));
  ASSERT_TRUE(network.predict(parameters, last, 3, expected));
  EXPECT_TRUE(std::ranges::equal(std::span{all}.last(9), expected));
}

TEST_F(forward_pass_test, a_second_pass_gives_what_the_first_gave) {
  auto both = pass(2);
  EXPECT_EQ(both.evaluate(parameters, *data)->loss_sum, both.evaluate(parameters, *data)->loss_sum);
}

TEST_F(forward_pass_test, ends_when_it_is_cancelled) {
  const std::atomic<bool> cancelled = true;
  for (const std::size_t at_once : {1U, 3U}) {
    const auto found = pass(at_once).evaluate(parameters, *data, &cancelled);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, error_code::interrupted);
  }
}

TEST_F(forward_pass_test, what_cannot_be_read_ends_it) {
  const record_source broken{record_count, [](auto, auto) -> result<void> {
                               return fail(error_code::bad_data, "the file was changed");
                             }};
  const auto done = pass(2).predict<int>(
      parameters, broken, [](auto, auto) { return 0; }, [](int&&) -> result<void> { return {}; });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "the file was changed");
}

} // namespace
} // namespace dlrun::inference
