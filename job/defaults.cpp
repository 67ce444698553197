#include "job/defaults.hpp"

#include "job/choices.hpp"
#include "job/field_rules.hpp"
#include "job/spec_mapper.hpp"

#include <algorithm>
#include <cctype>
#include <dlrun/check.hpp>
#include <functional>

namespace dlrun::job {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

bool is_absent(const Message& message, const FieldDescriptor& field) {
  const auto& reflection = *message.GetReflection();
  return field.is_repeated() ? reflection.FieldSize(message, &field) == 0
                             : !reflection.HasField(message, &field);
}

void fill_field(Message& message, const FieldDescriptor& field) {
  const std::string& text = rule_of(field).default_();
  problem_list problems;
  source_map sources;
  mapping into{problems, sources, field.full_name(), false, nullptr};
  const auto node = parse_yaml(text, 4);
  DLRUN_CHECK(node.has_value(), "default of {} is not YAML", field.full_name());
  map_field(*node, message, field, field.name(), into);
  DLRUN_CHECK(problems.empty(), "default of {}: {}", field.full_name(), problems.to_error().message);
}

/// Calls `visit` for each message in a field that is set.
void for_each_section(Message& message, const FieldDescriptor& field,
                      const std::function<void(Message&)>& visit) {
  if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || is_absent(message, field)) return;
  const auto& reflection = *message.GetReflection();
  if (!field.is_repeated()) {
    visit(*reflection.MutableMessage(&message, &field));
    return;
  }
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i)
    visit(*reflection.MutableRepeatedMessage(&message, &field, i));
}

void fill_ruled(Message& message) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    if (is_absent(message, field) && rule_of(field).has_default_()) fill_field(message, field);
    for_each_section(message, field, fill_ruled);
  }
}

template <class Pool>
void fill_pool(Pool& pool) {
  if (pool.has_kernel_size() && !pool.has_stride()) pool.set_stride(pool.kernel_size());
}

void fill_layer(spec::LayerSpec& layer, int position) {
  if (layer.has_max_pool2d()) fill_pool(*layer.mutable_max_pool2d());
  if (layer.has_avg_pool2d()) fill_pool(*layer.mutable_avg_pool2d());
  const auto* const choice = choice_of(*layer.GetDescriptor());
  const auto* const kind = layer.GetReflection()->GetOneofFieldDescriptor(layer, choice);
  if (kind != nullptr && !layer.has_name()) layer.set_name(kind->name() + std::to_string(position));
}

/// Classes are hit or missed, values are more or less near.
void fill_metrics(spec::ModelSpec& model) {
  if (model.metrics_size() > 0) return;
  const auto loss = model.loss().kind_case();
  if (loss == spec::LossSpec::kMse || loss == spec::LossSpec::kL1 || loss == spec::LossSpec::kHuber)
    model.add_metrics()->mutable_mae();
  else
    model.add_metrics()->mutable_accuracy();
}

/// Keys that `own` does not write are as in `other`.
template <class Section>
void take_missing_keys(const Section& other, Section& own) {
  Section merged = other;
  std::vector<const FieldDescriptor*> written;
  own.GetReflection()->ListFields(own, &written);
  own.GetReflection()->SwapFields(&own, &merged, written);
  own = std::move(merged);
}

/// What validation does not say is as in train: its records are meant for the same model. Paths,
/// and what only one of the two has, are left alone; so is everything that belongs to a format that
/// only train has.
void inherit_from_train(const spec::DatasetSpec& train, spec::DatasetSpec& validation) {
  if (!validation.has_targets() && train.has_targets()) validation.set_targets(train.targets());
  if (validation.has_format() && validation.format() != train.format()) return;
  if (train.has_format()) validation.set_format(train.format());
  if (train.has_normalize()) take_missing_keys(train.normalize(), *validation.mutable_normalize());
  if (train.has_csv()) take_missing_keys(train.csv(), *validation.mutable_csv());
  if (train.has_image_folder()) take_missing_keys(train.image_folder(), *validation.mutable_image_folder());
  if (train.has_tfrecord()) take_missing_keys(train.tfrecord(), *validation.mutable_tfrecord());
  if (validation.options().empty()) *validation.mutable_options() = train.options();
}

void fill_data(spec::DataSpec& data) {
  if (data.has_train() && !data.train().has_format())
    fill_field(*data.mutable_train(), *spec::DatasetSpec::descriptor()->FindFieldByName("format"));
  if (data.has_validation()) inherit_from_train(data.train(), *data.mutable_validation());
  for (auto* part : {data.has_train() ? data.mutable_train() : nullptr,
                     data.has_validation() ? data.mutable_validation() : nullptr})
    if (part != nullptr && format_of(*part) == data_format::image_folder) part->mutable_image_folder();
}

void make_absolute(spec::DatasetSpec& data, const std::filesystem::path& base) {
  const auto absolute = [&](const std::string& path) { return (base / path).lexically_normal().string(); };
  if (!data.records().empty()) data.set_records(absolute(data.records()));
  if (!data.labels().empty()) data.set_labels(absolute(data.labels()));
}

} // namespace

void fill_defaults(spec::JobSpec& spec, std::string_view default_name) {
  if (!spec.has_name()) spec.set_name(std::string(default_name));
  if (spec.has_data()) fill_data(*spec.mutable_data());
  fill_ruled(spec);
  for (int i = 0; i < spec.model().layers_size(); ++i)
    fill_layer(*spec.mutable_model()->mutable_layers(i), i);
  if (spec.has_model()) fill_metrics(*spec.mutable_model());
}

std::string default_job_name(const std::filesystem::path& file) {
  constexpr std::size_t length_max = 100;
  std::string name = file.stem().string().substr(0, length_max);
  const auto plain = [](unsigned char c) { return c < 0x80 && (std::isalnum(c) != 0); };
  std::replace_if(
      name.begin(), name.end(),
      [&](unsigned char c) { return !plain(c) && c != '.' && c != '_' && c != '-'; }, '-');
  name.erase(name.begin(), std::find_if(name.begin(), name.end(), plain));
  return name.empty() ? "job" : name;
}

void make_paths_absolute(spec::JobSpec& spec, const std::filesystem::path& base_dir) {
  const auto base = base_dir.empty() ? base_dir : std::filesystem::absolute(base_dir);
  if (!spec.train().init_from().empty())
    spec.mutable_train()->set_init_from((base / spec.train().init_from()).lexically_normal().string());
  if (spec.durability().has_archive() && !spec.durability().archive().folder().empty()) {
    auto& archive = *spec.mutable_durability()->mutable_archive();
    archive.set_folder((base / archive.folder()).lexically_normal().string());
  }
  if (!spec.has_data()) return;
  if (spec.data().has_train()) make_absolute(*spec.mutable_data()->mutable_train(), base);
  if (spec.data().has_validation()) make_absolute(*spec.mutable_data()->mutable_validation(), base);
}

std::vector<std::string> files_read_by(const spec::JobSpec& spec) {
  std::vector<std::string> all{spec.train().init_from()};
  for (const auto* part : {&spec.data().train(), &spec.data().validation()})
    all.insert(all.end(), {part->records(), part->labels()});
  std::erase(all, "");
  return all;
}

} // namespace dlrun::job
