#include "job/validate.hpp"

#include "base/decimal.hpp"
#include "base/ipv4_address.hpp"
#include "base/nearest.hpp"
#include "base/sha256.hpp"
#include "base/utf8.hpp"
#include "job/choices.hpp"
#include "job/field_rules.hpp"
#include "job/spec_path.hpp"
#include "job/validate_data.hpp"
#include "job/validate_journal.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dlrun::job {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

/// Checks every field of a message by its rule.
class rule_check {
public:
  rule_check(const source_map& sources, problem_list& problems)
      : sources_(sources)
      , problems_(problems) {}

  void check(const Message& message, const std::string& path) {
    if (problems_.reported(path)) return;
    const auto* const choice = choice_of(*message.GetDescriptor());
    if (choice != nullptr && !message.GetReflection()->HasOneof(message, choice))
      add(path, fmt::format("expected one of {}, found none", fmt::join(member_names(*choice), ", ")));
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i)
      check_field(message, *message.GetDescriptor()->field(i), path);
  }

private:
  void add(const std::string& path, std::string text) {
    if (is_told_of_training(path, sources_, problems_)) return;
    problems_.add(sources_.find(path), path, std::move(text));
  }

  void check_field(const Message& message, const FieldDescriptor& field, const std::string& section) {
    const std::string path = join_path(section, field.name());
    if (problems_.reported(path)) return;
    const auto& reflection = *message.GetReflection();
    if (field.is_repeated()) {
      check_list(message, field, path);
    } else if (reflection.HasField(message, &field)) {
      check_value(message, field, path, -1);
    } else if (rule_of(field).required()) {
      add(path, fmt::format("is missing; expected {}", expectation(field)));
    }
  }

  void check_list(const Message& message, const FieldDescriptor& field, const std::string& path) {
    const auto& rule = rule_of(field);
    const auto size = static_cast<std::uint32_t>(message.GetReflection()->FieldSize(message, &field));
    if (size == 0 && rule.required())
      return add(path,
                 fmt::format("is missing or empty; expected a list, each value {}", expectation(field)));
    if (size != 0 && ((rule.has_min_items() && size < rule.min_items()) ||
                      (rule.has_max_items() && size > rule.max_items())))
      return add(path, fmt::format("expected {} values, found {}", length(rule), size));
    for (std::uint32_t i = 0; i < size; ++i)
      check_value(message, field, item_path(path, i), static_cast<int>(i));
  }

  static std::string length(const spec::FieldRule& rule) {
    if (rule.min_items() == rule.max_items()) return fmt::format("{}", rule.min_items());
    return fmt::format("{} to {}", rule.min_items(), rule.max_items());
  }

  /// `index` is the place in a list, -1 for a single value.
  void check_value(const Message& message, const FieldDescriptor& field, const std::string& path, int index) {
    if (problems_.reported(path)) return;
    const auto& r = *message.GetReflection();
    const bool single = index < 0;
    switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return check(single ? r.GetMessage(message, &field) : r.GetRepeatedMessage(message, &field, index),
                   path);
    case FieldDescriptor::CPPTYPE_INT64: {
      const auto value = single ? r.GetInt64(message, &field) : r.GetRepeatedInt64(message, &field, index);
      return check_number(field, path, static_cast<double>(value), fmt::format("{}", value));
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      const auto value = single ? r.GetDouble(message, &field) : r.GetRepeatedDouble(message, &field, index);
      return check_number(field, path, value, fmt::format("{}", value));
    }
    case FieldDescriptor::CPPTYPE_STRING:
      return check_text(field, path,
                        single ? r.GetString(message, &field) : r.GetRepeatedString(message, &field, index));
    default: return;
    }
  }

  void check_number(const FieldDescriptor& field, const std::string& path, double value,
                    const std::string& shown) {
    if (!within_bounds(rule_of(field), value))
      add(path, fmt::format("expected {}, found {}", expectation(field), shown));
  }

  void check_text(const FieldDescriptor& field, const std::string& path, const std::string& text) {
    const auto& rule = rule_of(field);
    if (text_allowed(rule, text)) return;
    const std::vector<std::string> allowed(rule.one_of().begin(), rule.one_of().end());
    const bool is_quantity = rule.duration() || rule.bytes() || rule.auto_or_count() || rule.interval();
    const auto nearest = base::nearest(text, allowed);
    const bool is_close_to_any = !allowed.empty() && base::is_close(text, nearest);
    std::string way_out = is_close_to_any ? fmt::format("; did you mean \"{}\"?", nearest) : std::string{};
    if (is_quantity && base::has_leading_zero(text)) way_out = "; write it without leading zeros";
    const auto* broken = base::first_invalid_utf8(text) ? ", which is not UTF-8" : "";
    add(path, fmt::format("expected {}, found \"{}\"{}{}", expectation(field), base::printable(text), broken,
                          way_out));
  }

  const source_map& sources_;
  problem_list& problems_;
};

/// Names of layers are unique, inputs are names of earlier layers.
void check_layers(const spec::ModelSpec& model, const source_map& sources, problem_list& problems) {
  std::vector<std::string> known = {"input"};
  for (int i = 0; i < model.layers_size(); ++i) {
    const auto& layer = model.layers(i);
    const std::string path = item_path("model.layers", static_cast<std::size_t>(i));
    for (int k = 0; k < layer.inputs_size(); ++k) {
      if (std::find(known.begin(), known.end(), layer.inputs(k)) != known.end()) continue;
      const std::string input_path = item_path(path + ".inputs", static_cast<std::size_t>(k));
      if (problems.reported(input_path)) continue;
      problems.add(sources.find(input_path), input_path,
                   fmt::format("no earlier layer is called \"{}\"; {}", base::printable(layer.inputs(k)),
                               base::hint(layer.inputs(k), known)));
    }
    if (!layer.has_name()) continue;
    if (std::find(known.begin(), known.end(), layer.name()) != known.end())
      problems.add(sources.find(path + ".name"), path + ".name",
                   fmt::format("the name \"{}\" is taken by {}", base::printable(layer.name()),
                               layer.name() == "input" ? "the model's input" : "an earlier layer"));
    else
      known.push_back(layer.name());
  }
}

/// A layer reads as many inputs as its kind takes; without `inputs` it reads one, the layer before.
void check_input_counts(const spec::ModelSpec& model, const source_map& sources, problem_list& problems) {
  for (int i = 0; i < model.layers_size(); ++i) {
    const auto& layer = model.layers(i);
    const auto* const kind =
        layer.GetReflection()->GetOneofFieldDescriptor(layer, choice_of(*layer.GetDescriptor()));
    if (kind == nullptr) continue;
    const auto& rule = rule_of(*kind);
    const int least = rule.has_inputs_min() ? static_cast<int>(rule.inputs_min()) : 1;
    const int most = rule.has_inputs_max() ? static_cast<int>(rule.inputs_max()) : 1;
    const int count = std::max(layer.inputs_size(), 1);
    const std::string path = item_path("model.layers", static_cast<std::size_t>(i)) + ".inputs";
    if ((count >= least && count <= most) || problems.reported(path)) continue;
    const std::string wanted = most == 1 ? "one input" : fmt::format("{} to {} inputs", least, most);
    problems.add(sources.find(path), path,
                 fmt::format("{} takes {}, found {}{}", kind->name(), wanted, count,
                             layer.inputs_size() == 0 ? ", the layer before; name them all" : ""));
  }
}

/// PyTorch's rule for pooling: a window lies at least half on the data.
template <class Pool>
void check_pool(const Pool& pool, const std::string& path, const source_map& sources,
                problem_list& problems) {
  if (problems.reported(path) || pool.padding() * 2 <= pool.kernel_size() || !pool.has_kernel_size()) return;
  problems.add(sources.find(path), path,
               fmt::format("{} is more than half of kernel_size {}", pool.padding(), pool.kernel_size()));
}

/// Rules between the arguments of one layer.
void check_arguments(const spec::ModelSpec& model, const source_map& sources, problem_list& problems) {
  for (int i = 0; i < model.layers_size(); ++i) {
    const auto& layer = model.layers(i);
    const std::string path = item_path("model.layers", static_cast<std::size_t>(i));
    check_pool(layer.max_pool2d(), path + ".max_pool2d.padding", sources, problems);
    check_pool(layer.avg_pool2d(), path + ".avg_pool2d.padding", sources, problems);
    const auto& grow = layer.conv_transpose2d();
    const std::string rest = path + ".conv_transpose2d.output_padding";
    if (!layer.has_conv_transpose2d() || problems.reported(rest) ||
        grow.output_padding() < (grow.has_stride() ? grow.stride() : 1))
      continue;
    problems.add(sources.find(rest), rest,
                 fmt::format("{} is not below stride {}", grow.output_padding(), grow.stride()));
  }
}

/// torch.optim.SGD's rule.
void check_nesterov(const spec::OptimizerSpec& optimizer, const source_map& sources, problem_list& problems) {
  const std::string path = "train.optimizer.sgd.nesterov";
  const auto& sgd = optimizer.sgd();
  if (!sgd.nesterov() || problems.reported(path) || (sgd.momentum() > 0 && sgd.dampening() == 0)) return;
  problems.add(sources.find(path), path,
               fmt::format("needs a momentum above 0 and a dampening of 0, found momentum {}, dampening {}",
                           sgd.momentum(), sgd.dampening()));
}

void check_milestones(const spec::LrScheduleSpec& schedule, const source_map& sources,
                      problem_list& problems) {
  const std::string path = "train.lr_schedule.multi_step.milestones";
  const auto& milestones = schedule.multi_step().milestones();
  const auto wrong = std::ranges::adjacent_find(milestones, std::greater_equal<>{});
  if (wrong == milestones.end() || problems.reported(path)) return;
  problems.add(sources.find(path), path,
               fmt::format("expected each larger than the one before, found {} before {}", *wrong, wrong[1]));
}

/// What belongs to a weights file needs one, and a digest is one.
void check_weights(const spec::TrainSpec& train, const source_map& sources, problem_list& problems) {
  const auto add = [&](const std::string& path, std::string text) {
    if (!problems.reported(path)) problems.add(sources.find(path), path, std::move(text));
  };
  if (train.has_init_strict() && !train.has_init_from())
    add("train.init_strict", "says how to read train.init_from, which is missing");
  if (!train.has_init_sha256()) return;
  if (!train.has_init_from())
    add("train.init_sha256", "is the digest of train.init_from, which is missing");
  else if (!base::is_sha256_hex(train.init_sha256()))
    add("train.init_sha256", fmt::format("expected 64 hexadecimal digits in lower case, found \"{}\"",
                                         base::printable(train.init_sha256())));
}

void check_worker_bounds(const spec::JobSpec& spec, const source_map& sources, problem_list& problems) {
  const auto& cluster = spec.cluster();
  const auto add = [&](const std::string& path, std::string text) {
    if (!problems.reported(path)) problems.add(sources.find(path), path, std::move(text));
  };
  if (problems.reported("cluster.workers") || !cluster.has_workers()) return;
  if (cluster.has_workers_min() && cluster.workers_min() > cluster.workers())
    add("cluster.workers_min",
        fmt::format("{} is above cluster.workers, which is {}", cluster.workers_min(), cluster.workers()));
  if (cluster.workers_max() > 0 && cluster.workers_max() < cluster.workers())
    add("cluster.workers_max",
        fmt::format("{} is below cluster.workers, which is {}; 0 is as many as a step has slots",
                    cluster.workers_max(), cluster.workers()));
}

/// Each GPU is named once, by a job that may use GPUs.
void check_gpus(const spec::JobSpec& spec, const source_map& sources, problem_list& problems) {
  const std::string path = "cluster.gpus";
  const auto& gpus = spec.cluster().gpus();
  if (gpus.empty() || problems.reported(path)) return;
  if (device_of(spec) == device::cpu)
    problems.add(sources.find(path), path,
                 "names GPUs, but with cluster.device: cpu none is used; leave this out, or set "
                 "cluster.device: cuda");
  for (int i = 0; i < gpus.size(); ++i) {
    const auto place = item_path(path, static_cast<std::size_t>(i));
    if (std::find(gpus.begin(), gpus.begin() + i, gpus[i]) == gpus.begin() + i || problems.reported(place))
      continue;
    problems.add(sources.find(place), place,
                 fmt::format("GPU {} is named twice; workers share a GPU where there are more workers than "
                             "GPUs, so name it once",
                             gpus[i]));
  }
}

/// Processors compute in single precision alone.
void check_precision(const spec::JobSpec& spec, const source_map& sources, problem_list& problems) {
  const std::string path = "train.precision";
  if (problems.reported(path) || precision_of(spec) == precision::fp32) return;
  if (device_of(spec) == device::cpu)
    problems.add(sources.find(path), path,
                 fmt::format("{} is a precision of GPUs, and with cluster.device: cpu none is used; leave "
                             "this out, or set cluster.device: cuda",
                             spec.train().precision()));
}

/// What is evaluated on the way needs records for it, and snapshots to read it from.
void check_evaluation(const spec::JobSpec& spec, const source_map& sources, problem_list& problems) {
  const auto& train = spec.train();
  const auto add = [&](const std::string& path, std::string text) {
    if (!problems.reported(path)) problems.add(sources.find(path), path, std::move(text));
  };
  const bool evaluates = train.has_evaluate_every() && train.evaluate_every() != "off";
  if (evaluates && !spec.data().has_validation())
    add("train.evaluate_every", "there is nothing to evaluate on; write data.validation");
  if (evaluates && durability_log_of(spec) == durability_log::off)
    add("train.evaluate_every",
        "with durability.log: off only the last version can be evaluated, since what is evaluated on the way "
        "is read from snapshots; write train.evaluate_every: off or another durability.log");
  if (evaluates) return;
  const auto needs = "needs evaluations to choose from; write train.evaluate_every, e.g. 1 epoch";
  if (train.has_keep_best()) add("train.keep_best", needs);
  if (train.has_early_stopping()) add("train.early_stopping", needs);
}

/// What is copied to another host are the records of steps, or snapshots.
void check_replicas(const spec::JobSpec& spec, const source_map& sources, problem_list& problems) {
  const std::string path = "durability.replicas";
  if (problems.reported(path) || replicas_of(spec).value_or(1) < 2) return;
  if (durability_log_of(spec) == durability_log::off)
    problems.add(
        sources.find(path), path,
        "with durability.log: off nothing is kept that there could be a second copy of: write another "
        "durability.log, or leave this out");
  if (is_relaxed(spec))
    problems.add(sources.find(path), path,
                 "a second copy is the same to the bit only where each step is: leave cluster.determinism at "
                 "strict, or this out");
}

/// What is archived are snapshots, and a journal that only the root's host has.
void check_archive(const spec::JobSpec& spec, const source_map& sources, problem_list& problems) {
  const std::string path = "durability.archive";
  if (!spec.durability().has_archive() || problems.reported(path)) return;
  if (durability_log_of(spec) == durability_log::off)
    problems.add(sources.find(path), path,
                 "with durability.log: off nothing is kept that could be archived: write another "
                 "durability.log, or leave this out");
  if (spec.cluster().journal().has_etcd())
    problems.add(sources.find(path), path,
                 "a journal in an etcd is not archived: write cluster.journal: folder, or leave this out");
}

void check_observability(const spec::JobSpec& spec, const source_map& sources, problem_list& problems) {
  const std::string path = "observability.prometheus_tls";
  if (!spec.observability().has_prometheus_tls() || problems.reported(path)) return;
  if (spec.observability().prometheus_port() == 0)
    problems.add(sources.find(path), path,
                 "says how prometheus_port is served, and there is none: write observability.prometheus_port "
                 "too, or leave this out");
  const auto& address = spec.observability().prometheus_tls().address();
  if (const auto key = path + ".address";
      !problems.reported(key) && !base::parse_ipv4_address(address + ":1"))
    problems.add(sources.find(key), key,
                 fmt::format("expected the IPv4 address of the root's host on which metrics are served, or "
                             "0.0.0.0 for all of them, found \"{}\"",
                             base::printable(address)));
}

/// Rules between keys. The words of `spec` are those of their keys.
void check_together(const spec::JobSpec& spec, const source_map& sources, problem_list& problems) {
  check_layers(spec.model(), sources, problems);
  check_input_counts(spec.model(), sources, problems);
  check_arguments(spec.model(), sources, problems);
  check_data(spec.data(), sources, problems);
  check_nesterov(spec.train().optimizer(), sources, problems);
  check_milestones(spec.train().lr_schedule(), sources, problems);
  check_weights(spec.train(), sources, problems);
  check_evaluation(spec, sources, problems);
  check_journal(spec, sources, problems);
  check_replicas(spec, sources, problems);
  check_archive(spec, sources, problems);
  check_observability(spec, sources, problems);
  check_worker_bounds(spec, sources, problems);
  check_gpus(spec, sources, problems);
  check_precision(spec, sources, problems);
}

/// Words that their keys do not have: of each, or of the section around it, a problem was told.
void drop_unknown_words(Message& message) {
  const auto& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> written;
  reflection.ListFields(message, &written);
  for (const auto* const field : written) {
    if (field->is_map()) continue;
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      const auto& rule = rule_of(*field);
      if (rule.one_of_size() > 0 && !text_allowed(rule, reflection.GetString(message, field)))
        reflection.ClearField(&message, field);
    } else if (!field->is_repeated()) {
      drop_unknown_words(*reflection.MutableMessage(&message, field));
    } else {
      for (int i = 0; i < reflection.FieldSize(message, field); ++i)
        drop_unknown_words(*reflection.MutableRepeatedMessage(&message, field, i));
    }
  }
}

} // namespace

void check_rules(const google::protobuf::Message& message, const source_map& sources,
                 problem_list& problems) {
  rule_check(sources, problems).check(message, "");
}

void validate(const spec::JobSpec& spec, const source_map& sources, problem_list& problems) {
  check_rules(spec, sources, problems);
  if (problems.empty()) return check_together(spec, sources, problems);
  auto readable = spec;
  drop_unknown_words(readable);
  check_together(readable, sources, problems);
}

result<void> validate(const spec::JobSpec& spec) {
  source_map sources;
  sources.set_root({"job specification", 0});
  problem_list problems;
  validate(spec, sources, problems);
  if (!problems.empty()) return tl::unexpected(problems.to_error());
  return {};
}

} // namespace dlrun::job
