#include "actors/ps_shard/initial_values.hpp"

#include "actors/ps_shard/shard_parameters.hpp"
#include "tests/actors/small_job.hpp"
#include "tests/data/files.hpp"
#include "weights/model_weights.hpp"
#include "weights/safetensors_writer.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>

namespace dlrun::ps_shard {
namespace {

using testing::HasSubstr;

class initial_values_test : public testing::Test {
protected:
  /// The flat vector that all shards of a job begin with.
  static std::vector<float> start_of(const common::job_context& job) {
    std::vector<float> flat(job.model->layout().flat_size());
    for (const auto& range : job.shards)
      EXPECT_TRUE(initial_values(job, range, std::span{flat}.subspan(range.offset, range.size)));
    return flat;
  }
  std::shared_ptr<const common::job_context> job(std::vector<std::string> overrides = {}) const {
    overrides.push_back("cluster.ps_shards=2");
    return test::small_job(folder.path(), overrides);
  }
  /// Weights that no initialiser makes.
  std::vector<float> write_weights() const {
    const auto& layout = plain->model->layout();
    std::vector<float> flat(layout.flat_size());
    for (const auto& tensor : layout.tensors())
      for (std::uint64_t i = 0; i < tensor.size && tensor.kind != tensor_kind::metric; ++i)
        flat[tensor.offset + i] = 100.0F + static_cast<float>(i);
    EXPECT_TRUE(weights::write_weights(file, layout, flat, 5, {}));
    return flat;
  }

  test::temporary_folder folder;
  std::filesystem::path file = folder.path() / "w.safetensors";
  std::string init_from = "train.init_from=" + file.string();
  std::shared_ptr<const common::job_context> plain = job();
};

TEST_F(initial_values_test, are_those_of_the_seed_for_any_number_of_shards) {
  std::vector<float> whole(plain->model->layout().flat_size());
  plain->model->initialise(plain->spec.train().seed(), whole);
  EXPECT_EQ(start_of(*plain), whole);
}

TEST_F(initial_values_test, are_those_of_the_file_where_one_is_named) {
  const auto written = write_weights();
  EXPECT_EQ(start_of(*job({init_from})), written);
}

/// What the root opened counts, whatever lies under the name by now.
TEST_F(initial_values_test, come_from_the_descriptor_that_was_inherited) {
  const auto written = write_weights();
  const auto opened = std::make_shared<const base::unique_fd>(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  std::filesystem::remove(file);
  const auto spec = job({init_from})->spec;
  const auto context =
      common::make_job_context({.spec = spec, .train_records = 10, .initial_weights = opened}).value();
  EXPECT_EQ(start_of(*context), written);
}

TEST_F(initial_values_test, of_a_part_the_rest_is_of_the_seed) {
  const std::vector<float> bias(20, 7.0F);
  const weights::written_tensor one{"linear0.bias", "F32", {20}, std::as_bytes(std::span{bias})};
  ASSERT_TRUE(weights::write_safetensors(file, std::span{&one, 1}, {}));
  const auto start = start_of(*job({init_from, "train.init_strict=false"}));
  const auto seeded = start_of(*plain);
  const auto* const tensor = plain->model->layout().find("linear0.bias");
  EXPECT_EQ(start[tensor->offset], 7.0F);
  EXPECT_EQ(start.front(), seeded.front());
  EXPECT_FALSE(shard_parameters::create(job({init_from}), {0}));
}

TEST_F(initial_values_test, without_the_file_nothing_begins) {
  const auto made = shard_parameters::create(job({init_from}), {0});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, error_code::bad_data);
  EXPECT_THAT(made.error().message, HasSubstr(file.string()));
  auto empty = shard_parameters::create_empty(job({init_from}), {0});
  ASSERT_TRUE(empty) << "what is loaded from a store needs no file";
  EXPECT_FALSE(empty->reset({0}));
}

} // namespace
} // namespace dlrun::ps_shard
