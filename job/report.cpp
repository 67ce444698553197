#include <dlrun/report.hpp>

#include "base/atomic_file.hpp"
#include "base/os_error.hpp"
#include "base/small_file.hpp"
#include "job/report_file.hpp"

#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>

namespace dlrun {
namespace {

using nlohmann::ordered_json;

constexpr std::array status_names = {"completed", "failed", "interrupted"};
constexpr std::size_t report_bytes_max = 256 * 1024 * 1024;

// ---- one field list for both directions

/// Writes fields in the order they are listed.
struct writer {
  ordered_json out = ordered_json::object();

  void field(const char* name, const std::string& value) { out[name] = value; }
  void field(const char* name, const double& value) {
    if (std::isfinite(value))
      out[name] = value;
    else
      out[name] = nullptr;
  }
  template <class Integer>
  requires std::is_integral_v<Integer>
  void field(const char* name, const Integer& value) { out[name] = value; }
  void field(const char* name, const run_status& value) { out[name] = to_string(value); }
  /// One field a metric.
  void metrics(const std::string& prefix, std::string_view, std::string_view, const named_values& values) {
    for (const auto& [name, value] : values) field((prefix + name).c_str(), value);
  }
  void field(const char* name, const std::vector<std::uint64_t>& values) { out[name] = values; }
  template <class T>
  void field(const char* name, const std::vector<T>& values);
  template <class T>
  void field(const char* name, const std::optional<T>& value);
  template <class T>
  requires std::is_class_v<T>
  void field(const char* name, const T& value);
};

/// Reads the same fields back. Throws json exceptions for wrong types; absent fields keep their
/// value.
struct reader {
  explicit reader(const ordered_json& object)
      : in(object) {
    if (!object.is_object())
      throw std::invalid_argument("expected an object, found " + std::string(object.type_name()));
  }
  const ordered_json& in;

  template <class T>
  requires std::is_integral_v<T> || std::is_same_v<T, std::string>
  void field(const char* name, T& value) {
    if (in.contains(name)) value = in.at(name).get<T>();
  }
  void field(const char* name, double& value) {
    if (in.contains(name))
      value = in.at(name).is_null() ? std::numeric_limits<double>::quiet_NaN() : in.at(name).get<double>();
  }
  void field(const char* name, run_status& value) {
    const auto text = in.at(name).get<std::string>();
    for (std::size_t i = 0; i < status_names.size(); ++i)
      if (text == status_names[i]) {
        value = static_cast<run_status>(i);
        return;
      }
    throw std::invalid_argument("unknown status \"" + text + "\"");
  }
  /// The numbers whose keys begin with `prefix`, but for `loss` and `samples`, which are no
  /// metrics.
  void metrics(const std::string& prefix, std::string_view loss, std::string_view samples,
               named_values& values) {
    for (const auto& [key, value] : in.items()) {
      if (!key.starts_with(prefix) || key == loss || key == samples) continue;
      double& read = values.emplace_back(key.substr(prefix.size()), 0.0).second;
      field(key.c_str(), read);
    }
  }
  void field(const char* name, std::vector<std::uint64_t>& values) {
    if (in.contains(name)) values = in.at(name).get<std::vector<std::uint64_t>>();
  }
  template <class T>
  void field(const char* name, std::vector<T>& values);
  template <class T>
  void field(const char* name, std::optional<T>& value);
  template <class T>
  requires(std::is_class_v<T> && !std::is_same_v<T, std::string>) void field(const char* name, T& value);
};

template <class Visitor, class T>
void visit(Visitor& v, T& r) requires std::is_same_v<std::remove_const_t<T>, recovery> {
  v.field("role", r.role);
  v.field("index", r.index);
  v.field("cause", r.cause);
  v.field("incarnation", r.incarnation);
  v.field("at_seconds", r.at_seconds);
  v.field("detected_ms", r.detected_ms);
  v.field("redispatched_ms", r.redispatched_ms);
  v.field("resumed_ms", r.resumed_ms);
  v.field("steps_redone", r.steps_redone);
}

template <class Visitor, class T>
void visit(Visitor& v, T& r) requires std::is_same_v<std::remove_const_t<T>, rewind> {
  v.field("timeline", r.timeline);
  v.field("version", r.version);
  v.field("steps_redone", r.steps_redone);
  v.field("at_seconds", r.at_seconds);
  v.field("reason", r.reason);
}

template <class Visitor, class T>
void visit(Visitor& v, T& l) requires std::is_same_v<std::remove_const_t<T>, store_loss> {
  v.field("ps_shard", l.ps_shard);
  v.field("incarnation", l.incarnation);
  v.field("host", l.host);
  v.field("store", l.store);
  v.field("found", l.found);
  v.field("host_before", l.host_before);
  v.field("store_before", l.store_before);
  v.field("acknowledged", l.acknowledged);
  v.field("reason", l.reason);
}

template <class Visitor, class T>
void visit(Visitor& v, T& l) requires std::is_same_v<std::remove_const_t<T>, journal_loss> {
  v.field("role", l.role);
  v.field("index", l.index);
  v.field("incarnation", l.incarnation);
  v.field("known", l.known);
  v.field("at_seconds", l.at_seconds);
}

template <class Visitor, class T>
void visit(Visitor& v, T& p) requires std::is_same_v<std::remove_const_t<T>, records_left_out> {
  v.field("step", p.step);
  v.field("slot", p.slot);
  v.field("records", p.records);
  v.field("reason", p.reason);
  v.field("skip", p.skip);
  v.field("numbers", p.numbers);
}

template <class Visitor, class T>
void visit(Visitor& v, T& t) requires std::is_same_v<std::remove_const_t<T>, step_times> {
  v.field("p50", t.p50);
  v.field("p99", t.p99);
  v.field("max", t.max);
}

template <class Visitor, class T>
void visit(Visitor& v, T& d) requires std::is_same_v<std::remove_const_t<T>, durability_used> {
  v.field("log", d.log);
  v.field("sync", d.sync);
  v.field("replicas", d.replicas);
  v.field("copies_waited_seconds", d.copies_waited_seconds);
}

template <class Visitor, class T>
void visit(Visitor& v, T& m) requires std::is_same_v<std::remove_const_t<T>, validation_metrics> {
  v.field("loss", m.loss);
  v.metrics("", "loss", "samples", m.metrics);
  v.field("samples", m.samples);
}

template <class Visitor, class T>
void visit(Visitor& v, T& m) requires std::is_same_v<std::remove_const_t<T>, metric_values> {
  v.metrics("", "", "", m.all);
}

template <class Visitor, class T>
void visit(Visitor& v, T& e) requires std::is_same_v<std::remove_const_t<T>, evaluation> {
  v.field("step", e.step);
  v.field("epoch", e.epoch);
  v.field("loss", e.loss);
  v.field("metrics", e.metrics);
}

template <class Visitor, class T>
void visit(Visitor& v, T& b) requires std::is_same_v<std::remove_const_t<T>, best_evaluation> {
  v.field("step", b.step);
  v.field("metric", b.metric);
  v.field("value", b.value);
}

template <class Visitor, class T>
void visit(Visitor& v, T& s) requires std::is_same_v<std::remove_const_t<T>, software_versions> {
  v.field("dlrun", s.dlrun);
  v.field("caf", s.caf);
  v.field("onednn", s.onednn);
  v.field("compiler", s.compiler);
  v.field("spec", s.spec);
}

template <class Visitor, class T>
void visit(Visitor& v, T& h) requires std::is_same_v<std::remove_const_t<T>, host_fingerprint> {
  v.field("cpu_model", h.cpu_model);
  v.field("isa", h.isa);
  v.field("threads", h.threads);
  v.field("device", h.device);
}

template <class Visitor, class T>
void visit(Visitor& v, T& r) requires std::is_same_v<std::remove_const_t<T>, report> {
  v.field("job", r.job);
  v.field("status", r.status);
  v.field("reason", r.reason);
  v.field("error", r.error);
  v.field("steps", r.steps);
  v.field("epochs", r.epochs);
  v.field("samples_committed", r.samples_committed);
  v.field("samples_missing", r.samples_missing);
  v.field("samples_duplicated", r.samples_duplicated);
  v.field("parameters_sha256", r.parameters_sha256);
  v.field("deterministic", r.deterministic);
  v.field("train_loss", r.train_loss);
  v.metrics("train_", "train_loss", "", r.train_metrics);
  v.field("validation", r.validation);
  v.field("evaluations", r.evaluations);
  v.field("best", r.best);
  v.field("stopped_early", r.stopped_early);
  v.field("wall_seconds", r.wall_seconds);
  v.field("samples_per_second", r.samples_per_second);
  v.field("step_ms", r.step_ms);
  v.field("goodput", r.goodput);
  v.field("steps_redone", r.steps_redone);
  v.field("recoveries", r.recoveries);
  v.field("rewinds", r.rewinds);
  v.field("store_losses", r.store_losses);
  v.field("journal_losses", r.journal_losses);
  v.field("parked_shards", r.parked_shards);
  v.field("durability", r.durability);
  v.field("bytes_logged", r.bytes_logged);
  v.field("bytes_snapshotted", r.bytes_snapshotted);
  v.field("bytes_copied", r.bytes_copied);
  v.field("versions", r.versions);
  v.field("host", r.host);
}

template <class T>
ordered_json object_of(const T& value) {
  writer w;
  visit(w, value);
  return std::move(w.out);
}

template <class T>
void writer::field(const char* name, const std::vector<T>& values) {
  out[name] = ordered_json::array();
  for (const auto& value : values) out[name].push_back(object_of(value));
}
template <class T>
void writer::field(const char* name, const std::optional<T>& value) {
  if (value)
    out[name] = object_of(*value);
  else
    out[name] = nullptr;
}
template <class T>
requires std::is_class_v<T>
void writer::field(const char* name, const T& value) { out[name] = object_of(value); }

template <class T>
void reader::field(const char* name, std::vector<T>& values) {
  if (!in.contains(name)) return;
  for (const auto& item : in.at(name)) {
    reader nested(item);
    visit(nested, values.emplace_back());
  }
}
template <class T>
void reader::field(const char* name, std::optional<T>& value) {
  if (!in.contains(name) || in.at(name).is_null()) return;
  reader nested(in.at(name));
  visit(nested, value.emplace());
}
template <class T>
requires(std::is_class_v<T> && !std::is_same_v<T, std::string>) void reader::field(const char* name,
                                                                                   T& value) {
  if (!in.contains(name)) return;
  reader nested(in.at(name));
  visit(nested, value);
}

} // namespace

std::string to_string(run_status status) { return status_names[static_cast<std::size_t>(status)]; }

std::string to_json(const report& value) {
  // Text that is not UTF-8 (a reason with a broken file name) is shown with replacement characters,
  // not refused.
  return object_of(value).dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

result<report> report_from_json(const std::string& text) {
  try {
    const auto parsed = ordered_json::parse(text);
    report value;
    reader in(parsed);
    visit(in, value);
    return value;
  } catch (const std::exception&) {
    return fail(error_code::bad_data,
                "not a report that this dlrun wrote (an edited or damaged file, or one of "
                "a later version): restore it from a copy, or remove it");
  }
}

result<void> write_report(const std::filesystem::path& path, const report& value) {
  return base::write_file_atomically(path, to_json(value));
}

result<std::optional<report>> job::find_report(const std::filesystem::path& path) {
  const auto text = base::read_small_file(path, report_bytes_max);
  if (!text && text.error().code == error_code::limit_exceeded)
    return fail(error_code::bad_data, fmt::format("{}: too large for a report", path.string()));
  if (!text) return tl::unexpected(text.error());
  if (!*text) return std::nullopt;
  auto value = report_from_json(**text);
  if (!value) return fail(value.error().code, path.string() + ": " + value.error().message);
  return *std::move(value);
}

result<report> read_report(const std::filesystem::path& path) {
  auto found = job::find_report(path);
  if (!found) return tl::unexpected(found.error());
  if (!*found) return base::fail_errno(fmt::format("cannot read {}", path.string()), ENOENT);
  return **std::move(found);
}

} // namespace dlrun
