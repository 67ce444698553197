#include "tests/engine/loss_curve.hpp"

#include "actors/protocol/reduction_tree.hpp"
#include "job/spec_reader.hpp"
#include "kernels/cpu/reduce.hpp"

#include <dlrun/check.hpp>
#include <fmt/format.h>
#include <fstream>

namespace dlrun::engine::testing {
namespace {

template <class Value>
void write_raw(const std::filesystem::path& file, const std::vector<Value>& values) {
  std::ofstream out(file, std::ios::binary);
  out.write(reinterpret_cast<const char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(Value)));
}

} // namespace

result<std::unique_ptr<loss_curve>> loss_curve::open(const std::filesystem::path& source_dir,
                                                     const std::string& example,
                                                     std::span<const std::string> overrides) {
  auto spec = job::read_spec(source_dir / "examples/fashion_mnist" / (example + ".yaml"), overrides);
  if (!spec) return tl::unexpected(spec.error());
  auto made = model::build(spec->model());
  if (!made) return tl::unexpected(made.error());
  auto rule = optimizer::build(spec->train().optimizer());
  if (!rule) return tl::unexpected(rule.error());
  const auto decoded =
      data::decode_job_data(*spec->mutable_data(), spec->train().seed(), target_kind::classes);
  if (!decoded) return tl::unexpected(decoded.error());
  auto records = data::open_part(*decoded, spec->data(), spec->train().seed(), data::data_part::training);
  if (!records) return tl::unexpected(records.error());
  return std::unique_ptr<loss_curve>(
      new loss_curve(example, *spec, std::move(*made), *rule, std::move(*records)));
}

loss_curve::loss_curve(std::string example, const spec::JobSpec& spec, std::shared_ptr<const model> model,
                       optimizer optimizer, std::shared_ptr<const data::dataset> records)
    : example_{std::move(example)}
    , seed_{spec.train().seed()}
    , model_{std::move(model)}
    , optimizer_{optimizer}
    , dataset_{std::move(records)}
    , sampler_{data::sampler_options_from(spec.train(), dataset_->record_count())}
    , network_{model_, 1}
    , parameters_(model_->layout().flat_size())
    , velocity_(parameters_.size()) {
  DLRUN_CHECK(optimizer_.state_floats_per_parameter() == 1, "{} is trained with momentum", example_);
  model_->initialise(seed_, parameters_);
}

result<std::vector<double>> loss_curve::train(std::uint64_t steps) {
  model_->initialise(seed_, parameters_);
  std::ranges::fill(velocity_, 0.0F);
  std::vector<float> sum(parameters_.size());
  std::vector<double> losses;
  const auto loss_at = model_->layout().metrics().offset + parameter_layout::loss_sum;
  for (step_id step{0}; step.value < steps; ++step.value) {
    if (auto done = sum_slots(step, 0, sampler_.slots(step), sum); !done) return tl::unexpected(done.error());
    losses.push_back(double{sum[loss_at]} / static_cast<double>(sampler_.records_in_step(step)));
    update(step, sum);
  }
  return losses;
}

result<void> loss_curve::sum_slots(step_id step, std::uint32_t begin, std::uint32_t end,
                                   std::span<float> out) {
  if (end - begin == 1) return compute_slot(step, begin, out);
  const auto [left, right] = protocol::reduction_tree::children(protocol::make_slot_range(begin, end));
  if (auto done = sum_slots(step, left.begin.value, left.end.value, out); !done) return done;
  std::vector<float> beside(out.size());
  if (auto done = sum_slots(step, right.begin.value, right.end.value, beside); !done) return done;
  kernels::cpu::add(out, beside, out);
  return {};
}

result<void> loss_curve::compute_slot(step_id step, std::uint32_t slot, std::span<float> out) {
  std::vector<std::uint64_t> indices;
  sampler_.records(step, {slot}, indices);
  std::vector<float> records(indices.size() * dataset_->record_values());
  std::vector<std::int32_t> labels(indices.size());
  if (auto read = dataset_->read(indices, records, {.classes = labels, .values = {}}); !read) return read;
  const batch input{records, labels, {}, static_cast<std::int64_t>(indices.size())};
  return network_.forward_backward(parameters_, input, {seed_, step.value, slot}, out);
}

void loss_curve::update(step_id step, std::span<const float> sum) {
  const auto scale = 1.0F / static_cast<float>(sampler_.records_in_step(step));
  for (const auto& block : model_->layout().blocks()) {
    if (block.kind == tensor_kind::metric) continue;
    DLRUN_CHECK(block.kind == tensor_kind::parameter, "{} has running statistics", example_);
    const auto here = std::span{parameters_}.subspan(block.offset, block.size);
    optimizer_.update({step, optimizer_.lr(), scale}, sum.subspan(block.offset, block.size), here, here,
                      std::span{velocity_}.subspan(block.offset, block.size));
  }
}

result<void> loss_curve::dump_inputs(const std::filesystem::path& folder, std::uint64_t steps) const {
  std::vector<float> initial(parameters_.size());
  model_->initialise(seed_, initial);
  write_raw(folder / (example_ + ".parameters.f32"), initial);

  std::ofstream tensors(folder / (example_ + ".tensors.txt"));
  for (const auto& tensor : model_->layout().tensors())
    if (tensor.kind == tensor_kind::parameter)
      tensors << fmt::format("{} {} {}\n", tensor.name, tensor.offset, fmt::join(tensor.extents, " "));

  std::vector<std::uint32_t> order;
  std::vector<std::uint64_t> slot_records;
  for (step_id step{0}; step.value < steps; ++step.value)
    for (std::uint32_t slot = 0; slot < sampler_.slots(step); ++slot) {
      sampler_.records(step, {slot}, slot_records);
      for (const auto index : slot_records) order.push_back(static_cast<std::uint32_t>(index));
    }
  write_raw(folder / (example_ + ".records.u32"), order);
  tensors.flush();
  if (!tensors) return fail(error_code::system, fmt::format("cannot write to '{}'", folder.string()));
  return {};
}

} // namespace dlrun::engine::testing
