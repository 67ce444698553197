#include "runtime/device_choice.hpp"

#include "job/spec_reader.hpp"
#include "runtime/new_run.hpp"
#include "runtime/resumption.hpp"
#include "tests/kernels_cuda/modules/fake_modules.hpp"
#include "tests/runtime/small_training.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::runtime {
namespace {

using kernels::cuda::device_properties;
using test::fake_module;
using test::named_module;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

spec::JobSpec spec_with(const std::vector<std::string>& overrides) {
  const test::small_training small;
  return small.job(overrides).message();
}

/// Of these GPUs those that a job with `overrides` uses, or what is said.
result<std::vector<int>> chosen(const std::vector<device_properties>& there,
                                const std::vector<std::string>& overrides = {}) {
  return choose_gpus(spec_with(overrides), there);
}

const device_properties hopper{
    .name = "H100", .compute_capability = 90, .multiprocessors = 132, .libraries = "CUDA 13"};
const device_properties turing{
    .name = "T4", .compute_capability = 75, .multiprocessors = 40, .libraries = "CUDA 13"};

TEST(device_choice, is_every_gpu_where_none_is_named) {
  EXPECT_THAT(*chosen({hopper, hopper, hopper}), ElementsAre(0, 1, 2));
}

TEST(device_choice, is_the_gpus_that_are_named_in_their_order) {
  EXPECT_THAT(*chosen({hopper, turing, hopper}, {"cluster.gpus=[2, 0]"}), ElementsAre(2, 0));
  EXPECT_THAT(*chosen({hopper, hopper}, {"cluster.gpus=1"}), ElementsAre(1));
}

TEST(device_choice, refuses_a_gpu_that_is_not_there) {
  const auto none = chosen({hopper, hopper}, {"cluster.gpus=[0, 7]"});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, error_code::bad_usage);
  EXPECT_THAT(none.error().message,
              AllOf(HasSubstr("there is no GPU 7: the host has 2"), HasSubstr("nvidia-smi -L")));
}

TEST(device_choice, refuses_a_gpu_that_is_too_old) {
  const auto none = chosen({hopper, turing}, {"cluster.gpus=1"});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message,
              HasSubstr("GPU 1, 'T4', is too old: it has the compute capability 7.5, and 8.0"));
}

TEST(device_choice, refuses_gpus_of_two_models) {
  auto other = hopper;
  other.multiprocessors = 114;
  const auto none = chosen({hopper, other});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message,
              AllOf(HasSubstr("GPU 0, 'H100' with 132 multiprocessors, and GPU 1, 'H100' with 114, would"),
                    HasSubstr("name GPUs of one model in cluster.gpus")));
  EXPECT_TRUE(chosen({hopper, other}, {"cluster.gpus=1"}));
}

TEST(device_choice, refuses_a_host_without_gpus) {
  EXPECT_THAT(chosen({}).error().message, HasSubstr("has no GPU"));
}

TEST(device_choice, gives_workers_the_gpus_one_after_the_other_and_again) {
  const named_module named{fake_module("two_gpus")};
  const auto gpus = open_gpus(spec_with({"cluster.device=cuda", "cluster.gpus=[1, 0]"}));
  ASSERT_TRUE(gpus) << gpus.error().message;
  EXPECT_EQ(gpus->place_of({0}, 1).gpu, 1);
  EXPECT_EQ(gpus->place_of({1}, 1).gpu, 0);
  EXPECT_EQ(gpus->place_of({2}, 1).gpu, 1);
  EXPECT_NE(gpus->place_of({0}, 1).cuda, nullptr);
  EXPECT_EQ(engine::gpu_set{}.place_of({2}, 3).cuda, nullptr);
  EXPECT_EQ(engine::gpu_set{}.place_of({2}, 3).threads, 3);
}

TEST(device_choice, gives_each_gpu_the_precision_of_the_job) {
  using kernels::cuda::precision;
  const named_module named{fake_module("two_gpus")};
  for (const auto& [name, arithmetic] :
       {std::pair("fp32", precision::fp32), std::pair("tf32", precision::tf32),
        std::pair("bf16", precision::bf16)}) {
    const auto spec = spec_with({"cluster.device=cuda", std::string{"train.precision="} + name});
    EXPECT_EQ(open_gpus(spec)->place_of({1}, 1).arithmetic, arithmetic);
    EXPECT_EQ(open_gpu(spec, 1)->place_of({0}, 1).arithmetic, arithmetic);
  }
}

TEST(device_choice, refuses_an_environment_that_overrides_the_precision) {
  const auto fp32 = spec_with({}), tf32 = spec_with({"train.precision=tf32"});
  for (const auto* unset_or_0 : {"", "0"}) {
    EXPECT_TRUE(check_override(fp32, unset_or_0));
    EXPECT_TRUE(check_override(spec_with({"train.precision=bf16"}), unset_or_0));
  }
  for (const auto* unset_or_1 : {"", "1"}) EXPECT_TRUE(check_override(tf32, unset_or_1));
  const auto left_out = check_override(tf32, "0"), unasked = check_override(fp32, "1");
  ASSERT_FALSE(left_out);
  ASSERT_FALSE(unasked);
  EXPECT_EQ(left_out.error().code, error_code::bad_usage);
  EXPECT_THAT(left_out.error().message, HasSubstr("NVIDIA_TF32_OVERRIDE=0, with which GPUs do not compute in "
                                                  "TF32, and train.precision is tf32: unset it"));
  EXPECT_THAT(unasked.error().message, HasSubstr("NVIDIA_TF32_OVERRIDE=1, with which GPUs compute in TF32, "
                                                 "and train.precision is fp32: unset it"));
}

/// What begins and goes on, with the module that the environment names.
class settled_device : public testing::Test {
protected:
  prepared_job job_with(const std::vector<std::string>& overrides) const {
    auto job = prepare_new_job(small.job(overrides).message());
    EXPECT_TRUE(job) << (job ? "" : job.error().message);
    return std::move(*job);
  }
  /// @returns what is said where a run with these is refused; nothing is left of it.
  std::string refusal(const std::vector<std::string>& overrides) const {
    auto job = job_with(overrides);
    const auto run = begin_run(job, small.run_dir().string());
    if (run) return "it began";
    EXPECT_EQ(run.error().code, error_code::bad_usage);
    EXPECT_FALSE(std::filesystem::exists(small.run_dir()));
    return run.error().message;
  }
  /// A run that was begun with these, and is not running.
  void begin(const std::vector<std::string>& overrides) const {
    auto job = job_with(overrides);
    const auto run = begin_run(job, small.run_dir().string());
    ASSERT_TRUE(run) << run.error().message;
  }
  /// The device of that run when it is gone on with, or what is said.
  std::string resumed(const std::vector<std::string>& overrides = {}) const {
    const auto made = prepare_resumption(small.run_dir(), {.overrides = overrides});
    return made ? made->job->spec.cluster().device() : made.error().message;
  }

  test::small_training small;
};

TEST_F(settled_device, auto_is_cuda_where_there_is_a_gpu_and_the_specification_says_so) {
  const named_module named{fake_module("two_gpus")};
  auto job = job_with({});
  const auto choice = settle_device(job);
  ASSERT_TRUE(choice) << choice.error().message;
  ASSERT_TRUE(*choice);
  EXPECT_EQ((*choice)->device, "cuda");
  EXPECT_EQ((*choice)->reason, "GPUs 0, 1, Fake GPU (Fake CUDA 1.0)");
  EXPECT_EQ(job.spec.cluster().device(), "cuda");
  EXPECT_THAT(job.gpus.numbers, ElementsAre(0, 1));
}

TEST_F(settled_device, auto_is_cpu_with_the_reason_elsewhere) {
  for (const auto& [module, why] :
       {std::pair("absent", "there is no CUDA module"), std::pair("no_driver", "there is no NVIDIA driver"),
        std::pair("no_gpu", "has no GPU"), std::pair("old_gpus", "is too old"),
        std::pair("needy", "libdlrun_fake_absent.so: cannot open"),
        std::pair("other_build", "of another build"),
        std::pair("mixed_gpus", "would not compute the same bits")}) {
    const named_module named{fake_module(module)};
    auto job = job_with({});
    const auto choice = settle_device(job);
    ASSERT_TRUE(choice && *choice) << module;
    EXPECT_EQ((*choice)->device, "cpu") << module;
    EXPECT_THAT((*choice)->reason, HasSubstr(why));
    EXPECT_EQ(job.spec.cluster().device(), "cpu");
    EXPECT_EQ(job.gpus.cuda, nullptr);
  }
}

TEST_F(settled_device, cpu_looks_for_nothing) {
  const named_module named{fake_module("two_gpus")};
  auto job = job_with({"cluster.device=cpu"});
  const auto choice = settle_device(job);
  ASSERT_TRUE(choice);
  EXPECT_FALSE(*choice);
  EXPECT_EQ(job.gpus.cuda, nullptr);
}

TEST_F(settled_device, cuda_is_refused_before_anything_is_made_where_there_is_none) {
  for (const auto& [module, why] :
       {std::pair("absent", "there is no CUDA module"), std::pair("no_driver", "there is no NVIDIA driver"),
        std::pair("no_gpu", "has no GPU"), std::pair("no_entry", "is no CUDA module of dlrun")}) {
    const named_module named{fake_module(module)};
    EXPECT_THAT(refusal({"cluster.device=cuda"}),
                AllOf(HasSubstr(why), HasSubstr("; or set cluster.device: cpu")));
  }
}

/// As the list of hosts says, whatever this machine has.
TEST_F(settled_device, a_root_without_gpus_leaves_them_to_its_hosts_and_settles_no_auto) {
  for (const auto* module : {"absent", "two_gpus"}) {
    const named_module named{fake_module(module)};
    auto job = job_with({"cluster.device=cuda", "cluster.gpus=7"});
    const auto choice = settle_device(job, false);
    ASSERT_TRUE(choice) << choice.error().message;
    EXPECT_FALSE(*choice);
    EXPECT_EQ(job.gpus.cuda, nullptr);
    EXPECT_TRUE(settle_device_again(job, false));
    EXPECT_EQ(job.gpus.cuda, nullptr);
    auto open = job_with({});
    const auto refused = settle_device(open, false);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, error_code::bad_usage);
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr("cluster.device"), HasSubstr("gpus: none"),
                                               HasSubstr("let it be \"cuda\" or \"cpu\"")));
  }
}

TEST_F(settled_device, gpus_that_are_named_are_wanted_even_by_auto) {
  {
    const named_module named{fake_module("absent")};
    EXPECT_THAT(refusal({"cluster.gpus=0"}),
                AllOf(HasSubstr("there is no CUDA module"), HasSubstr("leave cluster.gpus out")));
  }
  const named_module named{fake_module("two_gpus")};
  EXPECT_THAT(refusal({"cluster.gpus=7"}), HasSubstr("there is no GPU 7"));
  EXPECT_THAT(refusal({"cluster.gpus=7", "cluster.device=cuda"}), HasSubstr("there is no GPU 7"));
}

TEST_F(settled_device, tf32_is_not_for_processors_even_by_auto) {
  for (const auto& [module, why] :
       {std::pair("absent", "there is no CUDA module"), std::pair("no_driver", "there is no NVIDIA driver"),
        std::pair("no_gpu", "has no GPU"), std::pair("old_gpus", "is too old")}) {
    const named_module named{fake_module(module)};
    EXPECT_THAT(refusal({"train.precision=tf32"}),
                AllOf(HasSubstr(why), EndsWith("; or set train.precision: fp32")));
  }
  const named_module named{fake_module("no_gpu")};
  EXPECT_THAT(refusal({"train.precision=tf32", "cluster.device=cuda"}),
              EndsWith("; or set cluster.device: cpu and set train.precision: fp32"));
  EXPECT_THAT(refusal({"train.precision=tf32", "cluster.gpus=0"}),
              EndsWith("; or leave cluster.gpus out and set train.precision: fp32"));
}

TEST_F(settled_device, is_kept_when_the_run_goes_on_with_another_module_or_none) {
  {
    const named_module named{fake_module("no_driver")};
    begin({});
  }
  const named_module named{fake_module("two_gpus")};
  EXPECT_EQ(resumed(), "cpu");
  EXPECT_EQ(resumed({"cluster.device=auto"}), "cpu");
  EXPECT_THAT(resumed({"cluster.device=cuda"}), HasSubstr("cluster.device: cpu -> cuda"));
}

TEST_F(settled_device, of_a_run_that_goes_on_must_be_there_again) {
  {
    const named_module named{fake_module("two_gpus")};
    begin({"cluster.device=cuda"});
    EXPECT_EQ(resumed(), "cuda");
    EXPECT_THAT(resumed({"cluster.device=cpu"}), HasSubstr("cluster.device: cuda -> cpu"));
    EXPECT_EQ(resumed({"cluster.gpus=1"}), "cuda");
    EXPECT_THAT(resumed({"cluster.gpus=7"}), HasSubstr("there is no GPU 7"));
    EXPECT_THAT(resumed({"train.precision=tf32"}), HasSubstr("train.precision: fp32 -> tf32"));
  }
  const named_module named{fake_module("no_driver")};
  EXPECT_THAT(resumed(),
              AllOf(HasSubstr("there is no NVIDIA driver"), HasSubstr("train again in another folder")));
}

} // namespace
} // namespace dlrun::runtime
