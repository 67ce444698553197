#include "job/validate_data.hpp"

#include "base/utf8.hpp"
#include "job/choices.hpp"
#include "job/data_reading.hpp"
#include "job/field_rules.hpp"
#include "job/spec_path.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>
#include <map>
#include <set>
#include <tuple>

namespace dlrun::job {
namespace {

/// The checks of one data set, which lives at `path`.
class data_check {
public:
  data_check(const spec::DatasetSpec& data, std::string path, const source_map& sources,
             problem_list& problems)
      : data_(data)
      , format_(format_of(data))
      , path_(std::move(path))
      , sources_(sources)
      , problems_(problems) {}

  void check(bool validation) {
    check_part(validation);
    if (!validation || !data_.has_split()) check_paths();
    check_sections();
    check_normalize();
    if (data_.has_csv()) check_csv();
    if (data_.image_folder().channels() == 2)
      add("image_folder.channels", "expected 1 (grayscale) or 3 (red, green, blue), found 2");
    if (format_ == data_format::image_folder && targets_are(target_kind::values))
      add("targets", "the folders of image_folder are classes; leave it out or write classes");
  }

private:
  bool targets_are(target_kind kind) const { return data_.has_targets() && target_kind_of(data_) == kind; }

  void add(const std::string& key, std::string text) {
    const auto place = join_path(path_, key);
    if (!problems_.reported(place) && !is_told_of_training(place, sources_, problems_))
      problems_.add(sources_.find(place), place, std::move(text));
  }

  void missing(const std::string& key) {
    const auto* const field = spec::DatasetSpec::descriptor()->FindFieldByName(key);
    add(key, fmt::format("is missing; expected {}", expectation(*field)));
  }

  void check_part(bool validation) {
    if (!validation && data_.has_split())
      add("split", "what is split off is for validation; write it as data.validation.split");
    if (validation && data_.has_augment())
      add("augment", "records are changed at random in training only; leave it out");
    if (!validation || !data_.has_split()) return;
    for (const char* const key : {"records", "labels"})
      if (*key == 'r' ? data_.has_records() : data_.has_labels())
        add(key, "a split takes its records from data.train; leave this out, or leave out split");
  }

  void check_paths() {
    if (!data_.has_records()) missing("records");
    const bool needs_labels = format_ == data_format::idx || format_ == data_format::npy;
    if (needs_labels && !data_.has_labels()) missing("labels");
    if (needs_labels || !is_built_in() || !data_.has_labels()) return;
    add("labels", fmt::format("format {} has its targets in the records; leave this out", data_.format()));
  }

  bool is_built_in() const { return format_ != data_format::registered; }

  /// A section of another format would be ignored; two formats cannot do without theirs.
  void check_sections() {
    const std::tuple<data_format, const char*, bool> sections[] = {
        {data_format::csv, "csv", data_.has_csv()},
        {data_format::image_folder, "image_folder", data_.has_image_folder()},
        {data_format::tfrecord, "tfrecord", data_.has_tfrecord()}};
    for (const auto& [format, name, present] : sections) {
      if (present && format_ != format)
        add(name,
            fmt::format("is for format: {}, but the format is {}", name, base::printable(data_.format())));
      if (!present && format_ == format) missing(name);
    }
    if (is_built_in() && !data_.options().empty())
      add("options", fmt::format("are for readers of your own; format {} has none", data_.format()));
  }

  void check_normalize() {
    const auto& normalize = data_.normalize();
    const auto means = normalize.mean_size();
    const auto stds = normalize.std_size();
    if (means != stds && means != 1 && stds != 1)
      add("normalize", fmt::format("{} values of mean, but {} of std", means, stds));
    const bool changes = means > 1 || stds > 1 || (means == 1 && normalize.mean(0) != 0) ||
                         (stds == 1 && normalize.std(0) != 1);
    if (format_ == data_format::csv && changes)
      add("normalize",
          "columns are normalised one by one: write standardize, or mean and std, at csv.columns");
  }

  void check_csv() {
    const auto& csv = data_.csv();
    if (csv.target_size() > 1 && (targets_are(target_kind::classes) || csv.classes_size() > 0))
      add("csv.target", "a class is one column; write one, or targets: values");
    if (csv.classes_size() > 0 && targets_are(target_kind::values))
      add("csv.classes", "are names of classes, but the targets are values; leave them out");
    check_unique("csv.classes", csv.classes());
    check_unique("csv.target", csv.target());
    std::set<std::string> known(csv.target().begin(), csv.target().end());
    for (int i = 0; i < csv.columns_size(); ++i) {
      const auto path = item_path("csv.columns", static_cast<std::size_t>(i));
      if (!known.insert(csv.columns(i).column()).second)
        add(path + ".column",
            fmt::format("column \"{}\" is used twice", base::printable(csv.columns(i).column())));
      check_column(csv.columns(i), path);
    }
  }

  void check_column(const spec::CsvColumn& column, const std::string& path) {
    check_unique(path + ".vocabulary", column.vocabulary());
    const bool categorical = type_of(column) == column_type::categorical;
    const std::pair<const char*, bool> of_categories[] = {{"encoding", column.has_encoding()},
                                                          {"order", column.has_order()},
                                                          {"unknown", column.has_unknown()},
                                                          {"vocabulary", column.vocabulary_size() > 0}};
    for (const auto& [key, present] : of_categories)
      if (present && !categorical) add(path + "." + key, "is for type: categorical, but the type is numeric");
    const std::pair<const char*, bool> of_numbers[] = {
        {"standardize", column.has_standardize()}, {"mean", column.has_mean()}, {"std", column.has_std()}};
    for (const auto& [key, present] : of_numbers)
      if (present && categorical) add(path + "." + key, "is for type: numeric, but the type is categorical");
    if (column.has_mean() != column.has_std())
      add(path + (column.has_mean() ? ".mean" : ".std"), "mean and std come together; write both or none");
  }

  template <class Texts>
  void check_unique(const std::string& key, const Texts& texts) {
    std::set<std::string> seen;
    for (const auto& text : texts)
      if (!seen.insert(text).second) add(key, fmt::format("\"{}\" is there twice", base::printable(text)));
  }

  const spec::DatasetSpec& data_;
  data_format format_;
  std::string path_;
  const source_map& sources_;
  problem_list& problems_;
};

/// A split has the records of data.train, as these are read: what says otherwise would be ignored.
void check_split(const spec::DataSpec& data, const source_map& sources, problem_list& problems) {
  using google::protobuf::util::MessageDifferencer;
  const auto& train = data.train();
  const auto& split = data.validation();
  if (!split.has_split()) return;
  const auto options = [](const spec::DatasetSpec& one) {
    return std::map<std::string, std::string>(one.options().begin(), one.options().end());
  };
  const std::pair<const char*, bool> parts[] = {
      {"options", options(split) == options(train)},
      {"format", split.format() == train.format()},
      {"targets", split.targets() == train.targets()},
      {"normalize", MessageDifferencer::Equals(split.normalize(), train.normalize())},
      {"csv", MessageDifferencer::Equals(split.csv(), train.csv())},
      {"image_folder", MessageDifferencer::Equals(split.image_folder(), train.image_folder())},
      {"tfrecord", MessageDifferencer::Equals(split.tfrecord(), train.tfrecord())}};
  for (const auto& [key, same] : parts) {
    const auto place = join_path("data.validation", key);
    if (!same && !problems.reported(place))
      problems.add(sources.find(place), place,
                   "a split takes its records from data.train, as these are read; leave this out");
  }
}

/// What is learnt from the training data is not known yet; data::decode_validation() compares that.
void check_reading(const spec::DataSpec& data, const source_map& sources, problem_list& problems) {
  if (!data.has_train() || !data.has_validation() || data.validation().has_split()) return;
  std::string told; // a key is told once, however many places of it differ
  for (const auto& difference : reading_differences(data.train(), data.validation(), taught::not_yet)) {
    const auto place = join_path("data.validation", difference.key);
    if (difference.whole_key() == told || problems.reported(place)) continue;
    told = difference.whole_key();
    problems.add(sources.find(place), place, tell(difference));
  }
}

} // namespace

void check_data(const spec::DataSpec& data, const source_map& sources, problem_list& problems) {
  if (data.has_train()) data_check(data.train(), "data.train", sources, problems).check(false);
  if (data.has_validation()) data_check(data.validation(), "data.validation", sources, problems).check(true);
  check_split(data, sources, problems);
  check_reading(data, sources, problems);
}

} // namespace dlrun::job
